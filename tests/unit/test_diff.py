"""The delta between what is stored and what a document says."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from bson import Timestamp

from brain.knowledge.chunk import Metadata, content_hash, text_hash
from brain.knowledge.pin import Pin
from tests.support.sim_source import PIN, WordCounter
from worker.errors import Poison
from worker.model import DeadLetter, Delta, DocKey, DocState, LedgerRow, Part, Shaped, StoredChunk
from worker.pipeline.diff import Target, diff, diff_beside

KEY: Final = DocKey.of("tricks", 1)
OTHER: Final = DocKey.of("tricks", 2)
TARGET: Final = Target(PIN, WordCounter(), {"tricks": 1})
NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
METADATA: Final = Metadata("trick", "Ollie")


def at(seconds: int) -> Timestamp:
    """A version."""
    return Timestamp(seconds, 0)


def part(name: str, text: str, metadata: Metadata = METADATA) -> Part:
    """A part of a document."""
    return Part(name, text, metadata)


def stored_after(delta: Delta, before: DocState = DocState()) -> DocState:  # noqa: B008 - frozen
    """The state once the delta is stored."""
    rows = {chunk.id: chunk for chunk in before.chunks if chunk.id not in delta.remove}
    for draft in (*delta.write, *delta.rewrite):
        hashes = draft.text_hash, draft.content_hash
        rows[draft.id] = StoredChunk(draft.id, *hashes, PIN.model, PIN.dimensions, delta.version)
    return DocState(delta.ledger or before.ledger, tuple(rows.values()))


def difference(shaped: Shaped, state: DocState, version: int = 5) -> Delta:
    """The delta at a version."""
    return diff(KEY, at(version), shaped, state, TARGET)


ONE: Final = Shaped((part("a", "pop the tail"), part("b", "slide the foot")), face="Ollie")
STORED: Final = stored_after(difference(ONE, DocState(), 1))


def test_a_version_that_is_later_than_the_read_is_written_over() -> None:
    """A chunk's with its ledger row, and the ledger's alone; nothing is embedded for it, and an equal one is left."""
    first, second = STORED.chunks
    late = replace(STORED, chunks=(replace(first, version=at(6)), second))
    delta = difference(ONE, late)
    assert ([draft.id for draft in delta.rewrite], delta.write, delta.kept) == ([first.id], (), 1)
    assert delta.ledger is not None
    frozen = replace(STORED, ledger=LedgerRow(KEY, at(6), face="Ollie"))
    delta = difference(ONE, frozen)
    assert (delta.rewrite, delta.write, delta.kept) == ((), (), 2)
    assert delta.ledger == LedgerRow(KEY, at(5), face="Ollie")
    assert difference(ONE, late, 6).empty
    assert difference(ONE, frozen, 6).empty


def test_a_new_document_is_written_whole() -> None:
    """Every part with its hashes and its length, and a ledger row; its face is new to all who name it."""
    delta = difference(ONE, DocState())
    assert [draft.id for draft in delta.write] == ["tricks/n:1/a", "tricks/n:1/b"]
    first = delta.write[0]
    assert (first.text_hash, first.tokens) == (text_hash("pop the tail"), 3)
    assert first.content_hash == content_hash("pop the tail", METADATA.as_fields(), 1)
    assert delta.ledger == LedgerRow(KEY, at(5), face="Ollie")
    assert delta.refresh_neighbours


def test_the_same_again_is_nothing() -> None:
    """Noise, a replay, a touch: nothing to write, not even a newer version."""
    delta = difference(ONE, STORED)
    assert delta.empty
    assert delta.kept == 2


def test_a_changed_text_is_embedded_and_the_rest_kept() -> None:
    """Only the part that changed; one that is gone is removed."""
    delta = difference(Shaped((part("a", "pop it"),), face="Ollie"), STORED)
    assert [draft.text for draft in delta.write] == ["pop it"]
    assert delta.remove == ("tricks/n:1/b",)
    assert (delta.rewrite, delta.kept, delta.refresh_neighbours) == ((), 0, False)


def test_changed_metadata_keeps_the_vector() -> None:
    """Rewritten, not embedded."""
    renamed = Metadata("trick", "Ollie", url="/x")
    delta = difference(Shaped((part("a", "pop the tail", renamed), ONE.parts[1]), face="Ollie"), STORED)
    assert [draft.id for draft in delta.rewrite] == ["tricks/n:1/a"]
    assert (delta.write, delta.kept) == ((), 1)


def test_a_new_chunker_version_rewrites_and_embeds_nothing() -> None:
    """The texts are the same, so are their vectors."""
    delta = diff(KEY, at(5), ONE, STORED, replace(TARGET, chunker_versions={"tricks": 2}))
    assert (len(delta.rewrite), len(delta.write)) == (2, 0)


def test_another_model_embeds_everything() -> None:
    """By name or by width."""
    for pin in (replace(PIN, model="other"), replace(PIN, dimensions=8)):
        assert len(diff(KEY, at(5), ONE, STORED, replace(TARGET, pin=pin)).write) == 2


def test_a_row_that_somebody_removed_comes_back() -> None:
    """The rows decide, not the ledger."""
    delta = difference(ONE, replace(STORED, chunks=STORED.chunks[:1]))
    assert [draft.id for draft in delta.write] == ["tricks/n:1/b"]


def test_a_document_that_is_gone_leaves_a_tombstone() -> None:
    """All chunks go, the ledger remembers, and who names it is refreshed; a second look finds nothing to do."""
    delta = difference(Shaped(), STORED)
    assert delta.remove == ("tricks/n:1/a", "tricks/n:1/b")
    assert delta.ledger == LedgerRow(KEY, at(5), deleted=True)
    assert delta.refresh_neighbours
    assert difference(Shaped(), stored_after(delta, STORED), 9).empty


def test_a_document_that_never_was_leaves_nothing() -> None:
    """A delete of something that was never stored needs no tombstone."""
    assert difference(Shaped(), DocState()).empty


def test_one_that_says_nothing_keeps_face_and_refs() -> None:
    """Others may name it, and it may have something to say once a neighbour is there."""
    delta = difference(Shaped(refs=(OTHER,), face="Ollie"), DocState())
    assert delta.ledger == LedgerRow(KEY, at(5), deleted=True, face="Ollie", refs=(str(OTHER),), seen=(None,))


def test_what_has_ended_is_watched_no_longer() -> None:
    """Only what shows has an end to wait for."""
    assert difference(replace(ONE, expires_at=NOON), DocState()).ledger == LedgerRow(
        KEY, at(5), face="Ollie", expires_at=NOON
    )
    ended = difference(Shaped(expires_at=NOON), STORED).ledger
    assert ended is not None
    assert ended.expires_at is None


def test_a_moved_ledger_is_stored_though_no_text_changed() -> None:
    """A new end, a new neighbour, another face of one, and a debt that is paid."""
    assert difference(replace(ONE, expires_at=NOON), STORED).ledger is not None
    showing = replace(ONE, refs=(OTHER, OTHER, KEY), faces={OTHER: "Kickflip"})
    delta = difference(showing, STORED)
    assert delta.ledger is not None
    assert (delta.ledger.refs, delta.ledger.seen) == ((str(OTHER),), ("Kickflip",))
    assert difference(showing, stored_after(delta, STORED)).empty
    assert difference(replace(showing, faces={OTHER: "Pop"}), stored_after(delta, STORED)).ledger is not None
    assert STORED.ledger is not None
    owing = replace(STORED, ledger=replace(STORED.ledger, stale_since=at(4)))
    assert difference(ONE, owing).ledger is not None


def test_others_that_show_another_face_are_refreshed() -> None:
    """A name that went there and back between two looks: nothing of this document changed, and yet others are wrong."""
    assert difference(ONE, replace(STORED, seen_as=frozenset({"Ollie"}))).empty
    delta = difference(ONE, replace(STORED, seen_as=frozenset({"Ollie", "Pop"})))
    assert (delta.ledger, delta.refresh_neighbours, delta.empty) == (None, True, False)
    assert difference(Shaped(), DocState(seen_as=frozenset({"Pop"}))).refresh_neighbours


def test_a_dead_letter_is_cleared_by_a_look_that_works() -> None:
    """Even when nothing else is to be written."""
    letter = DeadLetter(KEY, at(1), "d1", "Poison", "", 1, NOON, NOON)
    delta = difference(ONE, replace(STORED, dead=letter))
    assert (delta.clears_dead_letter, delta.empty, delta.ledger) == (True, False, None)


# --- generations beside ---

NEXT: Final = Pin("next/model", 8, "knowledge_chunks_next")
TARGETS: Final = [Target(NEXT, WordCounter(), {"tricks": 1})]


def beside(shaped: Shaped | Poison, state: DocState) -> Delta:
    """The delta of one document that says ONE, with the other generation's."""
    return diff_beside(difference(ONE, state), {NEXT: shaped}, state, TARGETS)


