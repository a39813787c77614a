"""`call`: one tool on the command line, for people who try or debug one. They see what a model would be told."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from brain.cards import rich_content
from brain.config import PREFIX, BrainSettings
from brain.errors import EXIT_BUG, EXIT_CONFIGURATION, EXIT_FAILED, EXIT_OK, EXIT_TRY_LATER, EXIT_USAGE, FailureCode
from brain.knowledge.log import configure
from brain.knowledge.settings import load
from brain.registry import Outcome
from brain.toolbox import toolbox

_EXITS: Final[dict[FailureCode, int]] = {
    "invalid_arguments": EXIT_USAGE,
    "unknown_tool": EXIT_USAGE,
    "not_signed_in": EXIT_USAGE,
    "index_not_ready": EXIT_TRY_LATER,
    "unavailable": EXIT_TRY_LATER,
    "timeout": EXIT_TRY_LATER,
    "index_missing": EXIT_CONFIGURATION,
    "pin_mismatch": EXIT_CONFIGURATION,
    "internal": EXIT_BUG,
}


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed; `data` is the embedded database's folder (None: ATLAS_URI)."""

    tool: str
    arguments: str
    user: str | None
    turn: str | None
    data: Path | None
    as_json: bool


def run(request: Request) -> int:
    """Tell the outcome on stdout; its exit code. Raises KnowledgeError."""
    settings = load(BrainSettings, os.environ, PREFIX, embedded=request.data is not None)
    settings.require(*(() if request.data is not None else ("ATLAS_URI",)), environ=os.environ)
    with configure(secrets=settings.secret_values()):
        outcome = asyncio.run(_call(request, settings))
    told = json.loads(outcome.text) | ({"cards": rich_content(outcome.cards)} if outcome.cards else {})
    click.echo(json.dumps(told, indent=None if request.as_json or not sys.stdout.isatty() else 2))
    return EXIT_OK if outcome.code is None else _EXITS.get(outcome.code, EXIT_FAILED)


async def _call(request: Request, settings: BrainSettings) -> Outcome:
    async with toolbox(settings, request.data) as tools:
        context = tools.context(request.user or settings.user_id, turn_id=request.turn)
        return await tools.registry.call(request.tool, request.arguments, context)
