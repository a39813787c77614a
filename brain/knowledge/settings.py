"""What both programs read from the environment.

Every mistake is told, in sentences that hold no value (it may be a secret).
"""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Annotated, Final, Literal
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import AfterValidator, Field, SecretStr

from brain.knowledge.environment import Mistake, Settings, load, missing, near
from brain.knowledge.errors import ConfigurationFault
from brain.knowledge.pin import MINILM, OPENAI_LARGE, OPENAI_SMALL

__all__ = ["KnowledgeSettings", "Mistake", "Settings", "is_loopback", "load", "missing", "near"]

OPENROUTER_URL: Final = "https://openrouter.ai/api/v1"
OPENAI_URL: Final = "https://api.openai.com/v1"
KNOWN_MODELS: Final = {model.name: model for model in (MINILM, OPENAI_SMALL, OPENAI_LARGE)}
MOST_DIMENSIONS: Final = 8192  # of an Atlas vector index (Atlas Vector Search: "up to 8192 dimensions")
_LONGEST_MODEL: Final = 200  # characters

_MODEL_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.:-]+")
_DATABASE_NAME: Final = re.compile(r"[^/\\. \"$*<>:|?\x00-\x1f]{1,63}")


def is_loopback(host: str | None) -> bool:
    """Whether a host name or address (without brackets) is this machine itself."""
    if host is None:
        return False
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split(url: str) -> SplitResult:
    """The parts of an absolute http(s) URL without credentials, query or fragment."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # read for its check: a bad port raises here
    except ValueError:
        parts = None
    if (
        parts is None
        or parts.scheme not in {"http", "https"}
        or not parts.hostname
        or not url.isprintable()
        or " " in url
    ):
        message = "it is no http(s) address with a host"
        raise ValueError(message)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        message = "it holds credentials, a query or a fragment (keys belong in their own variables)"
        raise ValueError(message)
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        message = "plain http would send the key readable over the network (use https)"
        raise ValueError(message)
    return parts


def _base_url(url: str) -> str:
    return _split(url).geturl().rstrip("/")


def _origin(url: str) -> str:
    parts = _split(url)
    if parts.path not in {"", "/"}:
        message = "it holds a path (links carry their own)"
        raise ValueError(message)
    return parts.geturl().rstrip("/")


def _key(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if not (text.isascii() and text.isprintable()) or any(mark in text for mark in " '\"<>"):
        message = "it holds a blank, a quote, a bracket or a character outside ASCII"
        raise ValueError(message)
    return secret


def _mongo_uri(secret: SecretStr) -> SecretStr:
    """Check the shape without DNS and without the driver, whose import would cost more than the rest of the start."""
    scheme, _, rest = secret.get_secret_value().partition("://")
    if scheme not in {"mongodb", "mongodb+srv"} or not rest:
        message = "it does not start with mongodb:// or mongodb+srv://"
        raise ValueError(message)
    if "<" in rest or ">" in rest:
        message = "it still holds a placeholder in <> (put the real user and password there)"
        raise ValueError(message)
    authority = re.split(r"[/?]", rest, maxsplit=1)[0]
    user, at, hosts = authority.rpartition("@")
    if "@" in user or user.count(":") > 1 or (not at and "@" in rest.partition("?")[0]):
        message = "the user or the password holds a character that must be percent-encoded (: / ? # [ ] @ %)"
        raise ValueError(message)
    if re.search(r"%(?![0-9A-Fa-f]{2})", user):
        message = "the user or the password holds a % that must be written %25"
        raise ValueError(message)
    if not all(
        re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+|[\w.%-]+\.sock)(:\d{1,5})?", host) for host in hosts.split(",")
    ):
        message = "the host part is not host[:port][,host[:port]…]"
        raise ValueError(message)
    return secret


def _database(name: str) -> str:
    if not _DATABASE_NAME.fullmatch(name) or name in {"admin", "local", "config"}:
        message = 'it is reserved, longer than 63 characters, or holds one of / \\ . " $ * < > : | ?'
        raise ValueError(message)
    return name


def _model(name: str) -> str:
    if not _MODEL_NAME.fullmatch(name) or len(name) > _LONGEST_MODEL:
        message = "it does not look like vendor/model"
        raise ValueError(message)
    if name.startswith("openrouter/"):
        message = "a router alias may answer with another model tomorrow, and vectors of two models must never meet"
        raise ValueError(message)
    return name


BaseUrl = Annotated[str, AfterValidator(_base_url)]
Key = Annotated[SecretStr, AfterValidator(_key)]
ModelName = Annotated[str, AfterValidator(_model)]


def _default_model(known: Mapping[str, object]) -> str:
    return MINILM.name if known.get("embedding_provider") == "local" else OPENAI_SMALL.name


def _default_dimensions(known: Mapping[str, object]) -> int:
    model = KNOWN_MODELS.get(str(known.get("embedding_model")))
    return 0 if model is None else model.dimensions  # 0: unknown, which `mistakes` reports


class KnowledgeSettings(Settings):
    """Where the knowledge lives and how it is embedded. `repr` and `str` show no secret.

    With `--embedded`, `atlas_uri` is always None: the address comes from the data folder, never from the environment,
    so that a demo cannot write to a real database.
    """

    atlas_uri: Annotated[SecretStr, AfterValidator(_mongo_uri)] | None = Field(
        None, validation_alias="ATLAS_URI", description="a MongoDB connection string"
    )
    atlas_db: Annotated[str, AfterValidator(_database)] = Field(
        "TrickList2", validation_alias="ATLAS_DB", description="the name of a database"
    )
    mongo_driver: Literal["pymongo", "motor"] = Field(
        "pymongo", validation_alias="MONGO_DRIVER", description="pymongo or motor"
    )
    openrouter_api_key: Key | None = Field(None, validation_alias="OPENROUTER_API_KEY", description="an OpenRouter key")
    openrouter_base_url: BaseUrl = Field(
        OPENROUTER_URL,
        validation_alias="OPENROUTER_BASE_URL",
        description="an https address (http to this machine only)",
    )
    openai_api_key: Key | None = Field(None, validation_alias="OPENAI_API_KEY", description="an OpenAI key")
    openai_base_url: BaseUrl = Field(
        OPENAI_URL, validation_alias="OPENAI_BASE_URL", description="an https address (http to this machine only)"
    )
    embedding_provider: Literal["openrouter", "local"] = Field(
        "openrouter", validation_alias="EMBEDDING_PROVIDER", description="openrouter or local"
    )
    embedding_model: ModelName = Field(
        default_factory=_default_model, validation_alias="EMBEDDING_MODEL", description="the exact name of a model"
    )
    embedding_dimensions: Annotated[int, Field(ge=1, le=MOST_DIMENSIONS)] = Field(
        default_factory=_default_dimensions,
        validation_alias="EMBEDDING_DIMENSIONS",
        description=f"a whole number of dimensions from 1 to {MOST_DIMENSIONS}",
    )
    vector_search: Literal["auto", "atlas", "exact"] = Field(
        "auto", validation_alias="VECTOR_SEARCH", description="auto, atlas or exact"
    )
    site_origin: Annotated[str, AfterValidator(_origin)] | None = Field(
        None, validation_alias="SITE_ORIGIN", description="the origin of the web site, such as https://example.com"
    )

    @classmethod
    def adapt(cls, found: Mapping[str, str], *, embedded: bool) -> Mapping[str, str]:
        """With `--embedded`: the local provider unless another is named, and no address from the environment."""
        if not embedded:
            return found
        return {"EMBEDDING_PROVIDER": "local"} | {name: text for name, text in found.items() if name != "ATLAS_URI"}

    def mistakes(self, environ: Mapping[str, str], *, embedded: bool) -> Iterator[Mistake]:
        """What is wrong between the settings."""
        yield from super().mistakes(environ, embedded=embedded)
        yield from self._embedding_mistakes()
        if self.mongo_driver == "motor" and find_spec("motor") is None:
            yield Mistake(
                ("MONGO_DRIVER",),
                "MONGO_DRIVER is motor, which is not installed: install the extra `motor`, or remove it.",
            )

    def _embedding_mistakes(self) -> Iterator[Mistake]:
        local = self.embedding_provider == "local"
        pair = ("EMBEDDING_PROVIDER", "EMBEDDING_MODEL")
        known = KNOWN_MODELS.get(self.embedding_model)
        if local and known is not MINILM:
            yield Mistake(pair, f"EMBEDDING_MODEL must be {MINILM.name} with the local provider: remove it.")
        elif not local and known is MINILM:
            yield Mistake(
                pair, "EMBEDDING_MODEL is the local model: set EMBEDDING_PROVIDER=local, or name another model."
            )
        elif known is None and not self.embedding_dimensions:
            yield Mistake(
                ("EMBEDDING_MODEL", "EMBEDDING_DIMENSIONS"),
                "EMBEDDING_DIMENSIONS is not set and the width of this EMBEDDING_MODEL is not known here: set it to the"
                " width that the model's card names.",
            )
        elif known is not None and self.embedding_dimensions != known.dimensions:
            yield Mistake(
                ("EMBEDDING_MODEL", "EMBEDDING_DIMENSIONS"),
                f"EMBEDDING_DIMENSIONS must be {known.dimensions} for {known.name}: correct it, or remove it.",
            )
        if local and (find_spec("onnxruntime") is None or find_spec("tokenizers") is None):
            yield Mistake(
                ("EMBEDDING_PROVIDER",),
                "EMBEDDING_PROVIDER is local, which is not installed: install the extra `local`, or set openrouter.",
            )

    def missing(self, *names: str, environ: Mapping[str, str] | None = None) -> Iterator[Mistake]:
        """The mistakes for those of ATLAS_URI, OPENROUTER_API_KEY, OPENAI_API_KEY that a command needs and has not."""
        held = {
            "ATLAS_URI": self.atlas_uri,
            "OPENROUTER_API_KEY": self.openrouter_api_key,
            "OPENAI_API_KEY": self.openai_api_key,
        }
        for name in names:
            if held[name] is None:
                yield missing(name, environ or {}, _REMEDIES[name])

    def require(self, *names: str, environ: Mapping[str, str] | None = None) -> None:
        """Raise ConfigurationFault naming every one of these variables that is not set."""
        sentences = [mistake.sentence for mistake in self.missing(*names, environ=environ)]
        if sentences:
            raise ConfigurationFault(sentences)

    def secret_values(self) -> tuple[str, ...]:
        """Every secret text that must never appear in a log: the keys, the URI, and its password written both ways."""
        held = [self.atlas_uri, self.openrouter_api_key, self.openai_api_key]
        texts = [secret.get_secret_value() for secret in held if secret is not None]
        uri = self.atlas_uri.get_secret_value() if self.atlas_uri is not None else ""
        user = uri.partition("://")[2].rpartition("@")[0]
        password = user.partition(":")[2]
        return tuple(dict.fromkeys(text for text in (*texts, password, unquote(password)) if text))


_REMEDIES: Final = {
    "ATLAS_URI": "set it to the connection string from Atlas (Connect, Drivers), or add --embedded to run without.",
    "OPENROUTER_API_KEY": "create one under openrouter.ai/keys and set it, or set EMBEDDING_PROVIDER=local.",
    "OPENAI_API_KEY": "create one under platform.openai.com/api-keys and set it.",
}
