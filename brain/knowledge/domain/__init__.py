"""TrickBook's own data as it really is: reading its fields, ids, links, words and rules of visibility. No I/O.

The worker's sources and the companions' tools say the same of a document because both ask here. Where the facts
come from is in brain/README.md.
"""
