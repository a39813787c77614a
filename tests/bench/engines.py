"""Other people's exact engines beside ours: faiss-cpu's flat index and usearch's exact search.

They live in a virtual environment of their own under a temporary folder, in a child process that is asked one query at
a time, so that rounds can alternate. The child's program is a text here and no module, because their packages are no
dependency of this project. Times are taken in the child and hold no conversation.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import numpy as np

from brain.knowledge.chunk import Vector
from tests.bench.report import Report

PACKAGES: Final = ("numpy>=2.0", "faiss-cpu==1.15.1", "usearch==2.26.6")
NAMES: Final = ("faiss flat", "usearch exact")
_INSTALL_SECONDS: Final = 600
_PROGRAM: Final = """
import json, sys, time
import faiss, numpy as np
from usearch.index import search
matrix, queries = np.load(sys.argv[1]), np.load(sys.argv[2])
limit = int(sys.argv[3])
flat = faiss.IndexFlatIP(matrix.shape[1])
flat.add(matrix)
engines = {
    "faiss flat": lambda query: flat.search(query[None, :], limit)[1][0],
    "usearch exact": lambda query: search(matrix, query, limit, "ip", exact=True).keys,
}
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    name, number = json.loads(line)
    began = time.perf_counter()
    ids = engines[name](queries[number])
    taken = time.perf_counter() - began
    print(json.dumps([taken * 1000, [int(one) for one in ids]]), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Others:
    """The child."""

    ask: IO[str]
    answers: IO[str]

    def search(self, name: str, number: int) -> tuple[float, Sequence[int]]:
        """How many milliseconds the engine took for this query, and the rows that it found."""
        self.ask.write(json.dumps([name, number]) + "\n")
        self.ask.flush()
        taken, ids = json.loads(self.answers.readline())
        return taken, ids


@contextmanager
def others(report: Report, matrix: Vector, queries: Sequence[Vector], limit: int) -> Generator[Others | None]:
    """Install and start them; None, and a note, where that cannot be done."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        python = folder / "venv" / "bin" / "python"
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
        try:
            subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=_INSTALL_SECONDS)
            subprocess.run(install, check=True, capture_output=True, timeout=_INSTALL_SECONDS)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError) as error:
            report.notes.append(f"{', '.join(PACKAGES)} could not be installed ({type(error).__name__})")
            yield None
            return
        np.save(folder / "matrix.npy", matrix)
        np.save(folder / "queries.npy", np.stack(queries))
        program = [python, "-c", _PROGRAM, folder / "matrix.npy", folder / "queries.npy", str(limit)]
        child = stack.enter_context(
            subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder)
        )
        stack.callback(child.kill)
        if child.stdin is None or child.stdout is None or not child.stdout.readline():
            report.notes.append("the other engines ended as they started")
            yield None
            return
        yield Others(child.stdin, child.stdout)
