"""Paths on the site; the origin is configuration. A link with a missing part is no link, never a guess.

The shapes are those of the site's own routes.
"""

import re
from typing import Final
from urllib.parse import quote

from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.ids import hex_id
from brain.knowledge.sports import canonical_sport

CATEGORY_SLUGS: Final = {
    "skateboarding": "skateboarding",
    "snowboarding": "snowboarding",
    "surfing": "surfing",
    "bmx": "bmx",
    "scooter": "scooter",
    "rollerblading": "inline-skating",
    "longboarding": "longboarding",
}
"""Sport to the slug of its page on the site; other sports have no page."""


def name_slug(name: str) -> str | None:
    """The slug that the site makes of a name: lower case, every run outside a-z0-9 one dash; None when empty."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or None


def trick_path(fields: Fields) -> str | None:
    """The page of a trick of the catalogue."""
    slug, page = fields.slug("url"), CATEGORY_SLUGS.get(canonical_sport(fields.line("category")) or "")
    return f"/trickipedia/{page}/{slug}" if page and slug else None


def spot_path(fields: Fields) -> str | None:
    """The three-part path that works; `/spots/{id}` is the page of a state."""
    slug, identity = name_slug(fields.line("name")), hex_id(fields.raw("_id"))
    state = fields.line("state").lower() or "unknown"
    return f"/spots/{quote(state, safe='')}/{slug}?id={identity}" if slug and identity else None


def film_path(fields: Fields) -> str | None:
    """The page of a film, by its slug or else its id."""
    identity = fields.slug("slug") or hex_id(fields.raw("_id"))
    return f"/media/couch/{identity}" if identity else None


def event_path(fields: Fields) -> str | None:
    """The page of an event."""
    slug = fields.slug("slug")
    return f"/events/{slug}" if slug else None


def rider_path(fields: Fields) -> str | None:
    """The page of a rider."""
    slug = fields.slug("slug")
    return f"/riders/{slug}" if slug else None
