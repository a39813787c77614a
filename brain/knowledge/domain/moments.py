"""Moments as people tell them: in the time zone of where something happens."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def zone_named(name: object) -> tzinfo:
    """The time zone of this name (IANA's, such as "Europe/Berlin"); UTC for what is none, or is unknown here."""
    if not isinstance(name, str) or not name.isascii() or not name.isprintable():
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: a name that is a folder of the zone database
        return UTC


def local(moment: datetime, zone: tzinfo, *, timed: bool) -> datetime:
    """The moment by the clocks of a zone; `timed` is false when only its day was told."""
    if not timed and moment == moment.replace(hour=0, minute=0, second=0, microsecond=0):
        zone = UTC  # a day that was written without a time: in another zone it would be the day before
    try:
        return moment.astimezone(zone)
    except OverflowError:  # at either end of the calendar
        return moment
