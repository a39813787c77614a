"""The options that several commands take."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec

import click

from brain.commands.where import Where
from brain.knowledge.names import DATA

Options = ParamSpec("Options")


def everywhere(command: Callable[Concatenate[Where, Options], int]) -> Callable[..., int]:
    """Add the options that every command with a database takes; the command gets them as one value."""

    @functools.wraps(command)
    def placed(
        embedded: bool,  # noqa: FBT001 click passes options by name
        data: Path | None,
        as_json: bool,  # noqa: FBT001 likewise
        *args: Options.args,
        **options: Options.kwargs,
    ) -> int:
        return command(Where(data or (DATA if embedded else None), as_json), *args, **options)

    folder = click.Path(path_type=Path, file_okay=False)
    add_json = click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON value on stdout and nothing else there."
    )
    add_data = click.option("--data", type=folder, help=f"Folder of the embedded database [{DATA}].")
    add_embedded = click.option(
        "--embedded", is_flag=True, help="Use the embedded database of a running worker instead of ATLAS_URI."
    )
    return add_json(add_embedded(add_data(placed)))


def hex_id(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    """The one spelling of an id that was typed. Raises BadParameter when it is none."""
    if text is None:
        return None
    from brain.knowledge.domain import ids  # noqa: PLC0415 usage errors and help need no driver

    known = ids.hex_id(text)
    if known is None:
        message = "an id is 24 hexadecimal digits"
        raise click.BadParameter(message)
    return known
