"""How a command gets its work done: by itself, or by the leader, who may die meanwhile."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from tests.support import virtual
from worker.commands.leading import hand_over
from worker.errors import ConfigurationFault, Unavailable
from worker.model import Leadership
from worker.parts import App
from worker.pipeline.leader import Leader


class Fake:
    """An app whose lease comes free at some look at it, and whose leader answers after some."""

    def __init__(self, *, free_at: int = 10**6, answer: Mapping[str, object] | None = None) -> None:
        self.looks = 0
        self.free_at, self.answer = free_at, answer
        self.left: list[str] = []
        self.released = self.led = False

    async def acquire(self) -> Leadership | None:
        """The lease, from that look on."""
        self.looks += 1
        return Leadership(7) if self.looks > self.free_at else None

    async def submit(self, kind: str, _arguments: object) -> str:
        """Note it."""
        self.left.append(kind)
        return kind

    async def result(self, _request: str) -> Mapping[str, object] | None:
        """The answer, after a few looks."""
        return self.answer if self.looks > 3 else None

    async def under_way(self) -> bool:
        """Never."""
        return False

    async def withdraw(self, request: str) -> None:
        """Forget it, if it is there."""
        self.left = [one for one in self.left if one != request]

    async def abandon(self, request: str) -> None:
        """Forget it: there is one."""
        self.left.remove(request)

    async def release(self, _leadership: Leadership) -> None:
        """Note it."""
        self.released = True

    def leader(self, *_of: object) -> None:
        """Nobody looks at it."""

    async def hand_over(self) -> bool:
        """Hand over a look."""
        app = SimpleNamespace(lease=self, requests=self, release=self.release, leader=self.leader)

        async def lead(_leader: Leader) -> None:
            self.led = True

        return await hand_over(cast("App", app), "look", {}, lead)


@pytest.mark.parametrize("free_at", [0, 50])
def test_a_lease_that_is_free_or_comes_free_is_taken(free_at: int) -> None:
    """A leader on another host that died: its lease runs out while the request waits, and the request is withdrawn."""

    async def main() -> None:
        fake = Fake(free_at=free_at)
        assert await fake.hand_over()
        assert (fake.led, fake.released, fake.left) == (True, True, [])

    virtual.run(main)


def test_a_leader_does_it() -> None:
    """Nothing is done here."""

    async def main() -> None:
        fake = Fake(answer={"looked": 1})
        assert not await fake.hand_over()
        assert not fake.led

    virtual.run(main)


@pytest.mark.parametrize(
    ("answer", "error"), [(None, Unavailable), ({"refused": "no such request"}, ConfigurationFault)]
)
def test_a_leader_that_does_not_is_told_of(answer: Mapping[str, object] | None, error: type[Exception]) -> None:
    """And the request is not done later, when nobody waits for it."""

    async def main() -> None:
        fake = Fake(answer=answer)
        with pytest.raises(error):
            await fake.hand_over()
        assert fake.left == []

    virtual.run(main)
