"""The safety net under the stream: damage that nobody told of is mended by the clock, once a source's scan is old."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from tests.support import virtual
from tests.support.sim_recorders import SimMeter
from tests.support.sim_source import SimSource
from tests.support.sim_stage import TARGET, TIPS, TRICKS, Stage, document, in_place, trick
from worker.model import Leadership
from worker.pipeline.duties import RESCAN_CHECK_EVERY
from worker.pipeline.leader import Leader, Terms

HOURS = 1
SOURCES: dict[str, SimSource] = {"tricks": TRICKS, "tips": TIPS}


class Counting(SimMeter):
    """Keeps why scans began."""

    def __init__(self) -> None:
        super().__init__()
        self.scans: list[str] = []

    def resynced(self, reason: str) -> None:
        """Keep."""
        self.scans.append(reason)


def damage(stage: Stage) -> None:
    """What a hand or a bug does to what is stored, and a stream that says nothing of it."""
    rows = stage.db.chunks[trick(0)]
    first, *_ = rows
    del rows[first]
    (id_, row), *_ = stage.db.chunks[trick(1)].items()
    stage.db.chunks[trick(1)][id_] = replace(row, stored=replace(row.stored, content_hash="scribbled"))
    stage.delete(2, told=False)


def test_a_damaged_chunk_is_mended_by_the_clock() -> None:
    """A lost row, a scribbled row and a row without document: all stay until the scan is due, and are right after it.

    Every source is scanned again, each for that reason, and again at its next time; nothing whole is embedded anew.
    """

    async def main() -> None:
        meter = Counting()
        stage = Stage(meter=meter, sources=(TRICKS, TIPS))
        for number in range(5):
            stage.put(document(number, "ollie", f"says {number}", "twice"), told=False)
        terms = Terms(SOURCES, TARGET, in_place, rescan_every=timedelta(hours=HOURS))
        serving = asyncio.create_task(Leader(stage.world, terms, Leadership(1), stage.around).serve(asyncio.Event()))
        await asyncio.sleep(60)
        assert stage.wrong() == []
        damage(stage)
        damaged = stage.wrong()
        assert len(damaged) >= 3
        embedded = len(stage.client.sent)
        await asyncio.sleep(HOURS * 3600 - 120)
        assert stage.wrong() == damaged
        assert meter.scans == ["first", "first"]
        await asyncio.sleep(120 + RESCAN_CHECK_EVERY)
        assert stage.wrong() == []
        assert meter.scans == [*["first"] * 2, *["scheduled"] * 2]
        assert trick(2) not in {key for key, rows in stage.db.chunks.items() if rows}
        assert len(stage.client.sent) <= embedded + 2
        assert not stage.health.reasons
        await asyncio.sleep(HOURS * 3600 + RESCAN_CHECK_EVERY)
        assert meter.scans == [*["first"] * 2, *["scheduled"] * 4]
        serving.cancel()
        await asyncio.wait({serving})

    virtual.run(main)
