"""The worker with one of its tasks dying of a bug, or telling which tasks it has.

    python tests/fault/dying_main.py --list FILE             leads, and writes there what runs then; goes on
    python tests/fault/dying_main.py --task NAME --nth 2     the second task of that name raises where it first waits

A task is known by the name of its coroutine, and is one of ours when its code lies in `worker/`. Nothing is patched in
the worker: the event loop's factory of tasks is ours.
"""

import argparse
import asyncio
import json
import sys
import types
from collections import Counter
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any, Final

import worker
from worker.cli_options import DATA
from worker.commands.run import run
from worker.commands.where import Where

_OURS: Final = str(Path(worker.__file__).parent)
_PROCESS: Final = run.__qualname__  # the program itself, not a task that it starts


class Bug(Exception):
    """What nobody foresaw."""


class Lister:
    """Implements `worker.ports.Probe`: writes down every task of ours once a position is stored, so all have begun."""

    def __init__(self, into: Path) -> None:
        self._into = into

    async def reached(self, point: str) -> None:
        """Write, there."""
        if point == "checkpointed" and not self._into.exists():
            ours = Counter(filter(None, (_name(task.get_coro()) for task in asyncio.all_tasks())))
            del ours[_PROCESS]
            fresh = self._into.with_suffix(".new")
            fresh.write_text(json.dumps(ours))
            fresh.replace(self._into)


def _name(work: object) -> str:
    """The name of a coroutine of ours; empty for anything else."""
    if not isinstance(work, types.CoroutineType):
        return ""
    code: types.CodeType = work.cr_code
    return code.co_qualname if code.co_filename.startswith(_OURS) else ""


@types.coroutine
def _dying(work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Let it come to its first wait, and raise there; what it does about that is its own."""
    work.send(None)
    waits = work.throw(Bug("nobody foresaw this"))
    while True:
        answer = yield waits
        waits = work.send(answer)


class Factory:
    """Makes tasks; the n-th of that name is a dying one."""

    def __init__(self, name: str, nth: int) -> None:
        self._name = name
        self._left = nth

    def __call__(self, loop: asyncio.AbstractEventLoop, work: Any, **how: Any) -> "asyncio.Task[Any]":  # noqa: ANN401 - asyncio's own
        """A task."""
        if _name(work) == self._name:
            self._left -= 1
            if not self._left:
                work = _until_dead(work)
        return asyncio.Task(work, loop=loop, **how)


async def _until_dead(work: Coroutine[Any, Any, Any]) -> None:
    await _dying(work)


async def _main(given: argparse.Namespace) -> int:
    if given.task:
        asyncio.get_running_loop().set_task_factory(Factory(given.task, given.nth))
    probe = Lister(given.list) if given.list else None
    return await run(Where(embedded=False, data=DATA, as_json=False), None, probe)


def main() -> int:
    """Run the worker as `python -m worker run` does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", type=Path)
    parser.add_argument("--task")
    parser.add_argument("--nth", type=int, default=1)
    return asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
