"""The worker's own settings, beside those it shares with the brain."""

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from brain.knowledge.pin import MINILM
from brain.knowledge.prices import usd
from brain.knowledge.settings import KnowledgeSettings, Mistake, near
from brain.knowledge.tokens import DEFAULT_WINDOW
from worker.docs_rules import BASE_URL, SITE, allowed, base_url, site_name
from worker.sources.kinds import KINDS

PREFIX: Final = "WORKER_"
SOURCES: Final = tuple(KINDS)
SHARES: Final = 20
"""Requests that a minute's tokens, or a day's budget, are enough for: so at most a twentieth of either stays unused."""

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


def _path(raw: object) -> object:
    """A folder's path; `~` is the user's home."""
    if isinstance(raw, str):
        if not raw.strip() or not raw.isprintable():
            message = "it is empty or holds characters that no path has"
            raise ValueError(message)
        return Path(raw.strip()).expanduser()
    return raw


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
        None,
        validation_alias="WORKER_DAILY_BUDGET_USD",
        description="an amount of dollars above 0 (enough for one full text), up to 10000",
    )
    tokens_per_minute: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = Field(
        None,
        validation_alias="WORKER_TOKENS_PER_MINUTE",
        description="a whole number from 1 to 1000000000",
    )
    requests_per_minute: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, validation_alias="WORKER_REQUESTS_PER_MINUTE", description="a whole number from 1 to 1000000"
    )
    batch_texts: Annotated[int, Field(ge=1, le=2048)] = Field(
        128, validation_alias="WORKER_BATCH_TEXTS", description="a whole number from 1 to 2048 (OpenAI's limit)"
    )
    batch_tokens: Annotated[int, Field(ge=512, le=300_000)] = Field(
        60_000,
        validation_alias="WORKER_BATCH_TOKENS",
        description="a whole number from 512 (one full chunk) to 300000 (OpenAI's limit)",
    )
    concurrency: Annotated[int, Field(ge=1, le=64)] = Field(
        8, validation_alias="WORKER_CONCURRENCY", description="a whole number from 1 to 64"
    )
    usd_per_million_tokens: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] | None = Field(
        None,
        validation_alias="WORKER_USD_PER_MILLION_TOKENS",
        description="the price of EMBEDDING_MODEL in dollars a million tokens, from 0 to 1000",
    )
    docs_allow: Annotated[tuple[str, ...], BeforeValidator(_items), AfterValidator(allowed)] = Field(
        (), validation_alias="WORKER_DOCS_ALLOW", description="globs of documentation files, with commas between"
    )
    docs_path: Annotated[Path, BeforeValidator(_path)] | None = Field(
        None, validation_alias="WORKER_DOCS_PATH", description="the folder that holds the documentation's pages"
    )
    docs_site: Annotated[str, AfterValidator(site_name)] = Field(
        "docs", validation_alias="WORKER_DOCS_SITE", description=SITE
    )
    docs_base_url: Annotated[str, AfterValidator(base_url)] = Field(
        "/docs", validation_alias="WORKER_DOCS_BASE_URL", description=BASE_URL
    )
    docs_minutes: Annotated[float, Field(ge=0.01, le=10_080, allow_inf_nan=False)] = Field(
        10.0, validation_alias="WORKER_DOCS_MINUTES", description="a number of minutes from 0.01 to 10080"
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
        yield from self._budget_mistakes()
        if self.docs_path is not None and not self.docs_allow:
            yield Mistake(
                ("WORKER_DOCS_PATH", "WORKER_DOCS_ALLOW"),
                "WORKER_DOCS_PATH is set and WORKER_DOCS_ALLOW is not: name the pages that riders may read (`**` is"
                " every page), or remove WORKER_DOCS_PATH.",
            )

    def price(self, model: str, tokens: int) -> float | None:
        """US dollars for so many tokens of a model; None when nobody knows. The local model is free.

        What the setting says holds for EMBEDDING_MODEL, and for a model that the price table does not know.
        """
        listed, said = usd(model, tokens), self.usd_per_million_tokens
        if said is None or model == MINILM.name or (listed is not None and model != self.embedding_model):
            return listed
        return said * tokens / 1_000_000

    def request_tokens(self, model: str) -> int:
        """Tokens that one request of a model may hold; a text that is larger goes alone.

        WORKER_BATCH_TOKENS, or less where a minute's tokens or a day's budget would be used up by few requests.
        """
        most = [self.batch_tokens]
        if self.tokens_per_minute is not None:
            most.append(self.tokens_per_minute // min(SHARES, self.requests_per_minute or SHARES))
        if self.daily_budget_usd is not None and (dollars := self.price(model, 1_000_000)):
            most.append(int(self.daily_budget_usd / dollars * 1_000_000) // SHARES)
        return max(1, min(most))

    def _budget_mistakes(self) -> Iterator[Mistake]:
        if self.daily_budget_usd is None:
            return
        text = self.price(self.embedding_model, DEFAULT_WINDOW)
        if text is None:
            yield Mistake(
                ("WORKER_DAILY_BUDGET_USD", "WORKER_USD_PER_MILLION_TOKENS"),
                "WORKER_DAILY_BUDGET_USD needs a price, and that of this EMBEDDING_MODEL is not known here: set"
                " WORKER_USD_PER_MILLION_TOKENS to what its provider asks, or remove the budget.",
            )
        elif text > self.daily_budget_usd:
            yield Mistake(
                ("WORKER_DAILY_BUDGET_USD",),
                f"WORKER_DAILY_BUDGET_USD is less than one text of {DEFAULT_WINDOW} tokens costs ({text:.6f}): a full"
                " one would never be embedded; raise the budget.",
            )


class KeylessSettings(WorkerSettings):
    """For commands that embed nothing (docs-sync in a deployment, say): the embedding key need not be there."""

    def mistakes(self, environ: Mapping[str, str], *, embedded: bool) -> Iterator[Mistake]:
        """What is wrong, but for a missing key."""
        for mistake in super().mistakes(environ, embedded=embedded):
            if "OPENROUTER_API_KEY" not in mistake.names:
                yield mistake


def warnings(settings: WorkerSettings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """What is allowed and probably not meant; `check-config` and the start of `run` say it."""
    return (*_docs_warnings(settings, environ), *_pm2_warnings(settings, environ))


def _docs_warnings(settings: WorkerSettings, environ: Mapping[str, str]) -> Iterator[str]:
    path = settings.docs_path
    if path is None:
        for name in ("WORKER_DOCS_SITE", "WORKER_DOCS_BASE_URL", "WORKER_DOCS_MINUTES"):
            if environ.get(name):
                yield f"{name} does nothing without WORKER_DOCS_PATH: set that too, or remove it."
        return
    if not os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where a parent may not be read
        yield f"WORKER_DOCS_PATH: {path} is no folder that can be read; the docs stay as they are until it is one."
    if "docs" not in settings.sources:
        yield "WORKER_DOCS_PATH fills the collection docs, which WORKER_SOURCES leaves out: nobody will find the pages."


def _pm2_warnings(settings: WorkerSettings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """PM2 hands its options to the child as variables of the same name; `pm_id` tells that it runs."""
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
