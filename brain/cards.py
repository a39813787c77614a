"""Rich content beside a reply: cards in the shapes that the app renders, and which of a turn's cards are shown.

The shapes and the hard rules are the app's: it calls number methods on `rating` and `progress`, so a text
there would crash it; an unknown key is left out, never null; ids are text; an item without an id is dropped. A builder
takes values as the database has them, in whatever type, and leaves out what does not fit.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, cast

from bson import ObjectId

from brain.knowledge.domain.numbers import count, number
from brain.tool import Card

MOST_CARDS: Final = 6
MOST_OF_A_TYPE: Final = 4
MOST_ROWS: Final = 20  # of a `spots_list`: the app shows three and counts the rest
LONGEST_TITLE: Final = 120  # characters
LONGEST_DESCRIPTION: Final = 200  # characters
MOST_SPORTS: Final = 10
_LONGEST_URL: Final = 2_000  # characters
_YEARS: Final = range(1900, 2200)

CARD_TYPES: Final = ("video_card", "trick_card", "spot_card", "spots_list", "tricklist_card")


def video_card(
    id_: object,
    title: object,
    *,
    thumbnail_url: object = None,
    produced_by: object = None,
    release_year: object = None,
    sport_types: object = None,
) -> Card | None:
    """A film; None without an id or a title."""
    year = count(release_year)
    return _card(
        "video_card",
        id_,
        _text(title),
        "title",
        thumbnailUrl=_url(thumbnail_url),
        producedBy=_text(produced_by),
        releaseYear=year if year in _YEARS else None,
        sportTypes=_texts(sport_types),
    )


def trick_card(
    id_: object, name: object, *, difficulty: object = None, description: object = None, image_url: object = None
) -> Card | None:
    """A trick of the trickipedia; None without an id or a name."""
    return _card(
        "trick_card",
        id_,
        _text(name),
        "name",
        difficulty=_text(difficulty),
        description=_text(description, LONGEST_DESCRIPTION),
        imageUrl=_url(image_url),
    )


def spot_card(  # noqa: PLR0913 one parameter a field of the card
    id_: object,
    name: object,
    *,
    category: object = None,
    rating: object = None,
    review_count: object = None,
    city: object = None,
    state: object = None,
    image_url: object = None,
) -> Card | None:
    """A spot; None without an id or a name. The address is "city, state", or the one of them that is known."""
    address = ", ".join(part for part in (_text(city), _text(state)) if part)
    return _card(
        "spot_card",
        id_,
        _text(name),
        "name",
        category=_text(category),
        rating=_between(rating, 0, 5),
        reviewCount=count(review_count),
        address=address or None,
        imageUrl=_url(image_url),
    )


def spots_list(spots: Iterable[Card | None], *, title: object = None) -> Card | None:
    """Several spots as one card, from their spot cards; None when there is none."""
    kept = ("_id", "name", "imageUrl", "rating", "category")
    rows = [{key: card.data[key] for key in kept if key in card.data} for card in made(spots)]
    if not rows:
        return None
    return Card("spots_list", _present(title=_text(title)) | {"spots": rows[:MOST_ROWS]})


def tricklist_card(
    id_: object, name: object, *, trick_count: object = None, landed: object = None, difficulty: object = None
) -> Card | None:
    """A rider's list; None without an id or a name. `progress` is the share of landed tricks, 0 to 100."""
    total, done = count(trick_count), count(landed)
    progress = round(100 * min(done, total) / total) if total and done is not None else None
    return _card(
        "tricklist_card",
        id_,
        _text(name),
        "name",
        trickCount=total,
        progress=progress,
        difficulty=_text(difficulty),
    )


def made(cards: Iterable[Card | None]) -> list[Card]:
    """Those that could be made."""
    return [card for card in cards if card is not None]


def shown(cards: Iterable[Card], declared: Collection[str]) -> tuple[Card, ...]:
    """Which of a turn's cards go with the reply, in the order in which the tools gave them.

    Only types that the consumer declares, nothing without an id, nothing twice, at most `MOST_OF_A_TYPE` of a type and
    `MOST_CARDS` in all.
    """
    kept: list[Card] = []
    seen: set[tuple[str, object]] = set()
    for card in cards:
        key = (card.type, _identity(card))
        fits = sum(other.type == card.type for other in kept) < MOST_OF_A_TYPE and len(kept) < MOST_CARDS
        if card.type in declared and key[1] and key not in seen and fits:
            seen.add(key)
            kept.append(card)
    return tuple(kept)


def rich_content(cards: Iterable[Card]) -> list[dict[str, object]]:
    """The cards as `richContent` stores them: an array of `{type, data}`."""
    return [{"type": card.type, "data": dict(card.data)} for card in cards]


def _identity(card: Card) -> object:
    """What a card is about: its `_id`, of a list the ids of its rows; nothing when it has none."""
    if "spots" in card.data:
        rows = cast("Sequence[dict[str, object]]", card.data["spots"])
        return tuple(row.get("_id") for row in rows)
    found = card.data.get("_id")
    return found if isinstance(found, str) else None


def _card(type_: str, id_: object, name: str | None, named: str, **data: object) -> Card | None:
    """A card, unless it lacks its id or its name."""
    identity = _id(id_)
    if identity is None or name is None:
        return None
    return Card(type_, {"_id": identity, named: name} | _present(**data))


def _present(**data: object) -> dict[str, object]:
    return {key: value for key, value in data.items() if value is not None}


def _id(value: object) -> str | None:
    if isinstance(value, ObjectId):
        return str(value)
    return value.strip() or None if isinstance(value, str) else None


def _text(value: object, longest: int = LONGEST_TITLE) -> str | None:
    """A text in one line, or nothing for anything else; lone surrogates, which no JSON reader likes, are replaced."""
    if not isinstance(value, str):
        return None
    text = " ".join(value.encode("utf-8", "replace").decode().split())
    return (text if len(text) <= longest else f"{text[: longest - 1]}…") or None


def _texts(value: object) -> list[str] | None:
    items = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    found = [text for item in items[:MOST_SPORTS] if (text := _text(item))]
    return found or None


def _url(value: object) -> str | None:
    """An https address; the app's platforms load no other."""
    if not isinstance(value, str) or not value.startswith("https://") or len(value) > _LONGEST_URL:
        return None
    return value if value.isprintable() and " " not in value else None


def _between(value: object, least: int, most: int) -> float | int | None:
    found = number(value)
    return found if found is not None and least <= found <= most else None
