"""What no embedding model can take, checked before any model is asked."""

from collections.abc import Sequence

from brain.knowledge.errors import Poison


def check_texts(texts: Sequence[str]) -> None:
    """Raise Poison when a text is blank or is no valid Unicode (half of a surrogate pair); the text is never quoted."""
    for position, text in enumerate(texts, start=1):
        if not text.strip():
            message = f"text {position} of {len(texts)} is blank: it has no meaning to embed"
            raise Poison(message)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as exc:
            message = f"text {position} of {len(texts)} holds half of a surrogate pair: it is no Unicode text"
            raise Poison(message) from exc
