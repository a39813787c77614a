"""TrickBook's collections as the tools read and write them: what is asked of the database, what is said of a row.

The rules themselves (who may see what, what an odd field means) are in `brain.knowledge.domain`, without I/O.
"""
