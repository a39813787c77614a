"""A process of its own that embeds once well and then once more, and prints what the second call cost in memory.

`python -m tests.support.embedding_peak URL LIBRARY` prints one JSON line `{"error", "megabytes"}`: the type that was
raised (null: none), and by how much the process's peak grew.
"""

import asyncio
import json
import resource
import sys
from typing import cast

from brain.knowledge.embedding.openrouter import OpenRouterClient
from brain.knowledge.errors import KnowledgeError
from brain.knowledge.http import Library
from tests.support.endpoint import KEY, MODEL, PATIENCE


def _peak() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def _embed(url: str, library: Library) -> None:
    client = OpenRouterClient(MODEL, KEY, url, library=library, deadline_seconds=PATIENCE)
    await client.embed(["kickflip"])
    before, raised = _peak(), None
    try:
        await client.embed(["kickflip"])
    except KnowledgeError as error:
        raised = type(error).__name__
    print(json.dumps({"error": raised, "megabytes": _peak() - before}))  # noqa: T201 the one line
    await client.close()


if __name__ == "__main__":
    asyncio.run(_embed(sys.argv[1], cast("Library", sys.argv[2])))
