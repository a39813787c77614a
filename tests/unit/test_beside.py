"""A generation beside the active one, on the way of a change: built quietly, kept fresh, in nobody's way."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Final

from bson import Timestamp

from brain.knowledge.chunk import Metadata, Vector, text_hash
from brain.knowledge.pin import Pin
from tests.support import virtual
from tests.support.sim_oracle import differences
from tests.support.sim_ports import SimStore
from tests.support.sim_source import MODEL, OTHERS, SimClient, WordCounter, model_of, target_of, vector_of
from tests.support.sim_stage import TRICKS, Stage, document, in_place
from worker.embedding.batcher import BatchingEmbedder, Limits
from worker.errors import GenerationsChanged, Poison
from worker.generations import Act, Generations, order
from worker.model import ChunkDraft, Delta, DocKey, Leadership, Request
from worker.pipeline.duties import Papers
from worker.pipeline.embed import EmbedStep
from worker.pipeline.leader import Farewell, Leader, Terms, World

NEXT: Final = Pin(OTHERS[0].name, OTHERS[0].dimensions, "knowledge_chunks_next", "knowledge_vec_next")
SOURCES: Final = {"tricks": TRICKS}
KEY: Final = DocKey.of("tricks", 1)


def leader(stage: Stage, client: SimClient) -> Leader:
    """A leader of the generations that live now; `client` is the other model's."""
    live = stage.db.generations.live
    old = stage.papers
    papers = Papers(SimStore(stage.db, stage.weather), old.checkpoints, old.letters, old.lease, old.requests, old.pins)
    embedders = {
        MODEL.name: stage.embedder,
        client.model.name: BatchingEmbedder(client, WordCounter(), Limits(), stage.around),
    }
    beside = {pin: embedders[pin.model] for pin in live[1:]}
    world = World(stage.world.stream, stage.documents, papers, embedders[live[0].model], beside)
    target, *others = (target_of(pin, SOURCES) for pin in live)
    return Leader(world, Terms(SOURCES, target, in_place, beside=tuple(others)), Leadership(1), stage.around)


def ask(stage: Stage, act: Act, pin: Pin) -> None:
    """Leave a request."""
    number = str(len(stage.db.requests))
    stage.db.requests[number] = Request(number, "pin", order(act, pin, stage.db.generations.turn))


async def until_changed(serving: "asyncio.Task[Farewell]") -> None:
    """Wait until the leader has drained for other generations."""
    try:
        await serving
    except GenerationsChanged:
        return
    message = "it ended for nothing"
    raise AssertionError(message)


def test_a_generation_is_built_while_all_is_ready_and_then_switched_rolled_back_and_dropped() -> None:
    """Each time the leader drains and begins again; no text is sent twice, and what is written is written to both."""

    async def main() -> None:
        stage = Stage()
        client = SimClient(stage.weather, model_of(NEXT))
        for number in range(20):
            stage.put(document(number, "Ollie", f"text {number}"), told=False)
        stop = asyncio.Event()
        serving = asyncio.create_task(leader(stage, client).serve(stop))
        await asyncio.sleep(10)
        assert stage.health.pending == []
        acts: tuple[tuple[Act, Pin, tuple[Pin, ...]], ...] = (
            ("build", NEXT, (stage.db.pin, NEXT)),
            ("switch", NEXT, (NEXT, stage.db.pin)),
            ("rollback", stage.db.pin, (stage.db.pin, NEXT)),
            ("drop", NEXT, (stage.db.pin,)),
        )
        for act, pin, live in acts:
            ask(stage, act, pin)
            await until_changed(serving)
            assert stage.db.generations.live == live
            serving = asyncio.create_task(leader(stage, client).serve(stop))
            await asyncio.sleep(0.1)
            assert stage.health.pending == []  # nobody waits for what nobody searches
            stage.put(document(1, "Ollie", f"after {act}"))
            await asyncio.sleep(10)
            assert differences(stage.db, SOURCES, stage.now()) == []
        assert stage.db.generations == Generations(stage.db.pin, turn=4)
        assert stage.meter.came_in == stage.meter.outcomes.total()
        assert len(stage.client.sent) == len(set(stage.client.sent)) == 24
        assert len(client.sent) == len(set(client.sent)) == 23
        stop.set()
        await serving

    virtual.run(main)


def test_a_change_amid_a_long_scan_loses_no_count() -> None:
    """What the drain had no time for is left to the leader that begins again, and counted as that."""

    async def main() -> None:
        stage, stop = Stage(), asyncio.Event()
        client = SimClient(stage.weather, model_of(NEXT))
        for number in range(300):
            stage.put(document(number, "Ollie", f"text {number}"), told=False)
        stage.client.seconds = 20.0
        serving = asyncio.create_task(leader(stage, client).serve(stop))
        await asyncio.sleep(5)
        ask(stage, "build", NEXT)
        await until_changed(serving)
        assert stage.meter.outcomes["superseded"] > 0
        assert stage.meter.came_in == stage.meter.outcomes.total()
        stage.client.seconds = 0.0
        serving = asyncio.create_task(leader(stage, client).serve(stop))
        await asyncio.sleep(60)
        assert differences(stage.db, SOURCES, stage.now()) == []
        stop.set()
        await serving
        assert stage.meter.came_in == stage.meter.outcomes.total()
        assert stage.health.reasons == {}

    virtual.run(main)


