"""Where a command works, and how it answers: the options that every command takes."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brain.config import BrainSettings


@dataclass(frozen=True, slots=True)
class Where:
    """`data` is the embedded database's folder (None: ATLAS_URI); `as_json` asks for one JSON value on stdout."""

    data: Path | None
    as_json: bool

    @property
    def words(self) -> str:
        """The options that name the same database, for a command that somebody is told to run."""
        return "" if self.data is None else f" --data {shlex.quote(str(self.data))}"

    def settings(self, *, embedding: bool = False) -> "BrainSettings":
        """The settings, with what the command cannot do without: an address, and a key when it is for `embedding`.

        Raises ConfigurationFault that names all that is missing.
        """
        from brain.config import PREFIX, BrainSettings  # noqa: PLC0415 usage errors and help need no pydantic
        from brain.knowledge.settings import load  # noqa: PLC0415 likewise

        settings = load(BrainSettings, os.environ, PREFIX, embedded=self.data is not None)
        needed = {
            "ATLAS_URI": self.data is None,
            "OPENROUTER_API_KEY": embedding and settings.embedding_provider == "openrouter",
        }
        settings.require(*(name for name, is_needed in needed.items() if is_needed), environ=os.environ)
        return settings
