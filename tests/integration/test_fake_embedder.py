"""The fake provider as a child process, as other tests use it."""

import asyncio
import json
import os
import sys

import pytest

from brain.knowledge.embedding.openrouter import OpenRouterClient
from brain.knowledge.errors import Poison
from brain.knowledge.pin import Model
from tests.support.fake_embedder import vector_of

MODEL = Model("openai/text-embedding-3-small", 8, 8192)


async def test_the_fake_runs_as_a_child_process() -> None:
    """`python -m tests.support.fake_embedder` prints its port, serves, counts and ends on SIGTERM."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.fake_embedder", "--port", "0", "--script", '{"1": {"kind": "poison"}}'),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert child.stdout is not None
    try:
        base_url = json.loads(await child.stdout.readline())["base_url"]
        client = OpenRouterClient(MODEL, "sk-test", base_url)
        assert (await client.embed(["kickflip"])).vectors[0].tolist() == vector_of("kickflip", 8)
        with pytest.raises(Poison):
            await client.embed(["kickflip"])
        await client.close()
    finally:
        child.terminate()
        assert await child.wait() == 0
