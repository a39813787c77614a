"""Settings: every mistake is named, all at once, in sentences without values."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.config import PREFIX as BRAIN
from brain.config import BrainSettings
from brain.knowledge.errors import ConfigurationFault
from brain.knowledge.settings import KnowledgeSettings, load
from worker.config import PREFIX as WORKER
from worker.config import SOURCES, WorkerSettings, warnings

URI = "mongodb+srv://worker:Canary%2FPass1@cluster.example.net/?retryWrites=true"
GOOD = {"ATLAS_URI": URI, "OPENROUTER_API_KEY": "sk-or-v1-canarykey2"}
CANARIES = ("Canary", "canary")


def mistakes(
    environ: dict[str, str],
    model_class: type[KnowledgeSettings] = WorkerSettings,
    prefix: str = WORKER,
    *,
    embedded: bool = False,
) -> tuple[str, ...]:
    """The sentences that reading this environment ends with, or none."""
    try:
        load(model_class, environ, prefix, embedded=embedded)
    except ConfigurationFault as fault:
        return fault.mistakes
    return ()


def test_defaults_are_the_contract() -> None:
    """With only the required names set, every other setting has the default that is documented."""
    settings = load(WorkerSettings, GOOD, WORKER)
    assert settings.atlas_db == "TrickList2"
    assert settings.mongo_driver == "pymongo"
    assert settings.openrouter_base_url == "https://openrouter.ai/api/v1"
    assert (settings.embedding_provider, settings.embedding_model, settings.embedding_dimensions) == (
        "openrouter",
        "openai/text-embedding-3-small",
        1536,
    )
    assert settings.vector_search == "auto"
    assert settings.sources == SOURCES
    assert (settings.metrics_host, settings.metrics_port) == ("127.0.0.1", 9464)
    assert (settings.coalesce_ms, settings.drain_seconds, settings.rescan_hours) == (300, 10, 168)
    assert settings.daily_budget_usd is settings.tokens_per_minute is settings.requests_per_minute is None
    assert settings.docs_allow == ()


def test_embedded_needs_nothing_and_never_uses_a_real_address() -> None:
    """`--embedded` means the local model, no key, and no ATLAS_URI even when one is set."""
    settings = load(WorkerSettings, {}, WORKER, embedded=True)
    assert (settings.embedding_provider, settings.embedding_dimensions) == ("local", 384)
    assert settings.embedding_model == "sentence-transformers/all-MiniLM-L6-v2"
    assert load(WorkerSettings, {"ATLAS_URI": "nonsense"}, WORKER, embedded=True).atlas_uri is None


def test_embedded_may_use_openrouter_when_it_is_named() -> None:
    """A provider that is set wins over the default of `--embedded`, and then needs its key."""
    environ = {"EMBEDDING_PROVIDER": "openrouter"}
    assert any(text.startswith("OPENROUTER_API_KEY is not set") for text in mistakes(environ, embedded=True))
    settings = load(WorkerSettings, environ | {"OPENROUTER_API_KEY": "sk-x"}, WORKER, embedded=True)
    assert settings.embedding_dimensions == 1536


def test_values_are_read() -> None:
    """Well-formed values arrive, trimmed; blank ones count as unset."""
    settings = load(
        WorkerSettings,
        GOOD
        | {
            "WORKER_SOURCES": "spots, docs ,",
            "WORKER_METRICS_HOST": "[::1]",
            "WORKER_METRICS_PORT": " 0 ",
            "WORKER_DAILY_BUDGET_USD": "2.5",
            "WORKER_USD_PER_MILLION_TOKENS": "0.05",
            "WORKER_DOCS_ALLOW": "guide/**,intro.md",
            "WORKER_COALESCE_MS": "  ",
            "OPENROUTER_BASE_URL": "http://127.0.0.1:9/v1/",
            "EMBEDDING_MODEL": "vendor/model-x",
            "EMBEDDING_DIMENSIONS": "12",
            "SITE_ORIGIN": "https://example.com/",
        },
        WORKER,
    )
    assert settings.sources == ("spots", "docs")
    assert (settings.metrics_host, settings.metrics_port, settings.coalesce_ms) == ("::1", 0, 300)
    assert settings.daily_budget_usd == 2.5
    assert settings.price("vendor/model-x", 2_000_000) == pytest.approx(0.1)
    assert (settings.batch_texts, settings.batch_tokens, settings.concurrency) == (128, 60_000, 8)
    assert settings.docs_allow == ("guide/**", "intro.md")
    assert settings.openrouter_base_url == "http://127.0.0.1:9/v1"
    assert (settings.embedding_model, settings.embedding_dimensions) == ("vendor/model-x", 12)
    assert settings.site_origin == "https://example.com"


def test_a_budget_needs_a_price() -> None:
    """One that nobody knows could not be kept: it must be named, or the budget be removed. The local model is free."""
    unknown = GOOD | {"EMBEDDING_MODEL": "vendor/model-x", "EMBEDDING_DIMENSIONS": "12", "WORKER_DAILY_BUDGET_USD": "1"}
    assert mistakes(unknown | {"WORKER_USD_PER_MILLION_TOKENS": "0.05"}) == ()
    (sentence,) = mistakes(unknown)
    assert "WORKER_USD_PER_MILLION_TOKENS" in sentence
    assert mistakes(GOOD | {"WORKER_DAILY_BUDGET_USD": "0.001", "WORKER_TOKENS_PER_MINUTE": "100"}) == ()
    local = load(WorkerSettings, {"WORKER_DAILY_BUDGET_USD": "0.01"}, WORKER, embedded=True)
    assert local.price(local.embedding_model, 10**9) == 0.0


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ATLAS_URI", "", "add --embedded"),
        ("ATLAS_URI", "https://Canary.example", "mongodb://"),
        ("ATLAS_URI", "mongodb://u:Canary@pass@h", "percent-encoded"),
        ("ATLAS_URI", "mongodb://u:Canary/pass@h", "percent-encoded"),
        ("ATLAS_URI", "mongodb://u:Canary%zz@h", "%25"),
        ("ATLAS_URI", "mongodb+srv://u:<db_password>@h", "placeholder"),
        ("ATLAS_URI", "mongodb://u:Canary@h:port", "host[:port]"),
        ("ATLAS_DB", "a.b", "name of a database"),
        ("ATLAS_DB", "admin", "reserved"),
        ("MONGO_DRIVER", "mongoose", "pymongo or motor"),
        ("OPENROUTER_API_KEY", "", "openrouter.ai/keys"),
        ("OPENROUTER_API_KEY", '"sk-canary"', "a quote"),
        ("OPENROUTER_API_KEY", "sk-canary\nX: y", "a blank"),
        ("OPENROUTER_BASE_URL", "http://example.com/v1", "plain http"),
        ("OPENROUTER_BASE_URL", "https://u:Canary@example.com", "credentials"),
        ("OPENROUTER_BASE_URL", "https://example.com/?api_key=canary", "credentials"),
        ("OPENROUTER_BASE_URL", "openrouter.ai", "no http(s) address"),
        ("OPENROUTER_BASE_URL", "http://localhost.example.com/", "plain http"),
        ("OPENROUTER_BASE_URL", "https://example.com:99999/", "no http(s) address"),
        ("OPENAI_BASE_URL", "ftp://example.com", "no http(s) address"),
        ("EMBEDDING_PROVIDER", "openai", "openrouter or local"),
        ("EMBEDDING_MODEL", "text-embedding-3-small", "vendor/model"),
        ("EMBEDDING_MODEL", "openrouter/auto", "alias"),
        ("EMBEDDING_MODEL", "vendor/unknown", "EMBEDDING_DIMENSIONS is not set"),
        ("EMBEDDING_MODEL", "sentence-transformers/all-MiniLM-L6-v2", "EMBEDDING_PROVIDER=local"),
        ("EMBEDDING_PROVIDER", "local", ""),
        ("EMBEDDING_DIMENSIONS", "384", "must be 1536"),
        ("EMBEDDING_DIMENSIONS", "0", "too small"),
        ("EMBEDDING_DIMENSIONS", "99999", "too big"),
        ("VECTOR_SEARCH", "fast", "auto, atlas or exact"),
        ("SITE_ORIGIN", "https://example.com/app", "a path"),
        ("WORKER_SOURCES", "trickpedia", "did you mean trickipedia?"),
        ("WORKER_SOURCES", "knowledge_chunks", "no source"),
        ("WORKER_SOURCES", "spots,spots", "twice"),
        ("WORKER_SOURCES", ",", "no name"),
        ("WORKER_METRICS_HOST", "127.0.0.1:9464", "leave the port out"),
        ("WORKER_METRICS_HOST", "300.1.1.1", "neither"),
        ("WORKER_METRICS_PORT", "94x4", "without a unit"),
        ("WORKER_METRICS_PORT", "65536", "too big"),
        ("WORKER_COALESCE_MS", "300ms", "without a unit"),
        ("WORKER_COALESCE_MS", "-1", "too small"),
        ("WORKER_DRAIN_SECONDS", "0", "too small"),
        ("WORKER_DRAIN_SECONDS", "nan", "finite"),
        ("WORKER_RESCAN_HOURS", "9000", "too big"),
        ("WORKER_DAILY_BUDGET_USD", "$5", "not a number"),
        ("WORKER_DAILY_BUDGET_USD", "inf", "finite"),
        ("WORKER_DAILY_BUDGET_USD", "0.0001", "less than one text"),
        ("WORKER_BATCH_TEXTS", "2049", "too big"),
        ("WORKER_BATCH_TOKENS", "300001", "too big"),
        ("WORKER_CONCURRENCY", "0", "too small"),
        ("WORKER_USD_PER_MILLION_TOKENS", "$0.02", "not a number"),
        ("WORKER_TOKENS_PER_MINUTE", "0", "too small"),
        ("WORKER_REQUESTS_PER_MINUTE", "0", "too small"),
        ("WORKER_DOCS_ALLOW", "../private/**", "without .."),
        ("WORKER_DOCS_ALLOW", "/etc/*", "relative"),
        ("WORKER_LOG_LEVEL", "loud", "another word"),
        ("WORKER_METRIC_PORT", "1", "did you mean WORKER_METRICS_PORT?"),
        ("WORKER_Z", "1", "is not a setting"),
    ],
)
def test_each_mistake_is_one_sentence(name: str, value: str, says: str) -> None:
    """One wrong setting gives exactly one sentence: its name, what is wrong, what to do, and not the value."""
    found = mistakes(GOOD | {name: value})
    if not says:
        assert found == ()
        return
    assert len(found) == 1
    assert says in found[0]
    assert "\n" not in found[0]
    assert name in found[0] or "EMBEDDING_DIMENSIONS" in found[0]
    assert not any(canary in found[0] for canary in CANARIES)


def test_every_mistake_at_once() -> None:
    """Mistakes of single settings, between settings, missing and unknown ones are told together."""
    found = mistakes(
        {
            "ATLAS_URL": URI,
            "WORKER_COALESCE_MS": "soon",
            "WORKER_SOURCE": "spots",
            "EMBEDDING_DIMENSIONS": "5",
            "OPENROUTER_BASE_URL": "http://example.com",
        }
    )
    starts = [text.split()[0] for text in found]
    assert starts == [
        "WORKER_SOURCE",
        "OPENROUTER_BASE_URL",
        "WORKER_COALESCE_MS",
        "EMBEDDING_DIMENSIONS",
        "ATLAS_URI",
        "OPENROUTER_API_KEY",
    ]
    assert "ATLAS_URL is set: a typo?" in found[4]


def test_a_rule_between_settings_waits_for_them_to_be_well_formed() -> None:
    """A wrong provider is told once: what would follow from it is not guessed."""
    assert len(mistakes(GOOD | {"EMBEDDING_PROVIDER": "lokal", "EMBEDDING_DIMENSIONS": "384"})) == 2
    assert len(mistakes({"ATLAS_URI": URI, "EMBEDDING_PROVIDER": "lokal"})) == 1


def test_the_other_programs_names_are_ignored() -> None:
    """The worker reads no BRAIN_ name, the brain no WORKER_ name, not even to complain."""
    assert mistakes(GOOD | {"BRAIN_NONSENSE": "1", "PATH": "/bin"}) == ()
    assert mistakes({"WORKER_NONSENSE": "1"}, BrainSettings, BRAIN) == ()
    assert len(mistakes({"BRAIN_NONSENSE": "1"}, BrainSettings, BRAIN)) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BRAIN_MODEL", "gemini"),
        ("BRAIN_FALLBACK_MODELS", "a/b,c/d,e/f"),
        ("BRAIN_FALLBACK_MODELS", "a/b,a/b"),
        ("BRAIN_FALLBACK_MODELS", "a/b,c"),
        ("BRAIN_USER_ID", "abc"),
        ("BRAIN_USER_ID", "ü" * 24),
        ("BRAIN_LOG_ARGUMENTS", "perhaps"),
    ],
)
def test_the_brains_mistakes(name: str, value: str) -> None:
    """Each of the brain's own settings refuses what it cannot be."""
    (sentence,) = mistakes({name: value}, BrainSettings, BRAIN)
    assert sentence.startswith(f"{name} must be ")


