"""The deploy files against the programs that read them, and against the code they speak of."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, cast

import yaml

from brain.config import PREFIX as BRAIN
from brain.config import BrainSettings
from brain.knowledge.environment import variables
from brain.knowledge.settings import load
from tests.support.tools import tool
from worker.config import WorkerSettings
from worker.observe.health import STUCK_SECONDS
from worker.observe.metrics import PrometheusMeter

DEPLOY = Path(__file__).parents[2] / "deploy"


def run(*command: str) -> str:
    """Both outputs of a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def rules() -> list[dict[str, Any]]:
    """The alert rules."""
    groups = cast("dict[str, Any]", yaml.safe_load((DEPLOY / "alerts.yml").read_text()))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def unit_seconds(name: str) -> int:
    """A number of seconds in the systemd unit."""
    found = re.search(rf"^{name}=(\d+)$", (DEPLOY / "trickbook-worker.service").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def pm2() -> dict[str, Any]:
    """The PM2 entry, as node reads it."""
    code = f"console.log(JSON.stringify(require({json.dumps(str(DEPLOY / 'ecosystem.config.cjs'))})))"
    return cast("dict[str, Any]", json.loads(run(tool("node"), "-e", code)))["apps"][0]


def test_the_systemd_unit_is_clean(tmp_path: Path) -> None:
    """systemd-analyze finds nothing to say, with the program's path put where a program is."""
    unit = (DEPLOY / "trickbook-worker.service").read_text()
    copy = tmp_path / "trickbook-worker.service"
    copy.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit, flags=re.MULTILINE))
    assert run(tool("systemd-analyze"), "verify", str(copy)).strip() == ""


def test_supervisors_wait_longer_than_the_drain() -> None:
    """Neither kills before the drain is over, and the watchdog is slower than the worker's own patience."""
    drain = load(WorkerSettings, {}, "WORKER_", embedded=True).drain_seconds
    assert unit_seconds("TimeoutStopSec") > drain + 2
    assert unit_seconds("WatchdogSec") > STUCK_SECONDS
    entry = pm2()
    assert entry["kill_timeout"] > (drain + 2) * 1000


def test_a_wrong_setting_does_not_loop() -> None:
    """Exit code 78 keeps both supervisors from trying again."""
    assert unit_seconds("RestartPreventExitStatus") == 78
    assert pm2()["stop_exit_codes"] == [78]


def test_pm2_starts_the_program_itself() -> None:
    """PM2 runs the Python program directly, once, with growing pauses."""
    entry = pm2()
    assert entry["interpreter"] == "none"
    assert entry["args"] == "run"
    assert entry["instances"] == 1
    assert entry["exp_backoff_restart_delay"] > 0
    assert entry["max_memory_restart"]


def test_prometheus_reads_its_files() -> None:
    """Promtool accepts the scrape example and the alerts."""
    promtool = tool("promtool")
    run(promtool, "check", "config", str(DEPLOY / "prometheus.yml"))
    run(promtool, "check", "rules", str(DEPLOY / "alerts.yml"))


def test_alerts_speak_of_metrics_that_exist() -> None:
    """Every metric in an alert is one of ours, under its real name."""
    meter = PrometheusMeter(["spots"])
    meter.read_log_drops(lambda: 0)
    real = set(re.findall(r"^# TYPE (\S+)", meter.render().decode(), re.MULTILINE))
    for rule in rules():
        for name in re.findall(r"freshness_\w+", rule["expr"]):
            assert name in real or name.removesuffix("_bucket") in real, rule["alert"]


def test_every_alert_has_its_section() -> None:
    """Each alert has a severity, a summary, and a heading in the runbook that it points to."""
    headings = re.findall(r"^### (\w+)$", (DEPLOY / "RUNBOOK.md").read_text(), re.MULTILINE)
    assert headings == [rule["alert"] for rule in rules()]
    for rule in rules():
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["runbook"] == f"deploy/RUNBOOK.md#{rule['alert'].lower()}"


def test_every_pause_of_the_code_is_in_the_runbook() -> None:
    """Whatever word the worker gives a pause, the runbook says what to do about it."""
    runbook = (DEPLOY / "RUNBOOK.md").read_text()
    code = "\n".join(path.read_text() for path in (DEPLOY.parent / "worker").rglob("*.py"))
    for word in sorted(set(re.findall(r"\.(?:pause|persist)\(\s*\"(\w+)\"", code))):
        assert f"paused ({word})" in runbook


def test_the_env_example_is_complete_and_right() -> None:
    """Every setting of both programs is there, none else, and the values shown are the defaults."""
    text = (DEPLOY / "env.example").read_text()
    shown = dict(re.findall(r"^#?([A-Z][A-Z_]+)=(.*)$", text, re.MULTILINE))
    assert set(shown) == {*variables(WorkerSettings), *variables(BrainSettings)}
    needed = {"ATLAS_URI": "mongodb://127.0.0.1", "OPENROUTER_API_KEY": "sk-x"}
    assert load(WorkerSettings, shown | needed, "WORKER_") == load(WorkerSettings, needed, "WORKER_")
    assert load(BrainSettings, shown, BRAIN) == load(BrainSettings, {}, BRAIN)


def test_no_file_holds_a_secret_or_a_machine() -> None:
    """What is committed names no key and no host."""
    for path in (DEPLOY.parent / "Procfile", *DEPLOY.glob("*.*")):
        text = path.read_text()
        assert not re.search(r"sk-[\w-]{8,}|://[^\s/]*:[^\s/]*@", text), path.name
