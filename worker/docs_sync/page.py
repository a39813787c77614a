"""A documentation page as it is stored in the docs collection."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath

from brain.knowledge.domain.clean import one_line
from worker.docs_sync.names import page_id, page_url
from worker.sources.front_matter import is_set, split_front_matter
from worker.sources.markdown import first_heading


@dataclass(frozen=True, slots=True)
class DocsPage:
    """One page. `hash` is the SHA-256, in hex, over everything else that is stored, except the date."""

    site: str
    path: str
    title: str
    markdown: str
    url: str
    front_matter: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def id(self) -> str:
        """The `_id` of its row."""
        return f"{self.site}/{self.path}"

    @property
    def hidden(self) -> bool:
        """Whether it is a draft or unlisted: stored, but said by nobody."""
        return is_set(self.front_matter, "draft") or is_set(self.front_matter, "unlisted")

    @property
    def hash(self) -> str:
        """The hash by which a change is noticed."""
        body = json.dumps(self._content(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(body.encode("ascii")).hexdigest()

    def as_row(self, now: datetime) -> dict[str, object]:
        """The row without its `_id`."""
        return {**self._content(), "hash": self.hash, "updatedAt": now}

    def _content(self) -> dict[str, object]:
        return {
            "site": self.site,
            "path": self.path,
            "title": self.title,
            "markdown": self.markdown,
            "url": self.url,
            "frontMatter": dict(self.front_matter),
        }


class UnreadablePage(Exception):
    """A file that is no page; `reason` names the mistake, never the text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def page_of(site: str, path: PurePosixPath, text: str, base_url: str) -> DocsPage:
    """The page in a file's text. Raises UnreadablePage for front matter that cannot be read."""
    front = split_front_matter(text)
    if front.problem:
        raise UnreadablePage(front.problem)
    named = (front.values.get("title"), first_heading, front.values.get("sidebar_label"), page_id(path, front.values))
    title = ""
    for name in named:
        found = name(front.body) if callable(name) else name
        if isinstance(found, str | int | float) and not isinstance(found, bool) and one_line(str(found)):
            title = one_line(str(found))
            break
    url = page_url(path, front.values, base_url)
    return DocsPage(site, str(path), title, front.body, url, front.values)
