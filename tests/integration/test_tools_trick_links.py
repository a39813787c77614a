"""Linking a trick to a spot or a clip: whose trick it is, what is written, and what is never opened."""

from typing import Any

import pytest
from bson import DBRef, ObjectId

from tests.support.tool_world import JUNO, LOTTE, MIKA, NOW, PRIYA, SAM, TANE, ToolWorld, sample_id

CLIP = "https://clips.example.com/watch?v=1&t=2s"


def trick(number: int) -> str:
    """The id of a sample trick."""
    return sample_id("74", number)


def spot(number: int) -> str:
    """The id of a sample spot."""
    return sample_id("30", number)


async def test_a_spot(world: ToolWorld) -> None:
    """Text, as the readers query it, and the date; nothing else changes."""
    before = await world.row("tricks", trick(1))
    linked = await world.call("link_trick_to_spot", MIKA, trick_id=trick(1), spot_id=spot(3))
    assert linked.data == {
        "success": True,
        "trickId": trick(1),
        "trickName": "Kickflip",
        "spotId": spot(3),
        "spotName": "Cedar Flats Skate Plaza",
        "changed": True,
        "message": "Kickflip is linked to Cedar Flats Skate Plaza",
    }
    assert await world.row("tricks", trick(1)) == {**before, "spotId": spot(3), "updatedAt": NOW}


async def test_a_video(world: ToolWorld) -> None:
    """Likewise."""
    before = await world.row("tricks", trick(2))
    linked = await world.call("link_trick_to_video", MIKA, trick_id=trick(2), video_url=f" {CLIP} ")
    assert (linked.data["videoUrl"], linked.data["changed"]) == (CLIP, True)
    assert await world.row("tricks", trick(2)) == {**before, "videoUrl": CLIP, "updatedAt": NOW}


async def test_the_same_again_writes_nothing(world: ToolWorld) -> None:
    """In another turn, so that it is no repeat."""
    calls: list[tuple[str, dict[str, str]]] = [
        ("link_trick_to_spot", {"spot_id": spot(3)}),
        ("link_trick_to_video", {"video_url": CLIP}),
    ]
    for name, target in calls:
        await world.call(name, MIKA, trick_id=trick(1), **target)
        stored = await world.row("tricks", trick(1))
        world.now = NOW.replace(year=2027)
        again = await world.call(name, MIKA, trick_id=trick(1), **target)
        assert again.data["changed"] is False
        assert await world.row("tricks", trick(1)) == stored
        world.now = NOW


OWNED = {
    MIKA: {1, 2, 3, 4, 5, 6},
    JUNO: {7, 8, 9, 10},
    TANE: {11, 12},  # lists of an ObjectId owner
    LOTTE: {13},
    PRIYA: {14, 15},  # 15 says so alone; 1 stands on her list and is Mika's
    SAM: set[int](),
}


@pytest.mark.parametrize("rider", list(OWNED))
async def test_only_tricks_of_the_riders_own_lists(world: ToolWorld, rider: str) -> None:
    """Every owner shape; a list without an owner, no list, a malformed one and one that is gone are nobody's."""
    for number in range(1, 20):
        before = await world.row("tricks", trick(number))
        for name, target in (
            ("link_trick_to_spot", {"spot_id": spot(1)}),
            ("link_trick_to_video", {"video_url": CLIP}),
        ):
            linked = await world.call(name, rider, trick_id=trick(number), **target)
            assert linked.code == (None if number in OWNED[rider] else "forbidden")
        if number not in OWNED[rider]:
            assert await world.row("tricks", trick(number)) == before
    assert (await world.call("link_trick_to_spot", rider, trick_id=trick(999), spot_id=spot(1))).code == "not_found"


@pytest.mark.parametrize(
    ("owner", "allowed"),
    [
        (DBRef("users", TANE), True),
        (DBRef("users", ObjectId(TANE)), True),
        (TANE, True),
        (ObjectId(TANE), True),
        ({"$id": TANE}, True),
        (DBRef("users", "somebody"), False),
        ({}, False),
        ([TANE], False),
        (True, False),
    ],
)
async def test_owner_shapes(world: ToolWorld, owner: object, allowed: bool) -> None:  # noqa: FBT001 - a table's column
    """What cannot be read as the rider's id is not the rider's."""
    await world.database["tricklists"].update_one({"_id": ObjectId(sample_id("73", 4))}, {"$set": {"user": owner}})
    linked = await world.call("link_trick_to_spot", TANE, trick_id=trick(11), spot_id=spot(1))
    assert (linked.code is None) is allowed


@pytest.mark.parametrize(
    ("number", "rider", "allowed"), [(23, JUNO, True), (23, MIKA, False), (22, MIKA, False), (999, MIKA, False)]
)
async def test_only_spots_that_the_rider_sees(world: ToolWorld, number: int, rider: str, allowed: bool) -> None:  # noqa: FBT001 - a table's column
    """An own private one, not another's, not a rejected one."""
    own = trick(7 if rider == JUNO else 1)
    linked = await world.call("link_trick_to_spot", rider, trick_id=own, spot_id=spot(number))
    assert linked.code == (None if allowed else "not_found")


BAD = [
    "http://clips.example.com/1",
    "javascript:alert(1)",
    "https://",
    "https://localhost/1",
    "https://printer.local/1",
    "https://localhost./1",
    "https://printer.local./1",
    "https://0x7f.1.internal./1",
    "https://printer.local../1",
    "https://printer.loc%61l/1",
    "https://printer.local%2e/1",
    "https://127.0.0.1/1",
    "https://127.0.0.1./1",
    "https://0x7f.1./1",
    "https://[::1]/1",
    "https://2130706433/1",
    "https://0x7f.1/1",
    "https://169.254.169.254/latest",
    "https://user:word@clips.example.com/1",
    "https://clips.example.com:8443/1",
    "https://clips.example.com/a b",
    "https://clips.example.com/\u202egpj.exe",
    "https://clips.example.com\\@evil.example.org/",
    "https://clips.ex\u0430mple.com/1",
    "ftp://clips.example.com/1",
    "//clips.example.com/1",
    "https://clips.example.com/" + "a" * 500,
    "data:text/html,hello",
    "https://clips.example.com:x/",
    "![x](https://clips.example.com/1)",
    "",
]


@pytest.mark.parametrize("address", BAD)
async def test_addresses_that_no_phone_should_open(world: ToolWorld, address: str) -> None:
    """Refused before anything is read, whatever they look like."""
    before = await world.row("tricks", trick(1))
    linked = await world.call("link_trick_to_video", MIKA, trick_id=trick(1), video_url=address)
    assert linked.code == "invalid_arguments"
    assert await world.row("tricks", trick(1)) == before


async def test_bad_arguments(world: ToolWorld) -> None:
    """No ids, operators, another rider's id, nobody."""
    bad: list[dict[str, Any]] = [
        {},
        {"trick_id": "1", "spot_id": spot(1)},
        {"trick_id": {"$ne": ""}, "spot_id": spot(1)},
    ]
    bad.append({"trick_id": trick(1), "spot_id": spot(1), "user_id": JUNO})
    for arguments in bad:
        assert (await world.call("link_trick_to_spot", MIKA, **arguments)).code == "invalid_arguments"
    assert (await world.call("link_trick_to_spot", trick_id=trick(1), spot_id=spot(1))).code == "not_signed_in"
