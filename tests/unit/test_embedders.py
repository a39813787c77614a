"""The embedders of the live generations: shared where they are the same, told apart where they are not."""

import pytest

from brain.knowledge.pin import MINILM, OPENAI_LARGE, OPENAI_SMALL, Pin
from brain.knowledge.settings import load
from tests.support.sim_recorders import CrashingProbe, SimHealth, SimMeter
from tests.support.sim_stage import FAIR
from tests.support.sim_weather import Weather, dice
from worker.clock import SystemClock
from worker.config import PREFIX, WorkerSettings
from worker.embedding.admission import Admission, check_pins
from worker.embedding.embedders import Embedders
from worker.embedding.reasons import OwnReasons
from worker.errors import PinMismatch, PinRefused
from worker.generations import Generations
from worker.pipeline.around import Around

SMALL = Pin(OPENAI_SMALL.name, OPENAI_SMALL.dimensions)
LARGE = Pin(OPENAI_LARGE.name, OPENAI_LARGE.dimensions, "knowledge_chunks_large")
LOCAL = Pin(MINILM.name, MINILM.dimensions, "knowledge_chunks_local")
UNKNOWN = Pin("acme/embed", 1536, "knowledge_chunks_acme")
KEY = {"OPENROUTER_API_KEY": "sk-or-x"}


def settings(**environ: str) -> WorkerSettings:
    """Settings with a database that nobody asks."""
    return load(WorkerSettings, {"ATLAS_URI": "mongodb://127.0.0.1:1/", **environ}, PREFIX)


def surroundings(health: SimHealth) -> Around:
    """With that board."""
    weather = Weather(dice("fair"), FAIR)
    return Around(SystemClock(), SimMeter(), health, CrashingProbe(weather), dice("around"))


async def test_one_embedder_a_model() -> None:
    """The same for the same model in another collection; models of one provider share its limits."""
    embedders = Embedders(settings(**KEY, WORKER_REQUESTS_PER_MINUTE="7"), surroundings(SimHealth()))
    again = Pin(SMALL.model, SMALL.dimensions, "knowledge_chunks_again")
    assert embedders.embedder(SMALL) is embedders.embedder(again)
    assert embedders.embedder(SMALL) is not embedders.embedder(LARGE)
    assert embedders.limits(SMALL) == embedders.limits(LARGE)
    assert (embedders.limits(LARGE).requests_per_minute, embedders.limits(LOCAL).requests_per_minute) == (7, None)
    await embedders.close()


@pytest.mark.parametrize(
    ("environ", "small", "large"),
    [
        ({}, 60_000, 60_000),
        ({"WORKER_DAILY_BUDGET_USD": "0.001"}, 2_500, 384),  # a twentieth of 50,000 and of 7,692 tokens
        ({"WORKER_TOKENS_PER_MINUTE": "1000"}, 50, 50),
        ({"WORKER_TOKENS_PER_MINUTE": "1"}, 1, 1),  # one text
        ({"WORKER_TOKENS_PER_MINUTE": "100000", "WORKER_REQUESTS_PER_MINUTE": "4"}, 25_000, 25_000),
        ({"WORKER_DAILY_BUDGET_USD": "9", "WORKER_BATCH_TOKENS": "700"}, 700, 700),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else str(value),  # pyright: ignore[reportUnknownArgumentType]
)
async def test_a_request_is_a_share_of_the_minute_and_of_the_day(
    environ: dict[str, str], small: int, large: int
) -> None:
    """A small budget or rate makes small requests, by the model's price; it forbids none."""
    embedders = Embedders(settings(**KEY, **environ), surroundings(SimHealth()))
    assert (embedders.limits(SMALL).tokens, embedders.limits(LARGE).tokens) == (small, large)
    assert embedders.limits(LOCAL).tokens == 1_024
    await embedders.close()


def test_a_gate_takes_back_what_it_raised_itself() -> None:
    """That the local model answers does not hide that the provider is down; what is closed holds nobody back."""
    health = SimHealth()
    provider, local = OwnReasons(health), OwnReasons(health)
    provider.pause("embedding", "down")
    local.resume("embedding")
    assert list(health.reasons) == ["embedding"]
    provider.resume("embedding")
    assert not health.reasons
    provider.pause("embedding_refused", "no credit")
    provider.close()
    assert not health.reasons


@pytest.mark.parametrize(
    ("environ", "live", "refused"),
    [
        (KEY, (SMALL, LARGE), ""),
        ({**KEY, "EMBEDDING_MODEL": OPENAI_LARGE.name}, (SMALL, LARGE), ""),
        ({**KEY, "EMBEDDING_MODEL": OPENAI_LARGE.name}, (SMALL,), "EMBEDDING_MODEL"),
        ({"EMBEDDING_PROVIDER": "local"}, (LOCAL, SMALL), "OPENROUTER_API_KEY"),
        ({"EMBEDDING_PROVIDER": "local"}, (LOCAL,), ""),
        ({**KEY, "WORKER_DAILY_BUDGET_USD": "1"}, (SMALL, UNKNOWN), "WORKER_USD_PER_MILLION_TOKENS"),
        ({**KEY, "WORKER_DAILY_BUDGET_USD": "1", "WORKER_USD_PER_MILLION_TOKENS": "2"}, (SMALL, UNKNOWN), ""),
    ],
)
async def test_what_this_process_could_not_lead_with_is_refused(
    environ: dict[str, str], live: tuple[Pin, ...], refused: str
) -> None:
    """Before it is so: a leader that cannot embed with a generation would end, and nobody would lead."""
    given = settings(**environ)
    embedders = Embedders(given, surroundings(SimHealth()))
    after = Generations(live[0], live[1] if live[1:] else None, "next" if live[1:] else None)
    if refused:
        with pytest.raises(PinRefused, match=refused):
            Admission(given, embedders)(after)
    else:
        Admission(given, embedders)(after)
    await embedders.close()


def test_a_worker_may_name_either_model_while_both_live() -> None:
    """So that a switch needs no restart in the same moment; a third one is refused."""
    check_pins(settings(**KEY, EMBEDDING_MODEL=OPENAI_SMALL.name), (LARGE, SMALL))
    with pytest.raises(PinMismatch, match="pin build"):
        check_pins(settings(**KEY, EMBEDDING_MODEL="vendor/third", EMBEDDING_DIMENSIONS="3"), (LARGE, SMALL))
