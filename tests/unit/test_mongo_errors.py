"""What the driver's errors mean, and that no message holds a password or a document."""

import pytest
from bson.errors import InvalidDocument
from pymongo import errors

from brain.knowledge.connect import Target, as_knowledge_error, masked, open_client
from brain.knowledge.errors import (
    ConfigurationFault,
    Fatal,
    IndexMissing,
    KnowledgeError,
    Poison,
    Refused,
    Unavailable,
    Unreachable,
)

ADDRESS = "mongodb://rider:pa55word@db.example:27017/x"


@pytest.mark.parametrize(
    ("raised", "meant"),
    [
        (errors.ServerSelectionTimeoutError(f"{ADDRESS}: refused"), Unreachable),
        (errors.AutoReconnect("reset"), Unreachable),
        (errors.NotPrimaryError("not primary"), Unreachable),
        (errors.NetworkTimeout("timed out"), Unreachable),
        (errors.WaitQueueTimeoutError("pool"), Unreachable),
        (errors.ConfigurationError(ADDRESS), ConfigurationFault),
        (errors.InvalidURI(ADDRESS), ConfigurationFault),
        (errors.OperationFailure("secret text", 13), Refused),
        (errors.OperationFailure("secret text", 18), Refused),
        (errors.OperationFailure("bad auth secret text", 8000), Refused),
        (errors.OperationFailure("secret text", 91), Unavailable),
        (errors.OperationFailure("secret text", 112), Unavailable),
        (errors.OperationFailure("secret text", 211), Unavailable),
        (errors.OperationFailure("secret text", 234), Unavailable),
        (errors.OperationFailure("x", 9999, {"errorLabels": ["ResumableChangeStreamError"]}), Unavailable),
        (errors.ExecutionTimeout("secret text", 50), Unavailable),
        (errors.OperationFailure("x", 9999, {"errorLabels": ["TransientTransactionError"]}), Unavailable),
        (errors.WTimeoutError("secret text", 64), Unavailable),
        (errors.OperationFailure("secret text", 27), IndexMissing),
        (errors.OperationFailure("secret text", 2), Fatal),
        (errors.BulkWriteError({"writeErrors": [{"code": 13, "errmsg": "secret text"}]}), Refused),
        (errors.BulkWriteError({"writeErrors": [{"code": 11000, "errmsg": "secret text"}]}), Fatal),
        (errors.BulkWriteError({"writeErrors": [], "writeConcernErrors": [{"code": 91}]}), Unavailable),
        (errors.InvalidOperation("closed"), Fatal),
        (InvalidDocument("secret text"), Poison),
    ],
)
def test_every_error_has_its_type(raised: errors.PyMongoError, meant: type[KnowledgeError]) -> None:
    """By type and code; the server's words about an operation are not repeated, credentials never."""
    error = as_knowledge_error(raised, "reading the pin")
    assert type(error) is meant
    assert str(error).startswith("reading the pin: ")
    assert "pa55word" not in str(error)
    assert "secret text" not in str(error)
    assert "\n" not in str(error)


def test_a_failed_lookup_is_no_configuration_fault() -> None:
    """`mongodb+srv://` without DNS: the driver says ConfigurationError, and it may work in a minute."""
    dns = type("NXDOMAIN", (Exception,), {"__module__": "dns.resolver"})("no such name")
    wrapped = errors.ConfigurationError("no such name")
    wrapped.__cause__ = dns
    assert type(as_knowledge_error(wrapped, "connecting")) is Unreachable


@pytest.mark.parametrize("uri", ["mongodb://", "http://x", "mongodb://u:pa55word@", "mongodb://h:notaport/", ""])
async def test_uris_that_are_none(uri: str) -> None:
    """A broken address is a configuration fault that does not quote it."""
    with pytest.raises(ConfigurationFault) as caught:
        open_client(Target(uri, "x"))
    assert "pa55word" not in str(caught.value)


async def test_options_that_everybody_needs() -> None:
    """Majority, aware times, no retryable writes on the embedded server."""
    for embedded in (False, True):
        client = open_client(Target("mongodb://127.0.0.1:1/", "x", embedded=embedded))
        options = client.options
        assert options.write_concern.document == {"w": "majority"}
        assert options.read_concern.level == "majority"
        assert client.codec_options.tz_aware
        assert options.retry_writes is not embedded
        await client.close()


def test_credentials_are_masked() -> None:
    """In every URL of a text, whatever the password holds; a target shows none."""
    assert masked(f"at {ADDRESS} and https://k:v@h/p") == "at mongodb://***@db.example:27017/x and https://***@h/p"
    assert masked("mongodb://u:p%40@h,h2/x") == "mongodb://***@h,h2/x"
    assert masked("mongodb://u:p@p@h/x") == "mongodb://***@h/x"
    assert "pa55word" not in repr(Target(ADDRESS, "x"))
