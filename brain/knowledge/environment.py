"""From environment variables to a frozen settings value, with every mistake at once.

A mistake is one sentence: the name, what is wrong, what to do. A sentence never repeats the value that was found,
because people paste keys into the wrong variable; the nearest known word may be named instead.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from brain.knowledge.errors import ConfigurationFault


@dataclass(frozen=True, slots=True)
class Mistake:
    """One sentence about the variables it names; it is left out when one of them is already wrong by itself."""

    names: tuple[str, ...]
    sentence: str


class Settings(BaseModel):
    """A group of settings: a field's `validation_alias` is its variable, its `description` completes "must be …"."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, validate_by_name=True, validate_by_alias=True
    )

    @classmethod
    def adapt(cls, found: Mapping[str, str], *, embedded: bool) -> Mapping[str, str]:
        """The found values (variable → text, none empty) after the rules of `--embedded`."""
        del embedded
        return found

    def mistakes(self, environ: Mapping[str, str], *, embedded: bool) -> Iterator[Mistake]:
        """What is wrong between several settings, or missing."""
        del environ, embedded
        yield from ()


S = TypeVar("S", bound=Settings)


def load(model_class: type[S], environ: Mapping[str, str], prefix: str, *, embedded: bool = False) -> S:
    """Read a program's settings from its environment.

    A blank value counts as unset. `prefix` is the program's own (`WORKER_`): an unknown name that starts with it is a
    mistake, every other unknown name is ignored. Raises ConfigurationFault with every mistake.
    """
    names = variables(model_class)
    unknown = [_unknown(name, names) for name in sorted(environ) if name.startswith(prefix) and name not in names]
    texts = {name: environ[name].strip() for name in names if environ.get(name, "").strip()}
    found = model_class.adapt(texts, embedded=embedded)
    settings, broken = _read(model_class, found)
    if settings is None:  # the rules between settings still hold for those that are well formed
        settings, _ = _read(model_class, {name: text for name, text in found.items() if name not in broken})
    crossed = settings.mistakes(environ, embedded=embedded) if settings is not None else ()
    every = [*unknown, *broken.values(), *(m.sentence for m in crossed if not broken.keys() & set(m.names))]
    if every or settings is None:
        raise ConfigurationFault(every)
    _unset(settings, found.keys() - texts.keys())
    return settings


def _unset(settings: Settings, assumed: Iterable[str]) -> None:
    """Count what `adapt` put there as unset: `model_fields_set` says what a person named."""
    fields = {str(info.validation_alias): name for name, info in type(settings).model_fields.items()}
    settings.model_fields_set.difference_update(fields[name] for name in assumed)


def variables(model_class: type[Settings]) -> tuple[str, ...]:
    """The environment variables that a group of settings reads, in the order of its fields."""
    return tuple(str(info.validation_alias) for info in model_class.model_fields.values())


def missing(name: str, environ: Mapping[str, str], remedy: str) -> Mistake:
    """The mistake for a required variable that is not set, with the name of a look-alike that is."""
    alike = difflib.get_close_matches(name, [other for other in environ if other != name], n=1, cutoff=0.85)
    hint = f" ({alike[0]} is set: a typo?)" if alike else ""
    return Mistake((name,), f"{name} is not set{hint}: {remedy}")


def near(word: str, known: Iterable[str]) -> str:
    """`" (did you mean …?)"` for the nearest known word, or nothing."""
    alike = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {alike[0]}?)" if alike else ""


def _unknown(name: str, names: Iterable[str]) -> str:
    shown = ascii(name)[1:-1][:80]
    return f"{shown} is not a setting{near(name, names)}: correct the name or remove it."


def _read(model_class: type[S], found: Mapping[str, str]) -> tuple[S | None, dict[str, str]]:
    """The settings, or a sentence for each variable that is wrong by itself."""
    try:
        return model_class.model_validate(dict(found)), {}
    except ValidationError as error:
        # Read now and dropped: a ValidationError that travels on as a cause would carry the values.
        details = error.errors(include_url=False, include_input=False)
    described = {
        str(info.validation_alias): info.description or "well formed" for info in model_class.model_fields.values()
    }
    broken: dict[str, str] = {}
    for detail in details:
        name = str(detail["loc"][0]) if detail["loc"] else ""
        if name not in found:  # a default that could not be worked out because another setting is wrong
            continue
        reason = str(detail.get("ctx", {}).get("error") or _REASONS.get(detail["type"], "it is not one"))
        broken.setdefault(
            name, f"{name} must be {described[name]}: {reason}; correct it, or remove it for the default."
        )
    return None, broken


_REASONS: Final = {
    "int_parsing": "it is not a whole number (write digits only, without a unit)",
    "float_parsing": "it is not a number (write digits only, without a unit)",
    "finite_number": "it is not a finite number",
    "greater_than": "it is too small",
    "greater_than_equal": "it is too small",
    "less_than_equal": "it is too big",
    "literal_error": "it is another word",
    "bool_parsing": "it is another word",
    "string_too_long": "it is too long",
}
