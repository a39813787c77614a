"""The worker with a probe that kills, freezes or breaks its own process at a named place, the n-th time it is there.

    python tests/fault/crashing_main.py --place published --nth 2 --act kill --armed-by FILE -- [options of `run`]

Nothing in production can do that: the probe is an argument of `worker.commands.run.run`, and only this program passes
one. Places are the names that the worker's own code passes to `probe.reached`, and the `INSIDE` ones, which lie within
one call of the driver. With `--armed-by`, a place counts only while that file exists, so that a worker can catch up
with an earlier crash before it meets its own.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unittest.mock import patch

from worker.cli_options import DATA
from worker.commands.run import run
from worker.commands.where import Where
from worker.mongo.driver import Database, Write
from worker.mongo.names import CHECKPOINTS, DEAD_LETTERS, LEASES, LEDGER
from worker.mongo.transactions import Session

INSIDE: Final = {
    "fenced": "the transaction of a publication has touched the lease, nothing else",
    "chunks_written": "k of n writes of the transaction are done",
    "ledger_written": "all of them are done, the commit is not sent",
    "committing": "the commit is on its way: it may be stored or not",
    "letter_written": "the dead letter is written, its transaction not committed",
    "checkpoint_sent": "the checkpoint is on its way: it may be stored or not",
}
_ON_ITS_WAY: Final = 0.001  # seconds until the request has left; on either side of the answer the outcome must be right
_ACTS: Final = {"kill": signal.SIGKILL, "freeze": signal.SIGSTOP}


class Broken(Exception):
    """What a place raises when it is to break."""


@dataclass(slots=True)
class DeadlyProbe:
    """Implements `worker.ports.Probe`."""

    place: str
    nth: int
    act: str
    armed_by: Path | None

    async def reached(self, point: str) -> None:
        """Do it here, or go on."""
        self.at(point)

    def at(self, point: str) -> None:
        """Likewise, from where nothing can be awaited."""
        if point != self.place or (self.armed_by is not None and not self.armed_by.exists()):
            return
        self.nth -= 1
        if self.nth:
            return
        if self.armed_by is not None:  # and once more whenever it is armed anew
            self.armed_by.unlink()
            self.nth = 1
        if self.act == "raise":
            raise Broken(point)
        os.kill(os.getpid(), _ACTS[self.act])


def _see_inside(probe: DeadlyProbe, stack: ExitStack) -> None:
    """Tell the probe about the places within the driver's calls."""
    bulk = Database.bulk
    after = {LEDGER: "ledger_written", DEAD_LETTERS: "letter_written"}
    on_its_way = {LEDGER: "committing", CHECKPOINTS: "checkpoint_sent"}
    fenced: set[int] = set()

    async def told_bulk(
        self: Database,
        collection: str,
        writes: Sequence[Write],
        *,
        ordered: bool = True,
        session: Session | None = None,
    ) -> int:
        # A stored position is fenced likewise, once a second: what follows the fence says whose it is.
        if id(session) in fenced and writes:
            fenced.discard(id(session))
            if collection != CHECKPOINTS:
                probe.at("fenced")
        done = await bulk(self, collection, writes, ordered=ordered, session=session)
        if session is not None and writes:
            if collection == LEASES:
                fenced.add(id(session))
            elif collection != CHECKPOINTS:
                probe.at(after.get(collection, "chunks_written"))
            if collection in on_its_way:
                asyncio.get_running_loop().call_later(_ON_ITS_WAY, probe.at, on_its_way[collection])
        return done

    stack.enter_context(patch.object(Database, "bulk", told_bulk))


def main() -> int:
    """Run the worker as `python -m worker run` does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--place", required=True)
    parser.add_argument("--nth", type=int, default=1)
    parser.add_argument("--act", choices=[*_ACTS, "raise"], default="kill")
    parser.add_argument("--armed-by", type=Path)
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    probe = DeadlyProbe(given.place, given.nth, given.act, given.armed_by)
    where = Where(embedded=given.data is not None, data=given.data or DATA, as_json=False)
    with ExitStack() as stack:
        _see_inside(probe, stack)
        return asyncio.run(run(where, None, probe))


if __name__ == "__main__":
    sys.exit(main())
