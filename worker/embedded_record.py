"""`server.json` in the data folder of the embedded database: where it listens and which process stops it."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

_FILE: Final = "server.json"


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """A started server. `started` and `owner_started` are start marks (`worker.process`): a reused pid shows."""

    uri: str
    pid: int
    started: str
    owner: int
    owner_started: str

    def owned_by(self, owner: int, owner_started: str) -> "ServerRecord":
        """The same server, stopped by another process."""
        return replace(self, owner=owner, owner_started=owner_started)


def read_record(folder: Path) -> ServerRecord | None:
    """The record, or None when there is none or it is not one (a stale file of any kind is worth nothing)."""
    try:
        raw: object = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(raw, dict):
        return None
    row = cast("dict[str, object]", raw)
    uri, pid, started = row.get("uri"), row.get("pid"), row.get("started")
    owner, owner_started = row.get("owner"), row.get("ownerStarted")
    if isinstance(uri, str) and isinstance(pid, int) and isinstance(started, str):
        return ServerRecord(
            uri,
            pid,
            started,
            owner if isinstance(owner, int) else 0,
            owner_started if isinstance(owner_started, str) else "",
        )
    return None


def write_record(folder: Path, record: ServerRecord) -> None:
    """Replace the record in one step: a reader sees the old one or the new one."""
    row = {
        "uri": record.uri,
        "pid": record.pid,
        "started": record.started,
        "owner": record.owner,
        "ownerStarted": record.owner_started,
    }
    fresh = folder / f"{_FILE}.new"
    fresh.write_text(json.dumps(row) + "\n", encoding="utf-8")
    fresh.replace(folder / _FILE)


def remove_record(folder: Path) -> None:
    """Forget the record."""
    (folder / _FILE).unlink(missing_ok=True)
