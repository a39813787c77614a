"""What is known of the oldest entry of the history, and what is not known now."""

from typing import cast

import pytest

from worker.errors import KnowledgeError, Refused, Unreachable
from worker.mongo.driver import Database
from worker.mongo.reach import first_entry


class Answering:
    """A database whose `local` answers every question with this error."""

    def __init__(self, error: KnowledgeError) -> None:
        self._error = error

    def beside(self, name: str) -> "Answering":
        """Itself, when asked for `local`."""
        assert name == "local"
        return self

    async def find(self, *_asked: object, **_how: object) -> list[object]:
        """The error."""
        raise self._error


def answering(error: KnowledgeError) -> Database:
    """That database."""
    return cast("Database", Answering(error))


async def test_where_local_may_not_be_read_the_age_is_unknown() -> None:
    """It is found by trying then (`wire/test_wire_headroom.py`)."""
    assert await first_entry(answering(Refused("not allowed"))) is None


async def test_no_answer_is_no_unknown_age() -> None:
    """Whoever followed without it would pass over a gap where the server tells of none (the embedded one)."""
    with pytest.raises(Unreachable):
        await first_entry(answering(Unreachable("no answer")))