def test_the_brain_names_what_a_command_needs() -> None:
    """The brain starts without keys; a command asks for what it needs and hears of everything that is missing."""
    settings = load(BrainSettings, {"BRAIN_FALLBACK_MODELS": "a/b, c/d", "BRAIN_LOG_ARGUMENTS": "true"}, BRAIN)
    assert settings.fallback_models == ("a/b", "c/d")
    assert settings.log_arguments
    with pytest.raises(ConfigurationFault) as caught:
        settings.require("ATLAS_URI", "OPENROUTER_API_KEY", "OPENAI_API_KEY")
    assert len(caught.value.mistakes) == 3


def test_no_text_shows_a_secret() -> None:
    """`repr`, `str`, a failed read and its chain of causes hold none of the secrets."""
    settings = load(WorkerSettings, GOOD | {"OPENAI_API_KEY": "sk-canarykey3"}, WORKER)
    texts = [repr(settings), str(settings), settings.model_dump_json()]
    with pytest.raises(ConfigurationFault) as caught:
        load(WorkerSettings, GOOD | {"OPENROUTER_API_KEY": "canary key", "WORKER_METRICS_PORT": "canary"}, WORKER)
    assert caught.value.__cause__ is caught.value.__context__ is None
    texts.append(str(caught.value) + repr(caught.value))
    assert not any(canary in text for text in texts for canary in CANARIES)


