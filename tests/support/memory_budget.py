"""What embedding costs, kept in memory: implements `worker.ports.SpendBook`."""

from worker.errors import FencedOff
from worker.model import Leadership, Reservation


class MemoryBudget:
    """Rows of days, as the database has them."""

    def __init__(self) -> None:
        self.rows: dict[str, float] = {}
        self.open: dict[tuple[str, str], float] = {}
        self.epochs: dict[str, int] = {}

    async def counted(self, day: str) -> float:
        """US dollars counted of a day."""
        return max(0.0, self.rows.get(day, 0.0))

    async def reserve(self, reservation: Reservation, limit: float, leadership: Leadership) -> bool:
        """Count it if it fits."""
        name = (reservation.day, reservation.id)
        self._check(reservation.day, leadership)
        if name in self.open:
            return True
        if self.rows.get(reservation.day, 0.0) + reservation.usd > limit:
            return False
        self.epochs[reservation.day] = leadership.epoch
        self.rows[reservation.day] = self.rows.get(reservation.day, 0.0) + reservation.usd
        self.open[name] = reservation.usd
        return True

    async def settle(self, reservation: Reservation, usd: float, leadership: Leadership) -> None:
        """Put the true cost in its place."""
        self._check(reservation.day, leadership)
        if self.open.pop((reservation.day, reservation.id), None) is not None:
            self.rows[reservation.day] += usd - reservation.usd

    def _check(self, day: str, leadership: Leadership) -> None:
        if self.epochs.get(day, 0) > leadership.epoch:
            message = "another leads"
            raise FencedOff(message)
