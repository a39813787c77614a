"""What the leader looks at now and then: how much history is left, how many dead letters there are, what time it is."""

import math
from typing import Final

from worker.model import Position
from worker.pipeline.around import Around
from worker.pipeline.timekeeper import Timekeeper
from worker.pipeline.watermark import Watermark
from worker.ports import ChangeStream, DeadLetters

WATCH_EVERY: Final = 15.0
"""Seconds between two looks: slow things, and alerts wait minutes anyway."""

WATCH_SHARE: Final = 20.0
"""The next look waits so many times as long as this one took: SecantusDB, reached by its address, reads all its history
to tell the first entry, and must do so a twentieth of the time at most."""


async def watch(
    stream: ChangeStream, letters: DeadLetters, watermark: Watermark[Position], time: Timekeeper, around: Around
) -> None:
    """Tell the meter, for ever."""
    while True:
        began = around.clock.monotonic()
        around.meter.buried(await around.persist("database", letters.count))
        oldest = await around.persist("stream", stream.oldest)
        low = watermark.low
        around.meter.headroom(math.nan if oldest is None or low is None else float(low.at.time - oldest.time))
        await time.ask()
        await around.clock.sleep(max(WATCH_EVERY, WATCH_SHARE * (around.clock.monotonic() - began)))
