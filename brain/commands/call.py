"""`call`: one tool on the command line, for people who try or debug one. They see what a model would be told."""

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from brain.cards import CARD_TYPES, rich_content, shown
from brain.commands.where import Where
from brain.config import BrainSettings
from brain.errors import FailureCode, exit_code
from brain.knowledge.errors import EXIT_BUG, EXIT_DIFFERENCES, EXIT_OK, EXIT_TRY_LATER, EXIT_USAGE
from brain.knowledge.log import configure
from brain.registry import Outcome
from brain.toolbox import toolbox

_EXITS: Final[dict[FailureCode, int]] = {
    "invalid_arguments": EXIT_USAGE,
    "unknown_tool": EXIT_USAGE,
    "not_signed_in": EXIT_USAGE,
    "no_companion": EXIT_USAGE,
    "timeout": EXIT_TRY_LATER,
    "internal": EXIT_BUG,
}
"""Of failures that no error of ours lies behind; the others end as the error would."""

_HINTS: Final[dict[FailureCode, str]] = {
    "not_signed_in": "say who asks: --user ID, or BRAIN_USER_ID",
    "no_companion": "say who speaks: --companion ID",
}


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed; `user` and `companion` are 24 hex digits."""

    tool: str
    arguments: str
    user: str | None
    companion: str | None
    turn: str | None


def run(request: Request, where: Where) -> int:
    """Tell the outcome on stdout; its exit code. Raises KnowledgeError."""
    settings = where.settings()
    with configure(secrets=settings.secret_values()):
        outcome = asyncio.run(_call(request, settings, where.data))
    cards = rich_content(shown(outcome.cards, CARD_TYPES))
    told = json.loads(outcome.text) | ({"cards": cards} if cards else {})
    click.echo(json.dumps(told, indent=None if where.as_json or not sys.stdout.isatty() else 2))
    if outcome.code in _HINTS:
        click.echo(_HINTS[outcome.code], err=True)
    return _exit(outcome)


def _exit(outcome: Outcome) -> int:
    if outcome.fault is not None:
        return exit_code(outcome.fault)
    return EXIT_OK if outcome.code is None else _EXITS.get(outcome.code, EXIT_DIFFERENCES)


async def _call(request: Request, settings: BrainSettings, data: Path | None) -> Outcome:
    async with toolbox(settings, data) as tools:
        context = tools.context(request.user or settings.user_id, companion_id=request.companion, turn_id=request.turn)
        return await tools.registry.call(request.tool, request.arguments, context)
