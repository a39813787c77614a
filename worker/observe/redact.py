"""The worker masks secrets as both halves do: `brain.knowledge.redact`."""

from brain.knowledge.redact import MASK, Redactor

__all__ = ["MASK", "Redactor"]
