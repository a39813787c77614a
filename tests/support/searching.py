"""A reader that lives long: asks the same question again and again, and tells each answer as a line of JSON.

    python -m tests.support.searching QUERY

Settings come from the environment as the brain's do. A line is {begun, ended (seconds since the epoch), pin (its
collection), collections and models of the hits, error (its type, or null)}.
"""

import asyncio
import json
import os
import sys
import time

from brain.config import PREFIX, BrainSettings
from brain.knowledge.connect import find_target, open_client
from brain.knowledge.embedding.pinned import PinnedClients
from brain.knowledge.errors import KnowledgeError
from brain.knowledge.search.service import KnowledgeSearch
from brain.knowledge.settings import load


async def main(query: str) -> None:
    """Ask until somebody ends this process."""
    settings = load(BrainSettings, os.environ, PREFIX)
    uri = None if settings.atlas_uri is None else settings.atlas_uri.get_secret_value()
    target = find_target(uri, settings.atlas_db, None)
    client, clients = open_client(target), PinnedClients(settings)
    search = KnowledgeSearch(client[target.database], clients, settings.vector_search, follow=True)
    while True:
        line: dict[str, object] = {"begun": time.time(), "pin": None, "models": [], "hits": 0, "error": None}
        try:
            found = await search.search(query, limit=5)
        except KnowledgeError as error:
            line["error"] = f"{type(error).__name__}: {error}"
        else:
            models = sorted({f"{hit.fields['model']}/{hit.fields['dimensions']}" for hit in found.hits})
            line |= {"pin": found.pin.as_row(), "models": models, "hits": len(found.hits)}
        sys.stdout.write(json.dumps({**line, "ended": time.time()}) + "\n")
        sys.stdout.flush()
        await asyncio.sleep(0.02)  # a rider thinks; nothing is assumed to take this long


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