def test_the_secrets_are_known_to_the_redactor() -> None:
    """The URI, its password in both spellings, and the keys are named for masking."""
    secrets = load(WorkerSettings, GOOD, WORKER).secret_values()
    assert {URI, "Canary%2FPass1", "Canary/Pass1", "sk-or-v1-canarykey2"} == set(secrets)


@given(st.dictionaries(st.sampled_from(["ATLAS_URI", "OPENROUTER_BASE_URL", "WORKER_SOURCES", "WORKER_X"]), st.text()))
def test_any_text_gives_settings_or_sentences(environ: dict[str, str]) -> None:
    """Whatever the values are, the answer is settings or one-line sentences, never another error."""
    assert all(text and "\n" not in text for text in mistakes(GOOD | environ))


def test_pm2_with_too_short_a_patience_is_warned_about() -> None:
    """Under PM2 a kill timeout below the drain is said; above it, or without PM2, nothing is (K4)."""
    settings = load(WorkerSettings, GOOD, WORKER)
    assert len(warnings(settings, {"pm_id": "0"})) == 1
    assert warnings(settings, {"pm_id": "0", "kill_timeout": "15000"}) == ()
    assert warnings(settings, {}) == ()


def test_the_brains_settings_import_nothing_slow() -> None:
    """Reading settings loads neither numpy nor a database driver nor an HTTP client."""
    code = "import sys, brain.config; print([m for m in ('numpy', 'pymongo', 'bson', 'httpx2') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "[]"
