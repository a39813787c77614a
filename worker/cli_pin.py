"""The command line of `pin`; the work is in `worker.commands.pin` and `pin_build`."""

import asyncio

import click

from worker.cli_options import MOST_SAMPLED, everywhere
from worker.commands.where import Where


@click.group("pin")
def pin() -> None:
    """The embedding model whose chunks are searched, and another one built beside it."""


@pin.command("status")
@everywhere
def pin_status(where: Where) -> int:
    """Show every generation of chunks, how far a build is, and whether a switch is allowed."""
    from worker.commands.pin import status as command

    return asyncio.run(command(where))


@pin.command("build")
@click.option("--model", help="The exact name of the model (vendor/model); none: go on with what is being built.")
@click.option("--dimensions", type=click.IntRange(min=1), help="Its width, where it is not known here.")
@click.option("--provider", type=click.Choice(["openrouter", "local"]), help="By default what the model needs.")
@everywhere
def pin_build(where: Where, *, model: str | None, dimensions: int | None, provider: str | None) -> int:
    """Build the chunks of another model beside those that are searched; both are kept fresh from then on."""
    from worker.commands.pin_build import Order
    from worker.commands.pin_build import build as command

    return asyncio.run(command(where, Order(model, dimensions, provider)))


@pin.command("switch")
@click.option("--accept-dead-letters", is_flag=True, help="Also if dead-lettered documents are not found any more.")
@click.option("--accept-unwatched", is_flag=True, help="Also if sources that are not watched are not found any more.")
@click.option(
    "--sample",
    type=click.IntRange(0, MOST_SAMPLED),
    metavar="N",
    help="Embed N stored texts again, to find vectors of another model (default: 8).",
)
@everywhere
def pin_switch(where: Where, *, accept_dead_letters: bool, accept_unwatched: bool, sample: int | None) -> int:
    """Search the other model's chunks from now on, if they are complete and right."""
    from worker.commands.pin import switch as command

    return asyncio.run(
        command(where, accept_dead_letters=accept_dead_letters, accept_unwatched=accept_unwatched, sample=sample)
    )


@pin.command("rollback")
@everywhere
def pin_rollback(where: Where) -> int:
    """Search the previous model's chunks again, at once."""
    from worker.commands.pin import rollback as command

    return asyncio.run(command(where))


@pin.command("drop")
@click.argument("name", required=False)
@click.option("--yes", is_flag=True, help="Do not ask.")
@everywhere
def pin_drop(where: Where, name: str | None, *, yes: bool) -> int:
    """Remove the chunks that are not searched, for good (NAME: their collection or model)."""
    from worker.commands.pin import drop as command

    return asyncio.run(command(where, name, yes=yes))
