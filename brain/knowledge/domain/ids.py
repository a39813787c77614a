"""Ids in every shape that TrickBook's writers use, and who owns a row.

There is no single shape: a user is stored as a 24-hex string, an ObjectId, a DBRef that holds either, or an object with
`$id`. Everything is compared after coercion, and a row whose owner cannot be read belongs to nobody.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from bson import DBRef, ObjectId

from brain.knowledge.domain.fields import LONGEST_LABEL, MOST_DEPTH

_HEX_ID: Final = re.compile(r"[0-9a-fA-F]{24}")


def document_id(value: object) -> ObjectId | str | None:
    """The id that a reference means: ObjectIds in all the shapes that TrickBook's writers use, else a plain string.

    A 24-hex string, a DBRef and an object with `$id` or `$oid` all name an ObjectId. None when it names nothing.
    """
    for _ in range(MOST_DEPTH):
        if isinstance(value, DBRef):
            value = cast("object", value.id)
        elif isinstance(value, Mapping):
            members = cast("Mapping[str, object]", value)
            value = next((members[key] for key in ("$id", "$oid", "_id") if key in members), None)
        else:
            break
    if isinstance(value, ObjectId):
        return value
    if not isinstance(value, str) or not value or len(value) > LONGEST_LABEL or not value.isprintable():
        return None
    return ObjectId(value) if _HEX_ID.fullmatch(value) else value


def hex_id(value: object) -> str | None:
    """The hex string of a document's own ObjectId, or None."""
    found = document_id(value)
    return str(found) if isinstance(found, ObjectId) else None


def object_id(value: object) -> ObjectId | None:
    """The ObjectId that a reference names, or None: never an exception for a malformed one."""
    found = document_id(value)
    return found if isinstance(found, ObjectId) else None


def same_id(one: object, other: object) -> bool:
    """Whether two references name the same document; two that name nothing are not the same."""
    found = document_id(one)
    return found is not None and found == document_id(other)


def both_forms(user_id: str) -> list[ObjectId | str]:
    """The id as a string and as an ObjectId, for `$in`: writers disagree. Only the string when it is no hex id."""
    found = object_id(user_id)
    return [user_id] if found is None else [str(found), found]


def owner_queries(user_id: str) -> list[dict[str, Any]]:
    """Filters that together find every row of this owner, each to be served by an index of its own.

    By `user.$id` and the legacy `userId`, as string or ObjectId; and by the whole value of `user`, which finds plain
    ids too, and is what the embedded server understands of a DBRef (it knows no path into one). They may find more than
    `owns` grants (a row whose fields disagree): ask `owns` of what came back.
    """
    forms = both_forms(user_id)
    whole = [*(DBRef("users", form) for form in forms), *forms]
    return [{"user.$id": {"$in": forms}}, {"user": {"$in": whole}}, {"userId": {"$in": forms}}]


def owner(row: Mapping[str, object]) -> ObjectId | str | None:
    """Who owns a row: `user`, and only where that is missing or null, `userId`; None when it cannot be read."""
    named = row.get("user")
    return document_id(row.get("userId") if named is None else named)


def owns(user_id: str, row: Mapping[str, object]) -> bool:
    """Whether the row is this user's; one with an unreadable owner is nobody's."""
    found = owner(row)
    return found is not None and found == document_id(user_id)
