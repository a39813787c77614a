"""kill -9 at every place of the worker's way, for every operation: nothing lost, nothing repeated, nothing back.

Crash points C1 to C16 of tests/README.md. One worker's crash is the next one's recovery: each worker
first catches up with what the former one left, is compared with the sources, and then meets its own place.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from bson import ObjectId
from pymongo import MongoClient

from tests.fault.crashing_main import INSIDE
from tests.support.crashes import (
    Figures,
    Record,
    Store,
    doomed,
    places_in_code,
    settings,
    show,
    texts,
    timed,
    trick,
    until_called,
    until_killed,
    until_leading,
)
from tests.support.oracle import CLEAN, Oracle, conserved
from tests.support.processes import Embedder, Worker, command, worker

pytestmark = pytest.mark.slow

WAY: Final = ("taken", "shaped", "diffed", "answering", "embedded", "fenced", "chunks_written", "ledger_written")
AFTER: Final = ("committing", "published", "released", "checkpointing", "checkpoint_sent", "checkpointed")
LIVE: Final = ("event", *WAY, *AFTER, "draining", "drained", "leading")
MATRIX: Final = {
    "insert": LIVE,
    "update": LIVE,
    "delete": tuple(place for place in LIVE if place != "answering"),
    "rename": LIVE,
    "snapshot": ("leading", "starting", "scanning", "kept", *WAY, *AFTER, "scanned", "sweeping", "swept"),
    "poison": ("published", "letter_written", "buried", "released"),
    "request": ("performed",),
    "generations": ("performed", "draining", "drained", "leading", "generation_dropped"),
}
OUTSIDE: Final = {"answering": "the embedder has the request; this test sees it there and kills from outside"}
STORED: Final = ("published", "released", "drained")
"""Places where the operation's vectors are stored: a restart embeds nothing of it again."""

STALL: Final = {"kind": "stall_headers"}  # counted as embedded and paid, and never answered
DOCUMENTS: Final = 70  # of a first scan: more than one batch of the runner
IN_FLIGHT: Final = 128  # documents of one text each: the batches of two pumps


def test_the_matrix_knows_every_place() -> None:
    """A place added to the worker must be added here, else a crash there would be forgotten."""
    known = {place for places in MATRIX.values() for place in places}
    assert known == places_in_code() | set(INSIDE) | set(OUTSIDE)


@dataclass(frozen=True, slots=True)
class Play:
    """The tricks of a live row, and what each operation does to them."""

    database: Store

    def begin(self) -> None:
        """A hub, three tricks that name it, one to be updated, and some to be deleted."""
        hub = ObjectId()
        edge = {"prerequisites": [{"trickId": hub, "order": 1, "research": {"status": "published"}}]}
        fans = [trick(f"Fan {number}", f"Fan {number} says.", progression=edge) for number in range(3)]
        doomed_ones = [trick(f"Doomed {number}", "Not for long.") for number in range(len(LIVE))]
        rows = [trick("Hub", "The hub.", _id=hub), trick("Base", "Says 0."), *fans, *doomed_ones]
        self.database.trickipedia.insert_many(rows)

    def do(self, operation: str, turn: int) -> int:
        """Do it once more; how many texts are new then."""
        tricks = self.database.trickipedia
        match operation:
            case "insert":
                tricks.insert_one(trick(f"New {turn}", f"Says {turn}."))
                return 1
            case "update":
                tricks.update_one({"name": "Base"}, {"$set": {"description": f"Says {turn}."}})
                return 1
            case "rename":
                tricks.update_one({"description": "The hub."}, {"$set": {"name": f"Hub {turn}"}})
                return 4
            case _:
                tricks.delete_one({"name": f"Doomed {turn - 1}"})
                return 0

    def check(self) -> None:
        """Each visible trick has one chunk that says what it says, and no other trick has one."""
        stored = texts(self.database)
        tricks = list(self.database.trickipedia.find())
        assert set(stored) == {row["name"] for row in tricks}
        hub = next(row["name"] for row in tricks if row["description"] == "The hub.")
        for row in tricks:
            assert row["description"] in stored[row["name"]]
            assert not row["name"].startswith("Fan") or hub in stored[row["name"]]


@dataclass(slots=True)
class Bill:
    """What the operations since the last settled moment may cost, in texts."""

    fake: Embedder
    figures: Figures
    before: int = 0
    new: int = 0
    last: int = 0
    stored: bool = False

    def owe(self, new: int, place: str) -> None:
        """So many new texts will be embedded; at a place where they are stored already, never again."""
        self.new, self.last = self.new + new, new
        self.stored = place in STORED

    def settle(self) -> None:
        """Compare with what the embedder has seen, and begin anew."""
        now = self.fake.counters()["texts"]
        again = now - self.before - self.new
        assert again <= (0 if self.stored else self.new), "embedded again, more than was in flight"
        assert now - self.before >= self.last, "not embedded at all"  # of two renames, the older may be left out
        self.figures.embedded_again += max(0, again)
        self.before, self.new, self.stored = now, 0, False


