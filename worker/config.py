"""The worker's own settings, beside those it shares with the brain."""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from brain.knowledge.settings import KnowledgeSettings, Mistake, near

PREFIX: Final = "WORKER_"
SOURCES: Final = ("trickipedia", "docs", "coaching", "couch_videos", "spots", "events", "riders")
PM2_KILL_TIMEOUT: Final = 1600  # ms; PM2's default wait between SIGINT and SIGKILL


def _items(raw: object) -> object:
    """A comma-separated text as a tuple, without empty items."""
    return tuple(item.strip() for item in raw.split(",") if item.strip()) if isinstance(raw, str) else raw


def _sources(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in SOURCES:
            message = f"it holds a name that is no source{near(name, SOURCES)}"
            raise ValueError(message)
    if not names or len(set(names)) != len(names):
        message = "it holds no name at all, or one twice"
        raise ValueError(message)
    return names


def _globs(globs: tuple[str, ...]) -> tuple[str, ...]:
    for glob in globs:
        if glob.startswith(("/", "~")) or "\\" in glob or ".." in glob.split("/") or not glob.isprintable():
            message = "globs are relative to the docs folder, with / between names and without .."
            raise ValueError(message)
    return globs


def _host(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        pass
    if not re.fullmatch(r"(?=.{1,253}$)[A-Za-z0-9]([\w-]*\w)?(\.[A-Za-z0-9]([\w-]*\w)?)*", host) or re.fullmatch(
        r"[\d.]+", host
    ):
        message = "it is neither (leave the port out: it has its own variable)"
        raise ValueError(message)
    return host


class WorkerSettings(KnowledgeSettings):
    """Everything `trickbook-worker` reads. Units are in the names; None means unlimited."""

    sources: Annotated[tuple[str, ...], BeforeValidator(_items), AfterValidator(_sources)] = Field(
        SOURCES,
        validation_alias="WORKER_SOURCES",
        description=f"names out of {', '.join(SOURCES)}, with commas between",
    )
    metrics_host: Annotated[str, AfterValidator(_host)] = Field(
        "127.0.0.1", validation_alias="WORKER_METRICS_HOST", description="an address or a host name of this machine"
    )
    metrics_port: Annotated[int, Field(ge=0, le=65535)] = Field(
        9464, validation_alias="WORKER_METRICS_PORT", description="a port from 1 to 65535, or 0 for any free one"
    )
    coalesce_ms: Annotated[int, Field(ge=0, le=10_000)] = Field(
        300, validation_alias="WORKER_COALESCE_MS", description="a whole number of milliseconds from 0 to 10000"
    )
    drain_seconds: Annotated[float, Field(gt=0, le=300, allow_inf_nan=False)] = Field(
        10.0, validation_alias="WORKER_DRAIN_SECONDS", description="a number of seconds above 0, up to 300"
    )
    rescan_hours: Annotated[float, Field(gt=0, le=8760, allow_inf_nan=False)] = Field(
        168.0, validation_alias="WORKER_RESCAN_HOURS", description="a number of hours above 0, up to 8760"
    )
    daily_budget_usd: Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)] | None = Field(
        None, validation_alias="WORKER_DAILY_BUDGET_USD", description="an amount of dollars above 0, up to 10000"
    )
    tokens_per_minute: Annotated[int, Field(ge=8192, le=1_000_000_000)] | None = Field(
        None,
        validation_alias="WORKER_TOKENS_PER_MINUTE",
        description="a whole number from 8192 (one full text) to 1000000000",
    )
    requests_per_minute: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, validation_alias="WORKER_REQUESTS_PER_MINUTE", description="a whole number from 1 to 1000000"
    )
    docs_allow: Annotated[tuple[str, ...], BeforeValidator(_items), AfterValidator(_globs)] = Field(
        (), validation_alias="WORKER_DOCS_ALLOW", description="globs of documentation files, with commas between"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", validation_alias="WORKER_LOG_LEVEL", description="DEBUG, INFO, WARNING or ERROR"
    )

    def mistakes(self, environ: Mapping[str, str], *, embedded: bool) -> Iterator[Mistake]:
        """What is wrong between the settings, or missing."""
        yield from super().mistakes(environ, embedded=embedded)
        if not embedded:
            yield from self.missing("ATLAS_URI", environ=environ)
        if self.embedding_provider == "openrouter":
            for mistake in self.missing("OPENROUTER_API_KEY", environ=environ):
                yield Mistake(("OPENROUTER_API_KEY", "EMBEDDING_PROVIDER"), mistake.sentence)


class KeylessSettings(WorkerSettings):
    """For commands that embed nothing (docs-sync in a deployment, say): the embedding key need not be there."""

    def mistakes(self, environ: Mapping[str, str], *, embedded: bool) -> Iterator[Mistake]:
        """What is wrong, but for a missing key."""
        for mistake in super().mistakes(environ, embedded=embedded):
            if "OPENROUTER_API_KEY" not in mistake.names:
                yield mistake


def warnings(settings: WorkerSettings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """What is allowed and probably not meant; `check-config` and the start of `run` say it.

    PM2 hands its options to the child as variables of the same name; `pm_id` says that PM2 is there (faults.md K4).
    """
    if "pm_id" not in environ:
        return ()
    timeout = environ.get("kill_timeout", "")
    allowed = int(timeout) if timeout.isdecimal() else PM2_KILL_TIMEOUT
    if allowed >= settings.drain_seconds * 1000:
        return ()
    sentence = (
        f"PM2 kills {allowed} ms after the stop signal, and WORKER_DRAIN_SECONDS is {settings.drain_seconds:g}: set"
        f" kill_timeout in ecosystem.config.cjs above {settings.drain_seconds * 1000:.0f}, or work is done twice."
    )
    return (sentence,)
