"""Embeddings from OpenRouter, or from any endpoint that speaks OpenAI's `/embeddings`.

Source: OpenRouter's openapi.yaml, `/embeddings`. The input is always strings (token arrays are answered with "No
embedding data received"), the answer is always asked for as plain floats. What comes back is trusted in nothing:
order, count, width, finiteness and the model's name are checked, because a wrong vector that is stored poisons search
silently.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

import numpy as np

from brain.knowledge.chunk import Vector
from brain.knowledge.embedding import Embedded, Purpose, Usage
from brain.knowledge.embedding.texts import check_texts
from brain.knowledge.errors import BadVector, Malformed, PinMismatch, WrongWidth
from brain.knowledge.http import HttpClient, Library
from brain.knowledge.pin import Model
from brain.knowledge.provider_errors import json_body, raise_for_error

DEADLINE_SECONDS: Final = 60.0
_WHO: Final = "the embedding provider"
_SHORTENABLE: Final = "text-embedding-3-"
"""OpenAI's models of this name take `dimensions`; others answer 400 or ignore it."""

_BYTES_PER_NUMBER: Final = 32  # a float in JSON with its comma and blanks is shorter
_BYTES_BESIDE: Final = 1 << 20  # the envelope, and error pages


class OpenRouterClient:
    """One pinned model behind `<base URL>/embeddings`. Does not retry."""

    def __init__(
        self,
        model: Model,
        api_key: str,
        base_url: str,
        *,
        library: Library | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        """Check the settings, connect to nothing; raises ConfigurationFault."""
        self._model = model
        self.deadline_seconds = deadline_seconds
        self._http = HttpClient(base_url, {"Authorization": f"Bearer {api_key}"}, library)

    @property
    def model(self) -> Model:
        """The pinned model."""
        return self._model

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """Embed the texts in one request; see the port for the errors."""
        del purpose  # the models we pin read questions and documents alike
        if not texts:
            return Embedded(())
        check_texts(texts)
        payload: dict[str, object] = {"model": self._model.name, "input": list(texts), "encoding_format": "float"}
        if _last_segment(self._model.name).startswith(_SHORTENABLE):
            payload["dimensions"] = self._model.dimensions
        cap = _BYTES_BESIDE + len(texts) * self._model.dimensions * _BYTES_PER_NUMBER
        reply = await self._http.post_json("/embeddings", payload, self.deadline_seconds, cap)
        raise_for_error(reply, _WHO)
        body = json_body(reply, _WHO, constants=True)
        self._check_model(body.get("model"))
        return Embedded(
            self._vectors(body.get("data"), len(texts)), replace(_usage(body.get("usage")), twice=reply.resent)
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _check_model(self, answered: object) -> None:
        """Raise PinMismatch when another model answered, Malformed when nobody says which did.

        Providers differ in the vendor's prefix (`openai/text-embedding-3-small` comes back as
        `text-embedding-3-small`), in case, and in OpenRouter's routing suffix (`:free`), so the last segment of the
        name is compared without these. Every one of them sends the name (OpenAI's reply has it always); an answer
        without it might be any model's of that width, and would poison search silently.
        """
        if not isinstance(answered, str) or not answered.strip():
            message = f"{_WHO} answered without the name of the model (field `model`): try again later"
            raise Malformed(message)
        if _last_segment(answered) != _last_segment(self._model.name):
            shown = "".join(c for c in answered[:80] if c.isprintable())
            message = (
                f"{_WHO} answered with the model {shown} instead of {self._model.name}: pin a model "
                "that it still serves"
            )
            raise PinMismatch(message)

    def _vectors(self, data: object, count: int) -> tuple[Vector, ...]:
        """The vectors in the order of the texts: placed by `index`, each of them there exactly once."""
        rows = cast("list[object]", data) if isinstance(data, list) else []
        if len(rows) != count:
            message = f"{_WHO} answered with {len(rows)} vectors for {count} texts: try again later"
            raise Malformed(message)
        placed: dict[int, Vector] = {}
        for row in rows:
            fields = cast("dict[str, object]", row) if isinstance(row, dict) else {}
            index = fields.get("index")
            if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count or index in placed:
                message = f"{_WHO} answered with vectors whose order is unclear (index): try again later"
                raise Malformed(message)
            placed[index] = self._vector(fields.get("embedding"))
        return tuple(placed[index] for index in range(count))

    def _vector(self, value: object) -> Vector:
        numbers = cast("list[float]", value) if isinstance(value, list) else []
        if len(numbers) != self._model.dimensions:
            message = (
                f"{_WHO} answered with a vector of {len(numbers)} numbers, not "
                f"{self._model.dimensions}: check the model's width"
            )
            raise WrongWidth(message)
        if not set(map(type, numbers)) <= {int, float}:
            message = f"{_WHO} answered with a vector that holds something else than numbers: try again later"
            raise BadVector(message)
        try:
            wide = np.array(numbers, dtype=np.float64)
        except OverflowError:  # an integer of hundreds of digits
            wide = np.array([np.inf])
        if not np.isfinite(wide).all() or np.abs(wide).max() > np.finfo(np.float32).max:
            message = f"{_WHO} answered with a vector that is not finite: try again later"
            raise BadVector(message)
        vector = wide.astype(np.float32)
        if not vector.any():
            message = f"{_WHO} answered with a vector of zeros only: try again later"
            raise BadVector(message)
        return vector


def _last_segment(name: str) -> str:
    return name.rsplit("/", 1)[-1].split(":", 1)[0].strip().lower()


def _usage(value: object) -> Usage:
    """Tokens and US dollars as reported; odd or missing figures count as not reported.

    With a key of one's own (`is_byok`) OpenRouter's `cost` is its fee, and the upstream's price stands beside it.
    """
    fields: Mapping[str, object] = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    tokens = fields.get("total_tokens", fields.get("prompt_tokens"))
    cost = _dollars(fields.get("cost"))
    if cost is not None and fields.get("is_byok") is True:
        details = fields.get("cost_details")
        upstream = cast("dict[str, object]", details).get("upstream_inference_cost") if isinstance(details, dict) else 0
        cost += _dollars(upstream) or 0.0
    return Usage(
        tokens=tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens >= 0 else 0,
        cost_usd=cost,
    )


def _dollars(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        return None
    return float(value)
