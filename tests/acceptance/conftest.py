"""What the tests with real processes share."""

from tests.support.served import database, env, fake

__all__ = ["database", "env", "fake"]
