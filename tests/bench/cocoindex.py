"""CocoIndex over the same pages, in a virtual environment of its own under a temporary folder.

Its program is a text here and no module, because its package is no dependency of this project: files in, its Markdown
splitter (2,000 characters), an embedding that is nothing, one file of rows a page out.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.bench.report import Report

_VERSION: Final = "1.0.26"
_INSTALL_SECONDS: Final = 300
_RUN_SECONDS: Final = 120
_PUBLISHED: Final = "its published figure for these pages: 1,016 chunks, 0.7 s cold"
_PROGRAM: Final = """
import json, pathlib, sys, time
import cocoindex as coco
from cocoindex.connectors import localfs
from cocoindex.ops.text import RecursiveSplitter
from cocoindex.resources.file import PatternFilePathMatcher

pages, out = map(pathlib.Path, sys.argv[1:])
splitter = RecursiveSplitter()

@coco.fn(memo=True)
async def one(file, target):
    chunks = splitter.split(await file.read_text(), 2000, chunk_overlap=0, language="markdown")
    rows = [{"text": chunk.text, "embedding": [0.0]} for chunk in chunks]
    target.declare_file(str(file.file_path.path).replace("/", "~") + ".json", json.dumps(rows))

@coco.fn
async def main(source, folder):
    target = await coco.use_mount(coco.component_subpath("setup"), localfs.declare_dir_target, folder)
    matcher = PatternFilePathMatcher(included_patterns=["**/*.md", "**/*.mdx"])
    await coco.mount_each(one, localfs.walk_dir(source, recursive=True, path_matcher=matcher).items(), target)

app = coco.App(coco.AppConfig(name="bench"), main, source=pages, folder=out)
found = []
for _ in range(2):
    wall, cpu = time.perf_counter(), time.process_time()
    app.update_blocking()
    found.append([time.process_time() - cpu, time.perf_counter() - wall])
chunks = sum(len(json.loads(path.read_text())) for path in out.glob("*.json"))
print(json.dumps({"chunks": chunks, "cold": found[0], "unchanged": found[1]}))
"""


def measure(report: Report, pages: Path) -> None:
    """Install and run it; what cannot be done is a note."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        try:
            subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=_INSTALL_SECONDS)
            python = folder / "venv" / "bin" / "python"
            install = [python, "-m", "pip", "install", "--quiet", f"cocoindex=={_VERSION}"]
            subprocess.run(install, check=True, capture_output=True, timeout=_INSTALL_SECONDS)
            done = subprocess.run(
                [python, "-c", _PROGRAM, pages, folder / "out"],
                env={**os.environ, "COCOINDEX_DB": str(folder / "db")},
                cwd=folder,
                check=True,
                capture_output=True,
                text=True,
                timeout=_RUN_SECONDS,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError) as error:
            report.notes.append(f"CocoIndex {_VERSION} could not be run ({type(error).__name__}); {_PUBLISHED}")
            return
    found = json.loads(done.stdout.splitlines()[-1])
    report.add("CocoIndex: chunks", found["chunks"])
    for what in ("cold", "unchanged"):
        report.add(f"CocoIndex: read, split, write, {what}: processor", found[what][0], "s")
        report.add(f"CocoIndex: read, split, write, {what}: wall", found[what][1], "s")
    report.notes.append(f"CocoIndex {_VERSION} cuts by characters and counts no tokens; {_PUBLISHED}")
