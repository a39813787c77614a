"""The options that every command takes."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar

import click

from brain.knowledge.names import DATA
from worker.commands.where import Where

MOST_SAMPLED: Final = 10_000  # vectors in memory: 60 MB at 1,536 dimensions

Options = ParamSpec("Options")
T = TypeVar("T")


def checked(rule: Callable[[T], T], words: str) -> Callable[[click.Context, click.Parameter, T], T]:
    """The callback of an option whose values keep a rule that raises ValueError; `words` say what they are."""

    def check(_context: click.Context, _option: click.Parameter, value: T) -> T:
        try:
            return rule(value)
        except ValueError as error:
            raise click.BadParameter(words) from error

    return check


def everywhere(command: Callable[Concatenate[Where, Options], int]) -> Callable[..., int]:
    """Add the options that every command takes; the command gets them as one value."""

    @functools.wraps(command)
    def placed(
        embedded: bool,  # noqa: FBT001 - click passes options by name
        data: Path | None,
        as_json: bool,  # noqa: FBT001 - likewise
        *args: Options.args,
        **options: Options.kwargs,
    ) -> int:
        where = Where(embedded=embedded or data is not None, data=data or DATA, as_json=as_json)
        return command(where, *args, **options)

    folder = click.Path(path_type=Path, file_okay=False)
    add_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON value on stdout, nothing else.")
    add_data = click.option("--data", type=folder, help=f"Folder of the embedded database (default: {DATA}).")
    add_embedded = click.option("--embedded", is_flag=True, help="Use the embedded database, not ATLAS_URI.")
    return add_embedded(add_data(add_json(placed)))
