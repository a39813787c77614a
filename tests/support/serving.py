"""The fake embedder in a thread of its own, so that a test's event loop and its endpoint do not share their time."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager

from tests.support.fake_embedder import FakeEmbedder

_PATIENCE = 10.0  # seconds until a start or an end counts as hanging


@contextmanager
def serving(server: FakeEmbedder, port: int = 0) -> Generator[FakeEmbedder]:
    """Serve on loopback; `script`, `always`, `received` and the rest are read and set from outside."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="fake-embedder")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(port), loop).result(_PATIENCE)
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(_end(server), loop).result(_PATIENCE)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_PATIENCE)
        loop.close()


async def _end(server: FakeEmbedder) -> None:
    """Stop, and end connections that came in at that very moment."""
    await server.stop()
    late = asyncio.all_tasks() - {asyncio.current_task()}
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    await asyncio.sleep(0)  # their transports close in the loop's next turn
