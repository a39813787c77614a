"""Under PM2 itself, with the ecosystem file that operators use."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

from tests.support.processes import (
    PATIENCE,
    ROOT,
    command,
    embedder,
    environment,
    eventually,
    free_port,
    page,
)
from tests.support.tools import node_package, tool

pytestmark = pytest.mark.slow


class Pm2(Protocol):
    """PM2 in a home of its own."""

    def __call__(self, *arguments: str) -> str:
        """Run a PM2 command; what it printed."""
        ...


@pytest.fixture
def pm2(tmp_path: Path) -> Iterator[Pm2]:
    """PM2 with a home of its own; its daemon and all that it runs end with the test."""
    program = node_package("pm2") / "bin" / "pm2"
    started = environment(PM2_HOME=str(tmp_path / "pm2"), PATH=os.environ["PATH"])

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [tool("node"), str(program), *arguments],
            env=started,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    yield run
    run("kill")


def _described(pm2: Pm2) -> dict[str, Any]:
    return cast("list[dict[str, Any]]", json.loads(pm2("jlist")))[0]["pm2_env"]


def test_pm2_runs_and_stops_it(pm2: Pm2, tmp_path: Path, mongo_uri: str, database_name: str) -> None:
    """It becomes ready, `pm2 stop` (SIGINT) drains it within kill_timeout, and the checkpoint is stored."""
    port = free_port()
    with embedder() as fake:
        settings = {
            "ATLAS_URI": mongo_uri,
            "ATLAS_DB": database_name,
            "OPENROUTER_API_KEY": "k",
            "OPENROUTER_BASE_URL": fake.url,
            "WORKER_METRICS_PORT": str(port),
        }
        config = tmp_path / "ecosystem.config.cjs"
        config.write_text(
            f"const c = require({json.dumps(str(ROOT / 'deploy' / 'ecosystem.config.cjs'))});\n"
            f"c.apps[0].env = {json.dumps(settings)};\nmodule.exports = c;\n"
        )
        pm2("start", str(config))
        eventually(lambda: page(port, "/readyz")[0] == 200, "readiness under PM2")
        assert _described(pm2)["restart_time"] == 0
        pm2("stop", "trickbook-worker")
        log = Path(_described(pm2)["pm_err_log_path"]).read_text()
        assert '"action": "drained"' in log
        assert '"configuration_warning"' not in log
        status = command("status", "--json", env=environment(**settings)).value
        assert status["leader"] is None
        assert status["checkpoint"] is not None


def test_pm2_does_not_loop_on_a_mistake(pm2: Pm2, tmp_path: Path) -> None:
    """A wrong setting (78) stops the app instead of restarting it again and again."""
    config = tmp_path / "ecosystem.config.cjs"
    config.write_text(
        f"const c = require({json.dumps(str(ROOT / 'deploy' / 'ecosystem.config.cjs'))});\n"
        'c.apps[0].env = { ATLAS_URI: "nonsense", OPENROUTER_API_KEY: "k" };\nmodule.exports = c;\n'
    )
    pm2("start", str(config))
    # PM2 goes on to call it "waiting restart" (it sets the back-off before it looks at the code), so the code and the
    # count of restarts are asked: as often as it takes to outlast the back-off of 0.5 s.
    eventually(lambda: _described(pm2).get("exit_code") == 78, "the end with 78")
    asked = time.monotonic()
    while time.monotonic() - asked < 2.0:
        assert _described(pm2)["restart_time"] == 0
    assert "ATLAS_URI" in Path(_described(pm2)["pm_err_log_path"]).read_text()
