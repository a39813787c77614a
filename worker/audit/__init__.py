"""Audits of the whole: whether what is stored is what should be stored."""
