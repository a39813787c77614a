"""A generation is not begun with a model that cannot serve: every live edit would wait for it."""

from pathlib import Path
from typing import Final

from tests.support.crashes import Store, texts, trick
from tests.support.processes import Embedder, command, eventually, worker

TYPO: Final = ("--model", "acme/typo", "--dimensions", "1536")


def test_a_model_that_does_not_answer_begins_nothing(
    tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder
) -> None:
    """It is told in the provider's words; the worker that leads stays ready, and edits go on."""
    with worker(tmp_path, env) as running:
        running.until_ready()
        fake.script({"*": {"kind": "status", "status": 404}})
        refused = command("pin", "build", *TYPO, "--json", env=env)
        assert (refused.code, "acme/typo" in refused.err, "nothing was begun" in refused.err) == (1, True, True)
        fake.script({"*": {}})
        assert [row["role"] for row in command("pin", "status", "--json", env=env).value["generations"]] == ["active"]
        assert running.readiness()["ready"]
        database.trickipedia.insert_one(trick("Ollie", "Pop the tail."))
        eventually(lambda: texts(database), "the live edit")
        assert running.stop() == 0


def test_a_model_whose_price_nobody_knows_begins_nothing(env: dict[str, str], database: Store) -> None:
    """With a budget it would stop everything; the price that is set, as told, holds for it, and it is built."""
    env |= {"WORKER_DAILY_BUDGET_USD": "1"}
    database.trickipedia.insert_one(trick("Ollie", "Pop the tail."))
    assert command("backfill", "--json", env=env).code == 0
    refused = command("pin", "build", *TYPO, "--json", env=env)
    assert (refused.code, "WORKER_USD_PER_MILLION_TOKENS" in refused.err) == (1, True)
    assert [row["role"] for row in command("pin", "status", "--json", env=env).value["generations"]] == ["active"]
    built = command("pin", "build", *TYPO, "--json", env=env | {"WORKER_USD_PER_MILLION_TOKENS": "0.5"})
    assert (built.code, built.value["ok"], built.value["chunks"]) == (0, True, 1), built.err
