"""What may name a site, the path of its pages and the pages allowed: the same for settings and for options."""

import re
from typing import Final

SITE: Final = "a name of letters, digits, dots and hyphens"
BASE_URL: Final = "the path of the site's pages, such as /docs"
GLOBS: Final = "globs are relative to the docs folder, with / between names and without .."


def site_name(name: str) -> str:
    """The name; raises ValueError for one that is not `SITE`."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,63}", name):
        message = "it is no such name"
        raise ValueError(message)
    return name


def base_url(url: str) -> str:
    """The path; raises ValueError for what is not `BASE_URL`."""
    if not re.fullmatch(r"/(?!/)[^\s?#\\]{0,200}", url):
        message = "it is no path of a site"
        raise ValueError(message)
    return url


def allowed(globs: tuple[str, ...]) -> tuple[str, ...]:
    """The globs; raises ValueError for one that leaves the folder."""
    for glob in globs:
        if glob.startswith(("/", "~")) or "\\" in glob or ".." in glob.split("/") or not glob.isprintable():
            raise ValueError(GLOBS)
    return globs
