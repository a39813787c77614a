"""Programs that are no Python package: used where they are, required in CI, skipped with the reason elsewhere."""

import os
import shutil
from pathlib import Path
from typing import Final

import pytest

NODE: Final = Path(__file__).parents[1] / "node"
"""The folder of the npm packages that tests use as references (`npm install --prefix tests/node`)."""


def tool(name: str) -> str:
    """The path of a program, or a skip with the reason (a failure where REQUIRE_TOOLS=1)."""
    found = shutil.which(name)
    return found if found is not None else _absent(f"{name} is not installed")


def shared_library(name: str, package: str) -> str:
    """The path of a library that a Debian package brings beside its program, or a skip with the reason."""
    tool(package)
    found = sorted(Path("/usr/lib").glob(f"*/{package}/{name}")) + sorted(Path("/usr/lib").glob(f"{package}/{name}"))
    return str(found[0]) if found else _absent(f"{name} is not installed (apt-get install {package})")


def node_package(name: str) -> Path:
    """The folder of an npm package, or a skip with the reason (a failure where REQUIRE_TOOLS=1)."""
    tool("node")
    folder = NODE / "node_modules" / name
    if not folder.is_dir():
        _absent(f"the npm package {name} is not installed (npm install --prefix tests/node)")
    return folder


def _absent(reason: str) -> str:
    if os.environ.get("REQUIRE_TOOLS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
