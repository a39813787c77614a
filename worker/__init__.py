"""Keeps TrickBook's knowledge chunks fresh: a document change becomes fresh, embedded chunks."""
