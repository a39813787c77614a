"""Links between pages as site paths: `../a/02-b.md#c` and `./b` become `/docs/a/b#c`, so that a chunk can tell them.

Only links that lead to a page of this run are rewritten: one to a page that riders may not read, to a draft or to
nothing stays as it is, and the chunker tells its words alone.
"""

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

from worker.docs_sync.page import DocsPage
from worker.sources.mdx import fences_of

_TARGET: Final = re.compile(
    r"`+[^`\n]*`+"  # code is left alone
    r"|(?P<before>\]\(|^ {0,3}\[[^\[\]\n]{1,200}\]:[ \t]+)(?P<target>[^\s()<>]{1,2000})(?=[\s)]|$)",
    re.MULTILINE,
)
_FILES: Final = (".md", ".mdx")


def with_site_links(pages: Sequence[DocsPage], base_url: str) -> tuple[DocsPage, ...]:
    """The pages, each link to one of them written as its url."""
    shown = [page for page in pages if not page.hidden]
    atlas = _Atlas(
        {page.path: page.url for page in shown}, {unquote(page.url): page.url for page in shown}, base_url.rstrip("/")
    )
    return tuple(replace(page, markdown=atlas.rewrite(page)) for page in pages)


def from_root(text: str, folder: PurePosixPath) -> str:
    """The text of a partial with its links to files counted from the root, so that they hold on a page elsewhere."""

    def rebased(match: re.Match[str]) -> str:
        path, mark, anchor = (match.group("target") or "").partition("#")
        if not path.startswith(".") or not path.lower().endswith(_FILES):
            return match.group()
        return f"{match.group('before')}/{posixpath.normpath(posixpath.join(folder, path))}{mark}{anchor}"

    return _outside_fences(text, rebased)


def _outside_fences(text: str, change: Callable[[re.Match[str]], str]) -> str:
    """The text with every link target changed that is no code."""
    if "](" not in text and "]:" not in text:
        return text
    done: list[str] = []
    at = 0
    for start, end in [*fences_of(text), (len(text), len(text))]:
        done += [_TARGET.sub(change, text[at:start]), text[start:end]]
        at = end
    return "".join(done)


class _Atlas:
    """Where every page of the run lives."""

    def __init__(self, by_path: Mapping[str, str], by_url: Mapping[str, str], base_url: str) -> None:
        self._by_path = by_path
        self._by_url = by_url
        self._base_url = base_url

    def rewrite(self, page: DocsPage) -> str:
        return _outside_fences(page.markdown, lambda match: self._link(match, page))

    def _link(self, match: re.Match[str], page: DocsPage) -> str:
        target = match.group("target")
        path, mark, anchor = target.partition("#") if target else ("", "", "")
        url = self._resolve(path.partition("?")[0], page) if path else None
        return f"{match.group('before')}{url}{mark}{anchor}" if url else match.group()

    def _resolve(self, target: str, page: DocsPage) -> str | None:
        """The url of the page that is meant: by file, from the page's folder or from the root, or by site path."""
        try:
            parts = urlsplit(target)
        except ValueError:
            return None
        if parts.scheme or parts.netloc:
            return None
        path = unquote(target)
        if PurePosixPath(path).suffix.lower() in _FILES:
            folder = str(PurePosixPath(page.path).parent)
            bare = path.removeprefix(f"{self._base_url}/").lstrip("/")
            tried = [bare] if path.startswith("/") else [posixpath.join(folder, path), path]
            return next((url for place in tried if (url := self._by_path.get(posixpath.normpath(place)))), None)
        # With and without a slash after it: the site may be set to either, and only one of them leads to a page.
        tried = [urljoin(page.url, target), urljoin(f"{page.url}/", target)]
        return next((url for place in tried if (url := self._by_url.get(unquote(place).rstrip("/")))), None)
