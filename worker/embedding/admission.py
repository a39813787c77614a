"""Whether this process could lead with some generations: what its settings say of their models, and their keys."""

from collections.abc import Sequence

from brain.knowledge.embedding.choose import forbids
from brain.knowledge.pin import Pin
from worker.config import WorkerSettings
from worker.embedding.embedders import Embedders
from worker.errors import ConfigurationFault, PinMismatch, PinRefused
from worker.generations import Generations


def check_pins(settings: WorkerSettings, live: Sequence[Pin]) -> None:
    """Raise PinMismatch when the settings name a model that none of these generations has.

    Either model may be named while two live, so that a switch needs no restart in the same moment.
    """
    if all(forbids(settings, pin) for pin in live):
        message = (
            f"the chunks are pinned to {live[0].model} ({live[0].dimensions}) and the settings name "
            f"{settings.embedding_model} ({settings.embedding_dimensions}): unset EMBEDDING_PROVIDER, EMBEDDING_MODEL "
            "and EMBEDDING_DIMENSIONS to follow the pin, or build the other model beside it (`pin build`)"
        )
        raise PinMismatch(message)


class Admission:
    """Asked before the generations change: else the leader would change them, and then end, unable to serve them."""

    def __init__(self, settings: WorkerSettings, embedders: Embedders) -> None:
        self._settings = settings
        self._embedders = embedders

    def __call__(self, after: Generations) -> None:
        """Raise PinRefused, in words, when this process could not lead with these generations."""
        try:
            check_pins(self._settings, after.live)
            for pin in after.live:
                self._embedders.client(pin)
                self._check_price(pin)
        except (ConfigurationFault, PinMismatch) as error:
            message = f"the worker that leads could not go on with that: {error}"
            raise PinRefused(message) from error

    def _check_price(self, pin: Pin) -> None:
        """A leader that may spend only so much, and does not know what a model costs, stops embedding altogether."""
        if self._settings.daily_budget_usd is not None and self._settings.price(pin.model, 1) is None:
            message = (
                f"the price of {pin.model} is not known: set WORKER_USD_PER_MILLION_TOKENS to what its provider asks, "
                "or remove WORKER_DAILY_BUDGET_USD"
            )
            raise ConfigurationFault(message)
