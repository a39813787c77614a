"""A process that calls a write tool and kills itself: `python -m tests.support.dying_writer URI DATABASE PLACE`."""

import asyncio
import os
import signal
import sys

from brain.knowledge.connect import Target, open_client
from brain.registry import Registry
from brain.tool import ToolContext
from tests.support.tool_calls import Said, Wanted, context, tool


async def main(uri: str, name: str, place: str) -> None:
    """Call it; the last thing that this process does is to die."""

    def reached(here: str) -> None:
        if here == place:
            os.kill(os.getpid(), signal.SIGKILL)

    async def handler(asking: ToolContext, arguments: Wanted) -> Said:
        reached("before")
        row = await asking.database["rows"].insert_one({"query": arguments.query}, session=asking.session)
        reached("between")
        await asking.database["lists"].insert_one({"row": row.inserted_id}, session=asking.session)
        reached("after")
        return Said(words=str(row.inserted_id))

    async with open_client(Target(uri, name)) as client:
        registry = Registry([tool(handler, Wanted, "save_row", effect="write", scope="user", idempotent=False)])
        await registry.call("save_row", '{"query": "ollie"}', context(client[name], turn="t1"))
        reached("committed")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
