"""From a file's place to its page's url, by Docusaurus' rules for the docs plugin.

Numeric prefixes are dropped from folders and files, except where they look like a date or a version; `index`, `README`
and a file named like its folder are the folder's own page; front matter `slug` and `id` override (an absolute slug
counts from the base url, a relative one from the folder).
"""

import posixpath
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

_PREFIX: Final = re.compile(r"\d+\s*[-_.]+\s*(?P<rest>[^-_.\s].*)")
_NO_PREFIX: Final = re.compile(
    r"(?:\d{2}|\d{4})[-_.]\d{2}(?:[-_.](?:\d{2}|\d{4}))?"  # 2026-11-30: a date
    r"|\d+[_.]\d+"  # 7.0: a version
)
_INDEX: Final = ("index", "readme")


def without_prefix(name: str) -> str:
    """A file or folder name without its numeric prefix."""
    match = None if _NO_PREFIX.match(name) else _PREFIX.fullmatch(name)
    return match.group("rest") if match else name


def page_id(path: PurePosixPath, front_matter: Mapping[str, object]) -> str:
    """The last part of the page's id: front matter `id`, else the file's name without prefix."""
    given = front_matter.get("id")
    return given if isinstance(given, str) and given else without_prefix(path.stem)


def page_url(path: PurePosixPath, front_matter: Mapping[str, object], base_url: str) -> str:
    """The page's url: the base and the page's slug, percent-encoded, without a slash at the end."""
    folder = "/" + "/".join(without_prefix(part) for part in path.parent.parts)
    given = front_matter.get("slug")
    if isinstance(given, int | float) and not isinstance(given, bool):
        given = str(given)  # `slug: 2026` is a number to YAML
    if isinstance(given, str) and given.strip():
        slug = posixpath.join(folder, given.strip())
    elif _is_index(path):
        slug = folder
    else:
        slug = posixpath.join(folder, page_id(path, front_matter))
    slug = posixpath.normpath(f"/{slug}").lstrip("/")  # normpath keeps `..` inside the root
    return f"{base_url.rstrip('/')}/{quote(slug, safe='/~%@:+,')}".rstrip("/") or "/"


def _is_index(path: PurePosixPath) -> bool:
    stem = path.stem.lower()
    return stem in _INDEX or (bool(path.parent.parts) and stem == path.parent.name.lower())
