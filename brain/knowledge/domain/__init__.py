"""TrickBook's own data as it really is: reading its fields, ids, links, words and rules of visibility. No I/O.

The worker's sources and the companions' tools say the same of a document because both ask here. Source of every rule:
the domain fact sheet (its sections are named where a rule stands).
"""
