"""The command line: options, help and exit codes; the work is in `worker.commands`.

Exit codes: 0 done, 1 ran to the end and found differences or failures, 64 usage, 70 bug, 75 try again later,
78 configuration.
"""

import asyncio
import json
import sys
import traceback
from pathlib import Path
from typing import Final

import click

from worker import docs_rules
from worker.cli_options import MOST_SAMPLED, checked, everywhere
from worker.cli_pin import pin
from worker.commands.where import Where
from worker.config import SOURCES
from worker.errors import EXIT_USAGE, KnowledgeError, exit_code
from worker.lifecycle import code_of, leaves_of

PROGRAM: Final = "trickbook-worker"
INTERRUPTED: Final = 130  # 128 + SIGINT, what a shell expects of a command that Ctrl-C ended

_SOURCE = click.option("--source", "sources", multiple=True, type=click.Choice(SOURCES), help="Only this; repeatable.")
_SAMPLE = click.option(
    "--sample",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of sample data, loaded into an empty embedded database.",
)


_SITE = click.option(
    "--site",
    default="docs",
    show_default=True,
    metavar="NAME",
    callback=checked(docs_rules.site_name, f"it must be {docs_rules.SITE}"),
    help="Name of the site.",
)
_BASE_URL = click.option(
    "--base-url",
    default="/docs",
    show_default=True,
    callback=checked(docs_rules.base_url, f"it must be {docs_rules.BASE_URL}"),
    help="Where the site's pages start.",
)
_ALLOW = click.option(
    "--allow",
    multiple=True,
    metavar="GLOB",
    callback=checked(docs_rules.allowed, docs_rules.GLOBS),
    help="Pages riders may read, relative to PATH; repeatable.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Keep TrickBook's knowledge chunks fresh."""


@cli.command()
@everywhere
@_SAMPLE
def run(where: Where, sample: Path | None) -> int:
    """Follow the database and keep the chunks fresh, until stopped."""
    from worker.commands.run import run as command

    return asyncio.run(command(where, sample))


@cli.command()
@everywhere
@_SAMPLE
def demo(where: Where, sample: Path | None) -> int:
    """Show the whole way of a change, as a story that ends by itself."""
    from worker.commands.demo import demo as command

    return asyncio.run(command(where, sample))


@cli.command("check-config")
@everywhere
def check_config(where: Where) -> int:
    """Check every setting, the database and the port, and say all that is wrong."""
    from worker.commands.check_config import check_config as command

    return asyncio.run(command(where))


@cli.command()
@everywhere
@_SOURCE
def backfill(where: Where, sources: tuple[str, ...]) -> int:
    """Look at every document once; only what differs is embedded."""
    from worker.commands.backfill import backfill as command

    return asyncio.run(command(where, sources))


@cli.command()
@everywhere
@_SOURCE
def plan(where: Where, sources: tuple[str, ...]) -> int:
    """Say what backfill would do now: documents, chunks, tokens, money, time. Writes nothing."""
    from worker.commands.plan import plan as command

    return asyncio.run(command(where, sources))


@cli.command()
@everywhere
@_SOURCE
@click.option("--repair", is_flag=True, help="Mend what differs, through the worker's own pipeline.")
@click.option(
    "--sample",
    type=click.IntRange(0, MOST_SAMPLED),
    metavar="N",
    help="Embed N stored texts again, to find vectors of another model (default: 8).",
)
def verify(where: Where, sources: tuple[str, ...], *, repair: bool, sample: int | None) -> int:
    """Recompute every chunk's text from the sources and say what differs from what is stored."""
    from worker.commands.verify import Order
    from worker.commands.verify import verify as command

    return asyncio.run(command(where, Order(sources, repair=repair, sample=sample)))


@cli.command()
@everywhere
def status(where: Where) -> int:
    """Say who leads, how far the stream is stored, which scans are done, and how much there is."""
    from worker.commands.status import status as command

    return asyncio.run(command(where))


@cli.group("index")
def index() -> None:
    """The search index that Atlas needs; other servers need none."""


@index.command("ensure")
@everywhere
@click.option("--update", is_flag=True, help="Define one anew that is defined otherwise.")
def ensure_index(where: Where, *, update: bool) -> int:
    """Create it where it is missing, and wait until it can be searched (two minutes at most)."""
    from worker.commands.index import ensure_index as command

    return asyncio.run(command(where, update=update))


@index.command("status")
@everywhere
def index_status(where: Where) -> int:
    """Say how it stands, and which chunks it leaves out."""
    from worker.commands.index import index_status as command

    return asyncio.run(command(where))


@cli.command("docs-sync")
@click.argument("path", type=click.Path(path_type=Path))
@_SITE
@_BASE_URL
@_ALLOW
@click.option("--prune", is_flag=True, help="Remove pages of this site that are gone from PATH.")
@click.option("--prune-anyway", is_flag=True, help="Prune even when a large share of the site would go.")
@click.option("--dry-run", is_flag=True, help="Change nothing, say what would change.")
@everywhere
def docs_sync(  # noqa: PLR0913 - one parameter an option
    where: Where,
    path: Path,
    *,
    site: str,
    base_url: str,
    allow: tuple[str, ...],
    prune: bool,
    prune_anyway: bool,
    dry_run: bool,
) -> int:
    """Bring a Docusaurus tree into the docs collection, by hash diff."""
    from worker.commands.docs_sync import Order
    from worker.commands.docs_sync import docs_sync as command

    order = Order(path, site, base_url, allow, prune=prune, prune_anyway=prune_anyway, dry_run=dry_run)
    return asyncio.run(command(where, order))


@cli.group("dead-letters")
def dead_letters() -> None:
    """Documents that could not be processed."""


@dead_letters.command("list")
@everywhere
def list_letters(where: Where) -> int:
    """Show them, oldest first."""
    from worker.commands.dead_letters import list_letters as command

    return asyncio.run(command(where))


@dead_letters.command("retry")
@click.argument("keys", nargs=-1)
@everywhere
def retry_letters(where: Where, keys: tuple[str, ...]) -> int:
    """Look at them again (all, or these KEYS as `list` shows them)."""
    from worker.commands.dead_letters import retry_letters as command

    return asyncio.run(command(where, keys))


@dead_letters.command("drop")
@click.argument("keys", nargs=-1, required=True)
@everywhere
def drop_letters(where: Where, keys: tuple[str, ...]) -> int:
    """Forget these KEYS; the documents stay as they are stored until they change."""
    from worker.commands.dead_letters import drop_letters as command

    return asyncio.run(command(where, keys))


cli.add_command(pin)


def main() -> None:
    """Run the command and end the process with its exit code."""
    try:
        code = cli.main(prog_name=PROGRAM, standalone_mode=False)
    except click.exceptions.Abort:
        code = INTERRUPTED
        _tell_json("Interrupted", "ended by Ctrl-C: what was done is stored", code)
    except click.ClickException as error:
        error.show()
        code = EXIT_USAGE
        help_asked_for = isinstance(error, click.exceptions.NoArgsIsHelpError)
        _tell_json("UsageError", "no command was named" if help_asked_for else error.format_message(), code)
    except Exception as error:  # noqa: BLE001 - the last place
        code = _ended(error)
    sys.exit(code if isinstance(code, int) else 0)


def _ended(error: Exception) -> int:
    """Say what ended the command, a bug whole; its exit code. What ends a task of several comes as a group."""
    code = code_of(error)
    foreseen = [leaf for leaf in leaves_of(error) if isinstance(leaf, KnowledgeError)]
    if len(foreseen) == len(list(leaves_of(error))):
        _tell(next(leaf for leaf in foreseen if exit_code(leaf) == code), code)
    else:
        traceback.print_exception(error)
        _tell_json(type(error).__name__, "a bug of this program: the traceback is on stderr", code)
    return code


def _tell(error: KnowledgeError, code: int) -> None:
    """Say what is wrong: on stderr for people, and as the one JSON value where JSON was asked for."""
    _tell_json(type(error).__name__, str(error), code)
    for line in str(error).splitlines():
        click.echo(f"{PROGRAM}: {line}", err=True)


def _tell_json(kind: str, message: str, code: int) -> None:
    """The one JSON value of a command that ended without its answer, on stdout, where JSON was asked for."""
    if "--json" in sys.argv[1:]:
        error = {"type": kind, "message": message, "exitCode": code}
        sys.stdout.write(json.dumps({"ok": False, "error": error}) + "\n")
