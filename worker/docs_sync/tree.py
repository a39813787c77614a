"""Reading a Docusaurus folder: which files are pages, and which of them may be told to riders.

The allow-list is a safety rule: documentation folders hold engineering and security notes too, so nothing is taken that
no glob names.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from wcmatch import glob

from worker.docs_sync.links import with_site_links
from worker.docs_sync.page import DocsPage, UnreadablePage, page_of
from worker.docs_sync.partials import with_partials
from worker.errors import ConfigurationFault

LARGEST_PAGE: Final = 4_000_000
"""Bytes of a page that is read."""
_SUFFIXES: Final = (".md", ".mdx")
_NO_FOLDERS: Final = ("node_modules", "__tests__")
_FLAGS: Final = glob.GLOBSTAR | glob.FORCEUNIX | glob.CASE | glob.DOTGLOB


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is no page of this run. `problem`: it should be one, and a person must look at it."""

    path: str
    reason: str
    problem: bool = False


@dataclass(frozen=True, slots=True)
class Tree:
    """What a folder holds. `folders` counts the pages in each folder ("." is the root), allowed or not."""

    pages: tuple[DocsPage, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    folders: Mapping[str, int] = field(default_factory=dict[str, int])


def read_tree(root: Path, allow: Sequence[str], site: str, base_url: str) -> Tree:
    """Read the pages under `root` whose relative path matches an allow glob (`**` matches everything).

    Symbolic links are refused, files and folders whose names start with `_` or `.` are no pages, and a file that cannot
    be read is a problem of its own. Raises ConfigurationFault when `root` is no folder.
    """
    if not root.is_dir():
        message = f"{root}: this is no folder"
        raise ConfigurationFault(message)
    pages: list[DocsPage] = []
    skipped: list[Skipped] = []
    folders: Counter[str] = Counter()
    for found in _walk(root):
        if isinstance(found, Skipped):
            skipped.append(found)
            continue
        folders[str(found.parent)] += 1
        if not is_allowed(found, allow):
            skipped.append(Skipped(str(found), "not allowed"))
            continue
        try:
            text = with_partials(_read(root, found), found, lambda place: _read_partial(root, place))
            pages.append(page_of(site, found, text, base_url))
        except UnreadablePage as error:
            skipped.append(Skipped(str(found), error.reason, problem=True))
    return Tree(with_site_links(pages, base_url), tuple(skipped), dict(sorted(folders.items())))


def is_allowed(path: PurePosixPath, allow: Sequence[str]) -> bool:
    """Whether a glob names this file; a glob matches the whole path, and case counts."""
    return bool(allow) and glob.globmatch(str(path), list(allow), flags=_FLAGS)


def _walk(root: Path) -> Iterator[PurePosixPath | Skipped]:
    """Every Markdown file that is a page, relative to the root, in order; and what was passed over."""
    unreadable: list[OSError] = []
    for folder, names, files in os.walk(root, onerror=unreadable.append):
        here = PurePosixPath(Path(folder).relative_to(root).as_posix())
        for name in sorted(names):
            if Path(folder, name).is_symlink():
                yield Skipped(str(here / name), "symbolic link")
        names[:] = sorted(name for name in names if not name.startswith((".", "_")) and name not in _NO_FOLDERS)
        for name in sorted(files):
            path = here / name
            if path.suffix.lower() not in _SUFFIXES:
                continue
            if Path(folder, name).is_symlink():
                yield Skipped(str(path), "symbolic link")
            elif name.startswith(("_", ".")):
                yield Skipped(str(path), "partial")
            elif not _is_text(str(path)):
                yield Skipped(ascii(str(path)), "its name is not UTF-8", problem=True)
            else:
                yield path
    for error in unreadable:
        where = PurePosixPath(Path(str(error.filename)).relative_to(root).as_posix())
        yield Skipped(f"{where}/", f"the folder cannot be read: {error.strerror}", problem=True)


def _is_text(name: str) -> bool:
    """Whether a file name decodes: the system's odd bytes come as lone surrogates."""
    return name.isprintable() or not any(0xD800 <= ord(character) <= 0xDFFF for character in name)  # noqa: PLR2004


def _read(root: Path, path: PurePosixPath) -> str:
    """The text of a page, its line ends made even. Raises UnreadablePage."""
    place = root / path
    try:
        with place.open("rb") as file:
            data = file.read(LARGEST_PAGE + 1)
    except OSError as error:
        reason = f"it cannot be read: {error.strerror}"
        raise UnreadablePage(reason) from error
    if len(data) > LARGEST_PAGE:
        reason = f"it is larger than {LARGEST_PAGE} bytes"
        raise UnreadablePage(reason)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8 (byte {error.start})"
        raise UnreadablePage(reason) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read_partial(root: Path, path: PurePosixPath) -> str | None:
    """The text of a partial inside the tree; None when there is none, or a link is on the way to it."""
    place = root / path
    if not place.is_file() or place.resolve() != root.resolve() / path:
        return None
    return _read(root, path)
