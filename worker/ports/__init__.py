"""The doors to the outside: what the pipeline needs, said without naming a driver.

Each port has one contract suite in `tests/contract`, run over the in-memory fake and over the real adapter. Adapters
raise errors of the tree in `worker.errors` only.
"""

from worker.ports.papers import Checkpoints, DeadLetters, KnowledgeStore, Lease, Pins, Requests, SpendBook
from worker.ports.sources import ChangeStream, Documents
from worker.ports.surroundings import Health, Meter, Probe, TextEmbedder

__all__ = [
    "ChangeStream",
    "Checkpoints",
    "DeadLetters",
    "Documents",
    "Health",
    "KnowledgeStore",
    "Lease",
    "Meter",
    "Pins",
    "Probe",
    "Requests",
    "SpendBook",
    "TextEmbedder",
]
