"""`dead-letters list|retry|drop`: documents that could not be processed."""

from collections.abc import Sequence

from worker.app import opened
from worker.commands.leading import hand_over
from worker.commands.where import Where, table
from worker.errors import EXIT_DIFFERENCES, EXIT_OK
from worker.model import DeadLetter, DocKey
from worker.parts import App


async def list_letters(where: Where) -> int:
    """Show every letter; exit code 0, letters or not: they are no failure of this command.

    With --json also which version it was (the operation time of the read), and the SHA-256 of its content: as long as
    that stays the same the tries are added up.
    """
    async with opened(embedded=where.embedded, data=where.data, create=False, writes=False) as app:
        letters = await app.world.papers.letters.all()
    rows = [
        [str(letter.key), letter.reason, letter.tries, letter.last_at.isoformat(), letter.detail] for letter in letters
    ]
    shown = table("dead letters", ["key", "reason", "tries", "last", "detail"], rows) if rows else "No dead letters."
    where.answer({"deadLetters": [_row(letter) for letter in letters]}, shown)
    return EXIT_OK


async def retry_letters(where: Where, keys: Sequence[str]) -> int:
    """Look at the documents again; 1 when some are still dead afterwards, or when a key has no letter."""
    async with opened(embedded=where.embedded, data=where.data, create=False) as app:
        chosen = await _chosen(app, keys)
        await hand_over(app, "look", {"keys": _raw(chosen)}, lambda leader: leader.look(chosen, "repair"))
        left = {letter.key for letter in await app.world.papers.letters.all()} & set(chosen)
    where.answer(
        {"retried": len(chosen), "stillDead": [str(key) for key in left]},
        f"{len(chosen)} looked at again, {len(left)} still dead.",
    )
    return EXIT_DIFFERENCES if left or len(chosen) < len(set(keys)) else EXIT_OK


async def drop_letters(where: Where, keys: Sequence[str]) -> int:
    """Forget letters; 1 when a key has none."""
    async with opened(embedded=where.embedded, data=where.data, create=False) as app:
        chosen = await _chosen(app, keys)
        await hand_over(app, "forget", {"keys": _raw(chosen)}, lambda leader: leader.forget(chosen))
    where.answer({"dropped": len(chosen)}, f"{len(chosen)} forgotten.")
    return EXIT_OK if len(chosen) == len(keys) else EXIT_DIFFERENCES


async def _chosen(app: App, keys: Sequence[str]) -> Sequence[DocKey]:
    letters = await app.world.papers.letters.all()
    return [letter.key for letter in letters if not keys or str(letter.key) in keys]


def _raw(keys: Sequence[DocKey]) -> list[dict[str, object]]:
    return [{"source": key.source, "id": key.raw} for key in keys]


def _row(letter: DeadLetter) -> dict[str, object]:
    return {
        "key": str(letter.key),
        "source": letter.key.source,
        "reason": letter.reason,
        "detail": letter.detail,
        "version": {"t": letter.version.time, "i": letter.version.inc},
        "digest": letter.digest,
        "tries": letter.tries,
        "firstAt": letter.first_at.isoformat(),
        "lastAt": letter.last_at.isoformat(),
    }
