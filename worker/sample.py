"""The sample data: a small TrickBook in files, for trying things out, the demo and the tests.

A folder holds `<collection>.json` or `<collection>/*.json` (arrays in MongoDB Extended JSON), and `docs/`, a Docusaurus
tree. It may only ever be written to an embedded database that this project started: the writer takes that server as its
proof, not an address.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from bson import json_util

from worker.errors import ConfigurationFault
from worker.model import Document

DOCS_FOLDER: Final = "docs"
DOCS_ALLOW: Final = ("*.md", "*.mdx", "[0-9]*/**")
"""Which pages of the sample's docs riders may read: all but those under `internal/`."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows by collection, and the folder of the documentation tree if there is one."""

    rows: Mapping[str, Sequence[Document]]
    docs: Path | None


def read_sample(folder: Path) -> Sample:
    """Read the sample; raises ConfigurationFault naming the file that is not readable."""
    files: dict[str, list[Path]] = {path.stem: [path] for path in sorted(folder.glob("*.json"))}
    for path in sorted(folder.glob("*/*.json")):
        if path.parent.name != DOCS_FOLDER:
            files.setdefault(path.parent.name, []).append(path)
    if not files:
        message = f"{folder} holds no sample data: no <collection>.json in it"
        raise ConfigurationFault(message)
    rows = {name: [row for path in paths for row in _rows(path)] for name, paths in files.items()}
    docs = folder / DOCS_FOLDER
    return Sample(rows, docs if docs.is_dir() else None)


def _rows(path: Path) -> Sequence[Document]:
    try:
        value = json_util.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError) as error:
        message = f"{path} is not readable as an array of Extended JSON: {error}"
        raise ConfigurationFault(message) from error
    return cast("list[Document]", value)
