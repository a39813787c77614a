"""Documents that change faster than they can be embedded (O1, O2, O10), through the whole leader."""

import asyncio

from tests.support import virtual
from tests.support.sim_stage import Stage, document

WINDOW = 0.3  # the leader's own, seconds


def test_a_hot_document_costs_one_look_a_window_and_starves_nobody() -> None:
    """O10: a thousand updates a second for ten seconds: few embeddings, and a quiet document beside it is not late."""

    async def main() -> None:
        stage, stop = Stage(), asyncio.Event()
        stage.client.seconds = 0.05
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(5)
        for turn in range(10_000):
            stage.put(document(1, "Ollie", f"turn {turn}"))
            if turn % 1000 == 500:
                stage.put(document(2 + turn // 1000, "Quiet", "says"))
            await asyncio.sleep(0.001)
            if turn % 1000 == 999:
                assert stage.texts(2 + turn // 1000) == ["Quiet: says"], "half a second later"
        await asyncio.sleep(2)
        assert stage.texts(1) == ["Ollie: turn 9999"]
        of_the_hot_one = [text for text in stage.client.sent if text.startswith("Ollie")]
        assert 5 <= len(of_the_hot_one) <= 10 / WINDOW + 2
        assert stage.meter.came_in == stage.meter.outcomes.total() == 10_010
        stop.set()
        await serving

    virtual.run(main)


def test_the_newest_wins_however_slow_the_first_embedding_is() -> None:
    """O1: the second update comes while the first is being embedded, and is what is stored in the end."""

    async def main() -> None:
        stage, stop = Stage(), asyncio.Event()
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(5)
        stage.client.seconds = 20.0
        stage.put(document(1, "Ollie", "first"))
        await asyncio.sleep(5)
        stage.client.seconds = 0.0
        stage.put(document(1, "Ollie", "second"))
        await asyncio.sleep(30)
        assert stage.texts(1) == ["Ollie: second"]
        stop.set()
        await serving

    virtual.run(main)


def test_a_late_embedding_brings_nothing_back() -> None:
    """O2, O3: deleted while it is being embedded, it stays deleted; inserted again meanwhile, the last one is there."""

    async def main() -> None:
        stage, stop = Stage(), asyncio.Event()
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(5)
        stage.client.seconds = 20.0
        for number in (1, 2):
            stage.put(document(number, "Ollie", "first"))
        await asyncio.sleep(5)
        stage.client.seconds = 0.0
        for number in (1, 2):
            stage.delete(number)
        stage.put(document(2, "Ollie", "again"))
        await asyncio.sleep(30)
        assert stage.texts(1) == []
        assert stage.texts(2) == ["Ollie: again"]
        stop.set()
        await serving

    virtual.run(main)
