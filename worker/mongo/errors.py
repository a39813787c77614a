"""The driver's errors that mean something special to the worker; the rest is `brain.knowledge.mongo_errors`."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from bson.errors import BSONError
from pymongo.errors import OperationFailure, PyMongoError

from brain.knowledge.mongo_errors import as_knowledge_error, code_of
from worker.errors import Conflict, DuplicateKey, HistoryLost, KnowledgeError, Poison, WrongTopology

_CONFLICT: Final = frozenset({112, 251, 225, 244})
"""WriteConflict, NoSuchTransaction, TransactionTooOld, TransactionAborted."""

_VAGUE: Final = frozenset({1, 8})
"""InternalError and UnknownError: of a transaction they say that nothing is known of it. SecantusDB tells a conflict so
that shows only at the commit, as when it prunes its history meanwhile."""

_DUPLICATE: Final = 11000
"""DuplicateKey: two upserts met and one of them is there, or somebody's unique index allows no second one."""

_HISTORY_LOST: Final = frozenset({286, 280, 260, 222, 50811})
"""ChangeStreamHistoryLost, ChangeStreamFatalError, InvalidResumeToken, CloseChangeStream, and a token that the server
cannot read."""

_TOO_LARGE: Final = 10334
"""BSONObjectTooLarge: the same question would get the same answer for ever."""

_TOPOLOGY: Final = frozenset({40573, 20})
"""$changeStream and transactions are only supported on replica sets."""


def may_pass(error: KnowledgeError) -> bool:
    """Whether a transaction that ended so may simply be run again."""
    cause = error.__cause__
    return isinstance(cause, OperationFailure) and code_of(cause) in _VAGUE


def worker_error(error: PyMongoError | BSONError, what: str) -> KnowledgeError:
    """Our error for a driver's; `what` starts the message."""
    if isinstance(error, OperationFailure):
        code = code_of(error)
        # The label alone says only "run it again": a connection that breaks inside a transaction has it too.
        if error.has_error_label("TransientTransactionError") or code in _CONFLICT:
            return Conflict(f"{what}: another writer was there first (code {code})")
        if code == _DUPLICATE:
            return DuplicateKey(f"{what}: a key is there already (code {code})")
        if code in _HISTORY_LOST:
            return HistoryLost(f"{what}: the stored position is no longer in the database's history (code {code})")
        if code == _TOO_LARGE:
            return Poison(f"{what}: something is larger than MongoDB's 16 MB (code {code})")
        if code in _TOPOLOGY:
            return WrongTopology(
                f"{what}: this server is no replica set, and change streams need one; use Atlas, or start mongod with "
                "--replSet and initiate it"
            )
    return as_knowledge_error(error, what)


@contextmanager
def doing(what: str) -> Generator[None]:
    """Turn the driver's errors into ours; `what` starts the message."""
    try:
        yield
    except (PyMongoError, BSONError) as error:
        raise worker_error(error, what) from error