def test_a_leader_that_knows_other_generations_does_not_begin() -> None:
    """It was made before they changed, and would publish into one alone."""

    async def main() -> None:
        stage = Stage()
        late = leader(stage, SimClient(stage.weather, model_of(NEXT)))
        stage.db.generations = Generations(stage.db.pin, NEXT, "next")
        stage.put(document(1, "Ollie", "text"), told=False)
        await until_changed(asyncio.create_task(late.serve(asyncio.Event())))
        assert stage.texts(1) == []

    virtual.run(main)


def test_a_rollback_does_not_wait_for_a_look_that_an_outage_holds_up() -> None:
    """The new model's provider is down and somebody has asked for a repair: that is when a rollback is wanted."""

    async def main() -> None:
        stage, stop = Stage(), asyncio.Event()
        client = SimClient(stage.weather, model_of(NEXT))
        stage.db.generations = Generations(NEXT, stage.db.pin, "previous")
        serving = asyncio.create_task(leader(stage, client).serve(stop))
        await asyncio.sleep(5)
        client.seconds = math.inf
        stage.put(document(1, "Ollie", "text"), told=False)
        stage.db.requests["look"] = Request("look", "look", {"keys": [{"source": "tricks", "id": 1}]})
        await asyncio.sleep(5)
        ask(stage, "rollback", stage.db.pin)
        await asyncio.wait_for(until_changed(serving), 60)
        assert stage.db.generations.active == stage.db.pin
        assert "look" not in stage.db.results
        client.seconds = 0.0
        serving = asyncio.create_task(leader(stage, client).serve(stop))
        await asyncio.sleep(10)
        assert stage.db.results["look"] == {"looked": 1}
        stop.set()
        await serving

    virtual.run(main)


def test_a_request_that_makes_no_sense_ends_nobody() -> None:
    """It is answered, and the leader goes on."""

    async def main() -> None:
        stage, stop = Stage(), asyncio.Event()
        serving = asyncio.create_task(leader(stage, SimClient(stage.weather, model_of(NEXT))).serve(stop))
        ask(stage, "drop", stage.db.pin)
        stage.db.requests["odd"] = Request("odd", "pin", {"act": "burn"})
        await asyncio.sleep(5)
        assert "cannot be dropped" in str(stage.db.results["0"]["failed"])
        assert "another version" in str(stage.db.results["odd"]["failed"])
        stop.set()
        await serving

    virtual.run(main)


# --- the step of embedding ---


class Store(SimStore):
    """Knows no vector."""

    async def vectors(self, text_hashes: Sequence[str], pin: Pin | None = None) -> Mapping[str, Vector]:
        """None."""
        return {}


class Picky:
    """Implements TextEmbedder: refuses what says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector | Poison]:
        """A vector, or a refusal."""
        self.asked += texts
        return [Poison("not this") if "picky" in text else vector_of(text) for text in texts]


def written(text: str) -> Delta:
    """A delta that writes one text."""
    draft = ChunkDraft(f"{KEY}/p", text, Metadata("trick", "Ollie"), text_hash(text), "c", 1)
    return Delta(KEY, Timestamp(1, 0), write=(draft,), clears_dead_letter=True)


async def embedded(delta: Delta, other: Delta | Poison) -> tuple[int, int, list[bool], bool]:
    """Publications, those of the other generation, the failures' `published`, whether a dead letter is cleared."""
    stage = Stage()
    step = EmbedStep(Store(stage.db, stage.weather), Picky(), {NEXT: Picky()})
    whole = Delta(delta.key, delta.version, write=delta.write, clears_dead_letter=True, beside={NEXT: other})
    publications, failed = await step.embed([whole])
    beside = sum(len(publication.beside) for publication in publications)
    cleared = any(publication.delta.clears_dead_letter for publication in publications)
    return len(publications), beside, [failure.published for failure in failed], cleared


async def test_what_only_the_other_model_refuses_stays_fresh_in_its_own() -> None:
    """It is published without, and buried: the letter stays until the other takes it."""
    assert await embedded(written("fine"), written("fine")) == (1, 1, [], True)
    assert await embedded(written("fine"), written("picky")) == (1, 0, [True], False)
    assert await embedded(written("fine"), Poison("too many parts")) == (1, 0, [True], False)


async def test_what_the_active_model_refuses_is_in_neither() -> None:
    """And the other model is not asked for it: it would be paid for nothing."""
    assert await embedded(written("picky"), written("fine")) == (0, 0, [False], False)
    stage, asked = Stage(), Picky()
    step = EmbedStep(Store(stage.db, stage.weather), Picky(), {NEXT: asked})
    bad = Delta(KEY, Timestamp(1, 0), write=written("picky").write, beside={NEXT: written("fine")})
    await step.embed([bad])
    assert asked.asked == []
