"""The brain's own settings, beside those it shares with the worker."""

from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field

from brain.knowledge.settings import KnowledgeSettings

PREFIX: Final = "BRAIN_"
MOST_FALLBACKS: Final = 2  # OpenRouter takes three models a request at most: with the first


def _names(raw: object) -> object:
    """A comma-separated text as a tuple, without empty items."""
    return tuple(item.strip() for item in raw.split(",") if item.strip()) if isinstance(raw, str) else raw


def _chat_model(name: str) -> str:
    vendor, slash, model = name.partition("/")
    if not (vendor and slash and model and name.isascii() and name.isprintable() and " " not in name):
        message = "it does not look like vendor/model"
        raise ValueError(message)
    return name


def _few(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) > MOST_FALLBACKS or len(set(names)) != len(names):
        message = f"it holds more than {MOST_FALLBACKS} models, or one twice"
        raise ValueError(message)
    return names


def _user(text: str) -> str:
    from brain.knowledge.domain.ids import hex_id  # noqa: PLC0415 needs the driver, which reading settings does not

    known = hex_id(text)
    if known is None:
        message = "it is not 24 hexadecimal digits"
        raise ValueError(message)
    return known


ChatModel = Annotated[str, AfterValidator(_chat_model)]


class BrainSettings(KnowledgeSettings):
    """Everything `trickbook-brain` reads; which keys are needed depends on the command: see `require`."""

    model: ChatModel = Field(
        "google/gemini-3.5-flash", validation_alias="BRAIN_MODEL", description="the name of a chat model (vendor/model)"
    )
    fallback_models: Annotated[tuple[ChatModel, ...], BeforeValidator(_names), AfterValidator(_few)] = Field(
        (),
        validation_alias="BRAIN_FALLBACK_MODELS",
        description=f"up to {MOST_FALLBACKS} chat models with commas between",
    )
    user_id: Annotated[str, AfterValidator(_user)] | None = Field(
        None, validation_alias="BRAIN_USER_ID", description="the id of the rider that the command line speaks for"
    )
    log_arguments: bool = Field(default=False, validation_alias="BRAIN_LOG_ARGUMENTS", description="true or false")