@dataclass(slots=True)
class Row:
    """One operation's way through its places, on one database."""

    folder: Path
    env: dict[str, str]
    play: Play
    fake: Embedder
    oracle: Oracle
    figures: Figures
    bill: Bill

    def run(self, operation: str) -> None:
        """Kill at each place; each start recovers from the kill before it. A clean worker ends the row."""
        for turn, place in enumerate(MATRIX[operation], 1):
            armed = self.folder / f"armed-{place}"
            if place == "leading":  # reached before it works: the operation happens while nobody runs
                armed.touch()
                self.bill.owe(self.play.do(operation, turn), place)
            with doomed(self.folder, self.env, place, armed) as running:
                if place != "leading":
                    self.recover(running)
                    self.meet(operation, turn, place, running, armed)
                until_killed(running, place)
                self.figures.kills += 1
        with worker(self.folder, self.env) as running:
            self.recover(running)
            assert running.stop() == 0

    def recover(self, running: Worker) -> None:
        """Lead at once, catch up, be compared, pay the bill."""
        self.figures.caught_up.append(timed(lambda: (until_leading(running), self.oracle.until_clean())))
        self.play.check()
        conserved(running)
        self.figures.reread += int(running.metric('freshness_events_total{outcome="received"'))
        self.bill.settle()

    def meet(self, operation: str, turn: int, place: str, running: Worker, armed: Path) -> None:
        """Do the operation, so that the worker gets to its place."""
        calls = self.fake.counters()["calls"]
        slow = place in {"answering", "draining", "drained"} and operation != "delete"
        if slow:
            self.fake.script({"*": STALL if place == "answering" else {"kind": "slow", "seconds": 0.3}})
        armed.touch()
        self.bill.owe(self.play.do(operation, turn), place)
        if slow:
            until_called(self.fake, calls)
            self.fake.script({"*": {}})
        if place == "answering":
            running.child.kill()
        if place in {"draining", "drained"}:
            running.child.terminate()


@pytest.mark.parametrize("operation", ["insert", "update", "delete", "rename"])
def test_a_kill_while_the_stream_tells(
    operation: str, tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder, record_property: Record
) -> None:
    """Whichever place it dies at, the next start leads at once, catches up, and embeds at most the batch in flight."""
    play, figures = Play(database), Figures()
    play.begin()
    with Oracle(env) as oracle:
        bill = Bill(fake, figures, fake.counters()["texts"], database.trickipedia.count_documents({}))
        Row(tmp_path, env, play, fake, oracle, figures, bill).run(operation)
    assert command("verify", "--json", env=env).value.items() >= {"ok": True, **CLEAN}.items()
    show(record_property, figures.line(operation))


def test_a_kill_in_a_first_scan(
    tmp_path: Path, mongo_uri: str, database_name: str, fake: Embedder, record_property: Record
) -> None:
    """Each place on a database of its own: the next start goes on with the scan, and nothing is missing after it."""
    figures = Figures()
    with MongoClient[dict[str, Any]](mongo_uri) as client:
        for place in MATRIX["snapshot"]:
            name = f"{database_name}_{place}"
            try:
                _scan_once(tmp_path, settings(mongo_uri, name, fake), client[name], (place, fake), figures)
            finally:
                client.drop_database(name)
    show(record_property, figures.line("snapshot"))


def _scan_once(folder: Path, env: dict[str, str], database: Store, at: tuple[str, Embedder], figures: Figures) -> None:
    place, fake = at
    documents = IN_FLIGHT + DOCUMENTS if place == "kept" else DOCUMENTS
    database.trickipedia.insert_many([trick(f"Trick {number}", f"Says {number}.") for number in range(documents)])
    before = fake.counters()
    # The place of a scan is kept once a second, when something lands: the second time, two batches have landed.
    fake.script({"*": STALL if place == "answering" else {"kind": "slow", "seconds": 1.2 if place == "kept" else 0}})
    with doomed(folder, env, place, nth=2 if place == "kept" else 1) as running:
        if place == "answering":
            until_called(fake, before["calls"])
            running.child.kill()
        until_killed(running, place)
    figures.kills += 1
    fake.script({"*": {}})
    with worker(folder, env) as running, Oracle(env) as oracle:
        figures.caught_up.append(timed(lambda: until_leading(running)))
        assert oracle.differences() == CLEAN, place  # ready means that the first scan is done
        received = int(running.metric('freshness_events_total{outcome="received"'))
        conserved(running)
        assert place != "kept" or 0 < received <= DOCUMENTS, "the scan went on from its kept place"
        assert running.stop() == 0
    assert len(texts(database)) == documents
    again = fake.counters()["texts"] - before["texts"] - documents
    assert 0 <= again <= min(documents, IN_FLIGHT), place
    figures.reread += received
    figures.embedded_again += again
