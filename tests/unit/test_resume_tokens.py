"""The time of a resume token's place, in the forms of both servers."""

import bson
import pytest
from bson import Timestamp

from worker.mongo.tokens import token_time


def test_mongodbs_form() -> None:
    """The key string's first value is the cluster time: here 2019-11-19, from MongoDB's manual."""
    token = {"_data": "825DD4B4A0000000012B022C0100296E5A1004"}
    assert token_time(token) == Timestamp(0x5DD4B4A0, 1)


def test_secantusdbs_form() -> None:
    """A BSON document in hex."""
    token = {"_data": bson.encode({"s": 2, "t": Timestamp(1796072141, 12), "n": "x.a"}).hex()}
    assert token_time(token) == Timestamp(1796072141, 12)


@pytest.mark.parametrize("data", [None, 5, "", "82", "zz", "00", "0500000000", bson.encode({"t": 5}).hex()])
def test_other_forms_are_not_guessed(data: object) -> None:
    """None, whatever it is."""
    assert token_time({"_data": data}) is None
