"""The command line: options, help and exit codes; the work is in `brain.commands`, imported by the command that runs.

Exit codes: 0 done, 1 a tool refused, 64 usage, 70 bug, 75 try again later, 78 configuration. Errors are a line each on
stderr.
"""

import json
import sys
import traceback
from typing import Final, Literal, NoReturn

import click

from brain.cli_options import everywhere, hex_id
from brain.commands.where import Where
from brain.errors import exit_code
from brain.knowledge.errors import EXIT_BUG, EXIT_USAGE, KnowledgeError
from brain.knowledge.sports import SPORTS, canonical_sport, is_known

PROGRAM: Final = "trickbook-brain"
DOC_TYPES: Final = ("trick", "doc", "coaching", "film", "spot", "event", "rider")
"""As `brain.knowledge.chunk.DOC_TYPES`, which would pull in numpy; a test holds them together."""

FORMATS: Final = ("chat", "responses", "mcp")
"""As `brain.schema.FORMATS`, which would pull in the tools; a test holds them together."""

DEFAULT_LIMIT: Final = 5
MOST_HITS: Final = 50
DEFAULT_WAIT: Final = 10.0  # seconds
LONGEST_WAIT: Final = 60.0  # seconds; as `brain.knowledge.fresh.LONGEST_WAIT`, which would pull in the driver
_INTERRUPTED: Final = 130  # 128 + SIGINT, as shells say


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Answer riders from TrickBook's knowledge chunks."""


@cli.command()
@click.argument("query")
@click.option("--sport", help="Only this sport; any spelling (inline, surf, …).")
@click.option("--doc-type", type=click.Choice(DOC_TYPES), help="Only chunks of this kind.")
@click.option("--limit", type=click.IntRange(1, MOST_HITS), default=DEFAULT_LIMIT, show_default=True, help="Most hits.")
@everywhere
def search(where: Where, query: str, sport: str | None, doc_type: str | None, limit: int) -> int:
    """Find the chunks nearest to QUERY."""
    if not query.strip():
        message = "QUERY is blank: type what you look for"
        raise click.UsageError(message)
    from brain.commands.search import Question, run  # noqa: PLC0415 usage errors and help need no driver

    return run(Question(query, _sport(sport), doc_type, limit), where)


@cli.command()
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="chat", show_default=True, help="For which consumer."
)
def tools(form: Literal["chat", "responses", "mcp"]) -> None:
    """Print the tools as JSON: what a model is told of them."""
    from brain.commands.tools import run  # noqa: PLC0415 usage errors and help need no driver

    run(form)


@cli.command()
@click.argument("tool")
@click.argument("arguments", default="")
@click.option("--user", callback=hex_id, help="The rider's id, 24 hex digits [BRAIN_USER_ID].")
@click.option("--companion", callback=hex_id, help="The id of the companion that speaks, 24 hex digits.")
@click.option("--turn", help="A name for the turn: a write that is repeated in it gives the first answer again.")
@everywhere
def call(where: Where, tool: str, arguments: str, user: str | None, companion: str | None, turn: str | None) -> int:
    """Call TOOL with ARGUMENTS (a JSON object) and print what a model would be told."""
    from brain.commands.call import Request, run  # noqa: PLC0415 usage errors and help need no driver

    return run(Request(tool, arguments, user, companion, turn), where)


@cli.command()
@click.option("--ensure", is_flag=True, help="Make those that are missing.")
@everywhere
def indexes(where: Where, *, ensure: bool) -> int:
    """Show the indexes that the tools' queries need; exit code 1 when one is missing."""
    from brain.commands.indexes import run  # noqa: PLC0415 usage errors and help need no driver

    return run(where, ensure=ensure)


@cli.command()
@click.argument("source")
@click.argument("document_id", metavar="ID")
@click.option("--since", help='As of when: milliseconds since 1970, or an operation time {"t": …, "i": …}  [now]')
@click.option(
    "--wait",
    type=click.FloatRange(0, LONGEST_WAIT),
    default=DEFAULT_WAIT,
    show_default=True,
    help="Seconds to wait at most.",
)
@everywhere
def fresh(where: Where, source: str, document_id: str, since: str | None, wait: float) -> int:
    """Wait until the document ID of the collection SOURCE is stored and searchable; exit code 1 when it is not."""
    from brain.commands.fresh import Wanted, run  # noqa: PLC0415 usage errors and help need no driver

    return run(Wanted(source, document_id, since, wait), where)


def _sport(word: str | None) -> str | None:
    if word is None:
        return None
    sport = canonical_sport(word)
    if not is_known(sport):
        import difflib  # noqa: PLC0415 for the hint alone

        near = difflib.get_close_matches(sport or "", SPORTS, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(SPORTS)}"
        message = f"--sport: {word!a} is no known sport: {hint}"
        raise click.UsageError(message)
    return sport


def main() -> NoReturn:
    """Run the command and end the process with its exit code."""
    try:
        result = cli.main(prog_name=PROGRAM, standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except (click.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
        _tell_json("Interrupted", "ended by Ctrl-C", code)
    except click.exceptions.NoArgsIsHelpError as exc:
        click.echo(exc.format_message(), err=True)
        code = EXIT_USAGE
        _tell_json("UsageError", "no command was named", code)
    except click.ClickException as exc:
        where = exc.ctx.command_path if isinstance(exc, click.UsageError) and exc.ctx is not None else PROGRAM
        _tell(f"{exc.format_message()} (help: {where} --help)")
        code = EXIT_USAGE
        _tell_json("UsageError", exc.format_message(), code)
    except KnowledgeError as exc:
        code = exit_code(exc)
        _tell_error(exc, code)
    except Exception as exc:  # noqa: BLE001 the last place: a bug is told whole, with the exit code for bugs
        traceback.print_exc()
        code = EXIT_BUG
        _tell_json(type(exc).__name__, "a bug of this program: the traceback is on stderr", code)
    sys.exit(code)


def _tell_error(error: KnowledgeError, code: int) -> None:
    """On stderr for people, a line a mistake; as the one JSON value on stdout where JSON was asked for."""
    _tell_json(type(error).__name__, str(error), code)
    for line in str(error).splitlines():
        _tell(line)


def _tell_json(kind: str, message: str, code: int) -> None:
    """The one JSON value of a command that ended without its answer, on stdout, where JSON was asked for."""
    if "--json" in sys.argv[1:]:
        click.echo(json.dumps({"ok": False, "error": {"type": kind, "message": message, "exitCode": code}}))


def _tell(message: str) -> None:
    click.echo(f"{PROGRAM}: {' '.join(message.split())}", err=True)
