"""Pages made of pieces: an imported `_partial.mdx` is put where the page shows it, as the site does.

Only Markdown files inside the tree are read, and only those that a page imports by a relative path.
"""

import posixpath
import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Final

from worker.docs_sync.links import from_root
from worker.sources.front_matter import split_front_matter
from worker.sources.markdown import headings_of
from worker.sources.mdx import fences_of

MOST_DEPTH: Final = 4
"""Partials inside partials."""
MOST_CHARACTERS: Final = 1_000_000
"""Characters that partials may add to a page."""
_IMPORT: Final = re.compile(
    r"(?:^|;[ \t]*)import\s+(?P<name>[A-Z]\w*)\s+from\s+(?P<quote>['\"])"
    r"(?P<path>\.{1,2}/[^'\"\n]+\.mdx?)(?P=quote)",
    re.MULTILINE,
)
_GIVEN_ID: Final = re.compile(r"\{(?:#|/\*\s*#)")
_CLOSING: Final = re.compile(r"(?:\s+#+)?\s*$")

ReadText = Callable[[PurePosixPath], str | None]
"""The text of a file of the tree, or None when there is none to read."""


def with_partials(text: str, path: PurePosixPath, read: ReadText, depth: int = 0) -> str:
    """The page's text with its imported Markdown in place; what cannot be read stays as it is."""
    # A backslash in the path is JavaScript's: formatters write './\_partial.md'.
    imports = {match.group("name"): match.group("path").replace("\\", "") for match in _IMPORT.finditer(text)}
    if not imports or depth >= MOST_DEPTH:
        return text
    bodies: dict[str, str] = {}
    for name, target in imports.items():
        place = PurePosixPath(posixpath.normpath(posixpath.join(path.parent, target)))
        partial = None if ".." in place.parts or place.is_absolute() else read(place)
        if partial is not None:
            whole = with_partials(split_front_matter(partial).body, place, read, depth + 1)
            bodies[name] = from_root(_with_ids(whole), place.parent).strip("\n")
    if not bodies:
        return text
    names = "|".join(map(re.escape, bodies))
    shown = re.compile(rf"^[ \t]*<(?P<name>{names})(?:\s[^<>]{{0,2000}})?/>[ \t]*$", re.MULTILINE)
    fences = fences_of(text)
    added = 0

    def body(match: re.Match[str]) -> str:
        nonlocal added
        told = bodies[match.group("name")]
        if added + len(told) > MOST_CHARACTERS or any(start <= match.start() < end for start, end in fences):
            return match.group()
        added += len(told)
        return f"\n{told}\n"

    return shown.sub(body, text)


def _with_ids(text: str) -> str:
    """The partial with its anchors spelled out: the site numbers repeated headings file by file, not page by page."""
    lines = text.split("\n")
    for line, anchor in headings_of(text):
        if not _GIVEN_ID.search(lines[line]):
            lines[line] = f"{_CLOSING.sub('', lines[line])} {{#{anchor}}}"
    return "\n".join(lines)
