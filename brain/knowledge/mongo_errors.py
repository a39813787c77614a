"""What a PyMongo error means: one of our own, by type and code.

Both halves use this. Callers that expect a code (a write conflict, a lost history, a server without search) look at it
before they come here. Sources: MongoDB's error code list, and the drivers' specifications of retryable reads and of
change streams for the codes that mean "not now".
"""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from bson.errors import BSONError
from pymongo import errors

from brain.knowledge.errors import (
    ConfigurationFault,
    Fatal,
    IndexMissing,
    KnowledgeError,
    Poison,
    Refused,
    Unavailable,
    Unreachable,
    Unsupported,
)

_UNSUPPORTED: Final = frozenset({59, 115, 31082, 40324})
"""CommandNotFound, CommandNotSupported, SearchNotEnabled, unrecognised stage: no vector search on this server."""

_REFUSED: Final = frozenset({13, 18, 8000})  # Unauthorized, AuthenticationFailed, Atlas' own "bad auth"
_NOT_NOW: Final = frozenset(
    {
        *(6, 7, 89, 9001),  # HostUnreachable, HostNotFound, NetworkTimeout, SocketException
        *(91, 11600, 11602),  # ShutdownInProgress, InterruptedAtShutdown, InterruptedDueToReplStateChange
        *(189, 10107, 13435, 13436),  # PrimarySteppedDown and the three kinds of not being primary
        *(50, 64, 112, 134, 262),  # MaxTimeMSExpired, WriteConcern, WriteConflict, ReadConcernNotYet, ExceededTimeLimit
        *(251, 246, 290, 384),  # NoSuchTransaction, SnapshotUnavailable, TransactionExceededLifetime, ConnectionError
        *(43, 175, 237),  # CursorNotFound, QueryPlanKilled, CursorKilled
        *(24, 239),  # LockTimeout, SnapshotTooOld
        *(133, 211, 216),  # FailedToSatisfyReadPreference, KeyNotFound (just after an election), ElectionInProgress
        *(63, 150, 234, 13388),  # StaleShardVersion, StaleEpoch, RetryChangeStream, StaleConfig
        *(202, 462, 489),  # NetworkInterfaceExceededTimeLimit, IngressRequestRateLimitExceeded, search overload
    }
)
_INDEX_MISSING: Final = 27
_PASSING_LABELS: Final = (
    "TransientTransactionError",
    "RetryableWriteError",
    "ResumableChangeStreamError",
    "SystemOverloadedError",
)
_LONGEST_REASON: Final = 160  # characters
_CREDENTIALS: Final = re.compile(r"//[^\s/]*@")


def masked(text: str) -> str:
    """The text with the credentials of every URL in it replaced."""
    return _CREDENTIALS.sub("//***@", text)


def as_knowledge_error(exc: errors.PyMongoError | BSONError, doing_what: str) -> KnowledgeError:
    """Our error for a driver's. `doing_what` starts the message ("reading the pin").

    The server's text is repeated for connection errors only: that of a failed operation may quote documents.
    """
    match exc:
        case errors.OperationFailure():
            return _of_code(exc, doing_what)
        case errors.ConfigurationError() if _is_dns(exc):
            return Unreachable(f"{doing_what}: the database's name cannot be resolved; check the network and ATLAS_URI")
        case errors.ConfigurationError() | errors.InvalidURI():
            return ConfigurationFault(f"{doing_what}: ATLAS_URI is no usable MongoDB address ({type(exc).__name__})")
        case BSONError():
            return Poison(f"{doing_what}: a document cannot be written or read as BSON ({type(exc).__name__})")
        case errors.ConnectionFailure() | errors.WaitQueueTimeoutError():
            return Unreachable(
                f"{doing_what}: the database does not answer ({_reason(exc)}); check that it runs and is reachable"
            )
        case _:
            return Fatal(f"{doing_what}: the driver refuses ({type(exc).__name__}); this is a bug, please report it")


def code_of(exc: errors.OperationFailure) -> int | None:
    """The code of a failed operation; for a bulk write that of its first error."""
    if exc.code is not None and not isinstance(exc, errors.BulkWriteError):
        return exc.code
    details = cast("Mapping[str, Any]", exc.details or {})
    failed: list[Mapping[str, Any]] = [*details.get("writeErrors", ()), *details.get("writeConcernErrors", ())]
    return int(failed[0]["code"]) if failed and "code" in failed[0] else exc.code


def _of_code(exc: errors.OperationFailure, doing_what: str) -> KnowledgeError:
    code = code_of(exc)
    told = f"{doing_what}: the database answered with code {code}"
    if code in _REFUSED:
        return Refused(f"{told}; check the user, the password and the role in ATLAS_URI")
    if code in _NOT_NOW or any(exc.has_error_label(label) for label in _PASSING_LABELS):
        return Unavailable(f"{told}; try again later")
    if isinstance(exc, errors.WTimeoutError | errors.ExecutionTimeout) or exc.timeout:
        return Unavailable(f"{told} (timed out); try again later")
    if code == _INDEX_MISSING:
        return IndexMissing(f"{told}: the index does not exist; create it with `python -m worker index ensure`")
    if code in _UNSUPPORTED:
        return Unsupported(f"{told}: this server cannot do that")
    return Fatal(f"{told} ({type(exc).__name__}); look the code up in MongoDB's error code list")


def _is_dns(exc: errors.ConfigurationError) -> bool:
    """Whether a lookup for `mongodb+srv://` failed, which the driver reports as a wrong setting."""
    cause = exc.__cause__
    return cause is not None and type(cause).__module__.startswith("dns.")


def _reason(exc: errors.PyMongoError) -> str:
    """The first clause of a connection error, in one line, without credentials."""
    first = masked(str(exc)).split(" (configured timeouts", 1)[0].split(", Timeout:", 1)[0]
    return " ".join(first.split())[:_LONGEST_REASON]
