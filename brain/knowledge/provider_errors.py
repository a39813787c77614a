"""What an OpenAI-compatible provider means by a status and an error body: our own typed error.

Source: OpenRouter's "Errors and debugging" page (status list, `error.metadata.error_type`, `Retry-After`). A failure
after the answer began comes as HTTP 200 with `{"error": …}` in the body. The provider's own message is never
repeated: it may quote the input or the key.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, cast

from brain.knowledge.errors import (
    ConfigurationFault,
    KnowledgeError,
    Malformed,
    Poison,
    Refused,
    Throttled,
    Unavailable,
)
from brain.knowledge.http import HttpReply

LONGEST_WAIT_SECONDS: Final = 60.0  # whatever the other side names, we look again after a minute

_SECONDS: Final = re.compile(r"\d+(\.\d+)?")
_WORD: Final = re.compile(r"[a-z_]{1,40}")
_CODE: Final = re.compile(r"[1-9][0-9]{2}")
_UNKNOWN_MODEL: Final = re.compile(
    r"not a valid model|model .{0,80}(does not exist|not found)|no such model", re.IGNORECASE
)

_STATUS_OF: Final[dict[str, int]] = {
    "rate_limit_exceeded": 429,
    "provider_overloaded": 503,
    "provider_unavailable": 503,
    "timeout": 504,
    "server": 500,
    "context_length_exceeded": 413,
    "invalid_request": 400,
    "invalid_prompt": 400,
    "payment_required": 402,
    "permission_denied": 403,
    "content_policy_violation": 422,
    "refusal": 422,
}
"""The status that each `error_type` stands for; a refused content is about one text, unlike a refused key."""


_WAITS: Final = frozenset({402, 503})
"""With a named wait these mean "slow down": 402 then is OpenRouter's budget in flight, not an empty account."""

_PASSING: Final = frozenset({408, 425})

_KEY: Final = (Refused, "check the key, its credit and its permissions")
_INPUT: Final = (Poison, "it cannot take this input")
_NOT_FOUND: Final = (ConfigurationFault, "it does not serve this; check the base URL and the model's name")
_FINAL: Final[Mapping[int, tuple[type[KnowledgeError], str]]] = {
    400: _INPUT,
    401: _KEY,
    402: _KEY,
    403: _KEY,
    413: _INPUT,
    422: _INPUT,
}
"""Statuses that come back the same however often one asks."""


def json_body(reply: HttpReply, who: str, *, constants: bool = False) -> Mapping[str, object]:
    """The reply's body as a JSON object.

    Raises Malformed for anything else: HTML, half a document, nesting without end, NaN or Infinity (no JSON; with
    `constants` they are read as numbers, for a caller that looks at each).
    """
    try:
        value: object = json.loads(reply.body, parse_constant=float if constants else _no_constant)
    except (ValueError, RecursionError) as exc:
        message = f"{who} answered {reply.status} with something that is no JSON: try again later"
        raise Malformed(message) from exc
    if not isinstance(value, dict):
        message = f"{who} answered {reply.status} with JSON that is no object: try again later"
        raise Malformed(message)
    return cast("dict[str, object]", value)


def raise_for_error(reply: HttpReply, who: str) -> None:
    """Raise the typed error that the reply stands for; return when it is a plain success (2xx without `error`)."""
    body: Mapping[str, object] = {}
    try:
        body = json_body(reply, who, constants=True)  # what it holds beside the error is its reader's to judge
    except Malformed:
        if _is_success(reply.status):
            raise  # else a proxy's HTML page, say: the status alone must do
    error = body.get("error")
    if _is_success(reply.status) and error is None:
        return
    raise _typed(reply, _mapping(error), who)


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """The wait named by a `Retry-After` header, in seconds from 0 to 60; None when it names none (garbage, negative).

    RFC 9110, 10.2.3: whole seconds or an HTTP date. Fractions are accepted too; a date in the past means now.
    """
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), LONGEST_WAIT_SECONDS)
    try:
        then = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    then = then if then.tzinfo is not None else then.replace(tzinfo=UTC)
    wait = (then - (now or datetime.now(UTC))).total_seconds()
    return min(max(wait, 0.0), LONGEST_WAIT_SECONDS)


def _typed(reply: HttpReply, error: Mapping[str, object], who: str) -> KnowledgeError:
    error_type = str(_mapping(error.get("metadata")).get("error_type", ""))
    status = _effective_status(reply.status, error.get("code"), error_type)
    kind = f", {error_type}" if _WORD.fullmatch(error_type) else ""
    told = f"{who} answered {status or reply.status}{kind}"
    wait = retry_after(reply.headers.get("retry-after"))
    if wait is None:
        wait = _wait_in(error)
    if status is None:
        return Malformed(f"{told}: an error without a known code; try again later")
    if status == 429 or (wait is not None and status in _WAITS):  # noqa: PLR2004 too many requests
        return Throttled(f"{told}: it asks us to slow down", retry_after=wait)
    if status in _PASSING or status >= 500:  # noqa: PLR2004 the class of statuses
        return Unavailable(f"{told}: try again later", retry_after=wait)
    unknown_model = status in {400, 404} and _UNKNOWN_MODEL.search(str(error.get("message", "")))
    kind, hint = _NOT_FOUND if unknown_model else _FINAL.get(status, _NOT_FOUND)
    return kind(f"{told}: {hint}")


def _effective_status(status: int, code: object, error_type: str) -> int | None:
    """The HTTP status, or for an error inside a success the one that its code or type stands for; None: unknown.

    A code may come as a text of digits. A refused *content* comes as 403 too, and is about one text, not about the key.
    """
    named = _STATUS_OF.get(error_type)
    if not _is_success(status):
        return named if status == 403 and named == 422 else status  # noqa: PLR2004 see above
    if isinstance(code, str) and _CODE.fullmatch(code):
        code = int(code)
    if isinstance(code, int) and 400 <= code <= 599:  # noqa: PLR2004 error statuses
        return named if code == 403 and named == 422 else code  # noqa: PLR2004 see above
    return named


def _wait_in(error: Mapping[str, object]) -> float | None:
    """`error.availability.retry_after`, in seconds."""
    wait = _mapping(error.get("availability")).get("retry_after")
    return retry_after(str(wait)) if isinstance(wait, int | float) and not isinstance(wait, bool) else None


def _is_success(status: int) -> bool:
    return 200 <= status <= 299  # noqa: PLR2004 the class of statuses


def _mapping(value: object) -> Mapping[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _no_constant(name: str) -> float:
    message = f"{name} is no JSON"
    raise ValueError(message)
