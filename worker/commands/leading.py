"""How a command that writes does its work: it leads when nobody does, else it leaves a request to the leader."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from worker.errors import ConfigurationFault, Retryable, Unavailable
from worker.model import Leadership, Scan
from worker.mongo.requests import MongoRequests
from worker.parts import App
from worker.pipeline.leader import Leader
from worker.ports import Lease

POLL: Final = 0.2  # seconds
PATIENCE: Final = 30.0
"""Seconds that a request may lie untouched: a living leader takes it within one."""


async def hand_over(
    app: App,
    kind: str,
    arguments: Mapping[str, object],
    lead: Callable[[Leader], Awaitable[None]],
    watch: Callable[[Scan], None] = lambda _scan: None,
) -> bool:
    """Do the work under the lease if it is free, else leave a request and wait until it is done; whether we led.

    Raises Unavailable when the leader does not take the request, ConfigurationFault when it does not know it.
    """
    leadership, _ = await take_turn(app.lease, app.requests, kind, arguments)
    if leadership is None:
        return False
    try:
        await lead(app.leader(leadership, watch))
    finally:
        await app.release(leadership)
    return True


async def take_turn(
    lease: Lease, requests: MongoRequests, kind: str, arguments: Mapping[str, object]
) -> tuple[Leadership | None, Mapping[str, object]]:
    """The lease, for who then does the work and releases it; or None and what the leader answered to the request.

    Raises as `hand_over`.
    """
    if (leadership := await lease.acquire()) is not None:
        return leadership, {}
    request_id = await requests.submit(kind, arguments)
    try:
        waited = 0.0
        while (result := await requests.result(request_id)) is None:
            if (leadership := await lease.acquire()) is not None:
                await requests.abandon(request_id)
                return leadership, {}
            waited = 0.0 if await requests.under_way() else waited + POLL
            if waited > PATIENCE:
                message = (
                    "the worker that holds the lease does not take requests: look at its log, or stop it and try again"
                )
                raise Unavailable(message)
            await asyncio.sleep(POLL)
    finally:
        with suppress(Retryable):  # it ends by itself within a day
            await requests.withdraw(request_id)  # nobody waits for it any more
    if "refused" in result:
        message = f"{result['refused']}: the worker that leads is of another version than this command"
        raise ConfigurationFault(message)
    return None, result