def test_a_generation_that_lacks_a_document_makes_it_differ() -> None:
    """Nothing of the active one is written, and yet the ledger is: its version is that of what is stored last."""
    delta = beside(ONE, STORED)
    other = delta.beside[NEXT]
    assert isinstance(other, Delta)
    assert (delta.write, delta.texts, delta.rows, delta.empty) == ((), 2, 2, False)
    assert [draft.text for draft in other.write] == ["pop the tail", "slide the foot"]
    assert delta.ledger is not None
    assert (other.ledger, other.refresh_neighbours, other.clears_dead_letter) == (None, False, False)


def test_both_agreeing_is_nothing_to_write() -> None:
    """Each is compared with its own rows, by its own model."""
    there = tuple(replace(chunk, model=NEXT.model, dimensions=NEXT.dimensions) for chunk in STORED.chunks)
    assert beside(ONE, replace(STORED, beside={NEXT: there})).empty
    assert beside(ONE, replace(STORED, beside={NEXT: STORED.chunks})).texts == 2  # of the active one's model


def test_a_document_that_cannot_be_in_the_other_is_not_empty() -> None:
    """It must be buried for the other; in its own it stands."""
    delta = beside(Poison("too many parts"), STORED)
    assert (delta.empty, delta.texts, delta.ledger) == (False, 0, None)
