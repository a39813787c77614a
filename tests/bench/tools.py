"""Each tool over 100,000 documents of every collection that it reads: p50 and p95 of a call through the registry.

The embedded server sorts in memory and scans where MongoDB uses an index for a pattern, so these are upper bounds. The
vectors are left out (`search` and `embedding` measure them): a stand-in finds twenty chunks at once.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.connect import Row
from brain.knowledge.pin import MINILM, Pin
from brain.knowledge.search import Hit
from brain.knowledge.search.service import Found
from brain.registry import Registry
from brain.tool import ToolContext
from brain.tools import ALL_TOOLS
from brain.trickbook.indexes import ensure_indexes
from tests.bench.report import Options, Report, percentile
from tests.bench.scene_data import SCENE, listed, place, told_spot
from tests.bench.stage import server
from tests.bench.tool_data import BUILDERS, STATES, id_of, rider, trick_name
from tests.support.tool_world import NOW

_BATCH: Final = 1_000
_COMPANION: Final = str(id_of(0x11, 0))
_CLIPS: Final = "https://clips.example.com"
_ROWS: Final = {**BUILDERS, **SCENE}

Ask = Callable[[int], Mapping[str, Any]]

CALLS: Final[tuple[tuple[str, str, Ask], ...]] = (
    ("search_trickipedia, a name", "search_trickipedia", lambda n: {"search": trick_name(n)}),
    ("search_trickipedia, a question", "search_trickipedia", lambda n: {"search": f"how do I land a trick {n} first"}),
    ("search_trickipedia, a sport", "search_trickipedia", lambda _: {"category": "surf"}),
    ("search_spots, a state", "search_spots", lambda n: {"state": f"state {n % STATES}"}),
    ("search_spots, a name", "search_spots", lambda n: {"query": f"spot {n + 1} plaza"}),
    ("search_spots, a part of a name", "search_spots", lambda n: {"query": f"spot {n + 1}"}),
    ("get_user_tricklists", "get_user_tricklists", lambda _: {}),
    ("create_tricklist", "create_tricklist", lambda n: {"title": f"New list {n}"}),
    ("add_trick_to_list", "add_trick_to_list", lambda n: {"list_id": str(id_of(0x73, n)), "trick_name": "Ollie"}),
    ("update_trick_status", "update_trick_status", lambda n: {"trick_id": str(id_of(0x74, n)), "status": "Complete"}),
    ("search_knowledge (no vectors)", "search_knowledge", lambda n: {"query": f"question {n}"}),
    ("remember_user_info", "remember_user_info", lambda n: {"fact": f"Rides at spot {n}"}),
    ("save_spot", "save_spot", lambda n: {"spot_id": told_spot(n)}),
    ("spots_near_me, 25 km", "spots_near_me", place),
    ("spots_near_me, 500 km, a sport", "spots_near_me", lambda n: {**place(n), "radius_km": 500, "sport": "surf"}),
    ("spot_details", "spot_details", lambda n: {"spot_id": told_spot(n)}),
    ("find_videos", "find_videos", lambda n: {"trick": trick_name(n)}),
    ("link_trick_to_spot", "link_trick_to_spot", lambda n: {"trick_id": listed(n), "spot_id": told_spot(n)}),
    ("link_trick_to_video", "link_trick_to_video", lambda n: {"trick_id": listed(n), "video_url": f"{_CLIPS}/{n}"}),
    ("read_feed, own posts", "read_feed", lambda _: {}),
    ("read_feed, homies", "read_feed", lambda _: {"whose": "homies"}),
    ("read_feed, everyone", "read_feed", lambda _: {"whose": "everyone"}),
    ("my_progress", "my_progress", lambda _: {}),
    ("recommend_next_trick, after one", "recommend_next_trick", lambda n: {"trick_name": trick_name(n)}),
    ("recommend_next_trick", "recommend_next_trick", lambda _: {}),
    ("learning_path", "learning_path", lambda n: {"trick_name": trick_name(n)}),
    ("find_events", "find_events", lambda _: {}),
    ("find_events, a sport and a place", "find_events", lambda _: {"sport": "surf", "place": "City 5"}),
)
"""What is asked, and with which arguments for the n-th rider."""


class Near:
    """Search in chunks that finds twenty tricks at once."""

    async def search(self, query: str, sport: str | None = None, doc_type: str | None = None, limit: int = 5) -> Found:
        """The same ones, whatever is asked."""
        fields = [{"trickId": str(id_of(0x5A, n)), "docType": "trick", "title": "T", "text": query} for n in range(20)]
        hits = tuple(Hit(str(n), 0.9, field) for n, field in enumerate(fields))
        return Found(hits[:limit], Pin(MINILM.name, MINILM.dimensions), "exact")


def measure(options: Options) -> Report:
    """Fill a database, make the indexes, call each tool."""
    return asyncio.run(_measure(5_000 if options.quick else 100_000, 10 if options.quick else 20))


async def _measure(count: int, calls: int) -> Report:
    report = Report("tools")
    with server() as uri:
        async with AsyncMongoClient[Row](uri, tz_aware=True, w="majority") as client:
            database = client["bench"]
            await ensure_indexes(database, embedded=True)  # first: over a full collection it takes minutes there
            began = time.perf_counter()
            await _fill(database, count)
            report.add("filling", time.perf_counter() - began, "s")
            for label, tool, ask in CALLS:
                done = [await _timed(database, tool, ask, turn * count // calls) for turn in range(1, calls)]
                report.add(f"{label}: p50", percentile([taken for taken, _ in done], 0.5), "ms")
                report.add(f"{label}: p95", percentile([taken for taken, _ in done], 0.95), "ms")
                if late := sum(not ok for _, ok in done):
                    report.notes.append(f"{label}: {late} of {len(done)} calls gave up in time")
    report.notes.append(f"{count} documents of each of {', '.join(_ROWS)}; {calls - 1} calls a tool")
    return report


async def _fill(database: AsyncDatabase[Row], count: int) -> None:
    for name, build in _ROWS.items():
        for start in range(0, count, _BATCH):
            await database[name].insert_many([build(number) for number in range(start, min(count, start + _BATCH))])


async def _timed(database: AsyncDatabase[Row], tool: str, ask: Ask, number: int) -> tuple[float, bool]:
    """Milliseconds of one call and whether it was answered; it must not fail but for want of time."""
    registry = Registry(ALL_TOOLS)
    context = ToolContext(
        database,
        Near(),
        lambda: NOW,
        user_id=rider(number),
        companion_id=_COMPANION,
        turn_id=f"{tool}-{number}",
        origin="https://trickbook.example.com",
    )
    began = time.perf_counter()
    outcome = await registry.call(tool, json.dumps(ask(number)), context)
    taken = (time.perf_counter() - began) * 1000
    if not outcome.ok and outcome.code not in {"timeout", "unavailable"}:
        message = f"{tool}: {outcome.text}"
        raise RuntimeError(message)
    return taken, outcome.ok
