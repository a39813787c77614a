"""Answers riders from TrickBook's knowledge chunks."""
