"""What the speaking companion remembers of the rider; another companion's memory is another row."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from brain.errors import ToolFailure
from brain.knowledge.connect import Row
from brain.knowledge.domain.clean import one_line
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.ids import object_id
from brain.knowledge.sports import canonical_sport
from brain.once import one_at_a_time
from brain.tool import AnyTool, Arguments, Result, Tool, ToolContext
from brain.trickbook.facts import LONGEST_FACT, remembered

LONGEST_NAME: Final = 60  # characters
MOST_SPORTS: Final = 10
PROFILES: Final = "companion_profiles"

_Name = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, max_length=LONGEST_NAME)]
_Fact = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, max_length=LONGEST_FACT)]
_Sport = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, max_length=40)]


class RememberUserInfo(Arguments):
    """What the rider said of themselves; at least one of the three."""

    user_name: _Name | None = Field(default=None, description="what they want to be called")
    sports: list[_Sport] | None = Field(default=None, max_length=MOST_SPORTS, description="all the sports they ride")
    fact: _Fact | None = Field(default=None, description="one short sentence worth knowing next time")


class Remembered(Result):
    """What was kept."""

    success: Literal[True] = True
    saved: list[str]
    message: str


async def remember_user_info(context: ToolContext, arguments: RememberUserInfo) -> Remembered:
    """Keep a name, the sports (both replace what was there) or a fact.

    Raises ToolFailure (`invalid_arguments`, `no_companion`).
    Runs in a transaction, one at a time, so what was read is still so when it is written; with no profile yet there
    is no row that two could meet in.
    """
    companion = object_id(context.companion_id)
    if companion is None:
        raise ToolFailure(code="no_companion", message="no companion is speaking, so there is nobody to remember it")
    name, fact = one_line(arguments.user_name or ""), one_line(arguments.fact or "")
    sports = list(dict.fromkeys(filter(None, (canonical_sport(one_line(sport)) for sport in arguments.sports or ()))))
    if not (name or fact or sports):
        message = "give a user_name, sports or a fact that is not blank. Nothing was done."
        raise ToolFailure(code="invalid_arguments", message=message)
    await one_at_a_time(context, f"the memory that {companion} has of {context.rider}")
    whose = {"userId": context.rider, "companionId": str(companion)}
    profiles = context.database[PROFILES]
    profile = await profiles.find_one(whose, session=context.session) or {}
    memory: dict[str, Any] = {}
    if name:
        memory["userName"] = name
    if fact:
        memory["knownFacts"] = remembered(Fields(profile).child("memory").lines("knownFacts"), fact)
    change = _set(profile, "memory", memory) | _set(profile, "traits", {"sports": sports} if sports else {})
    fresh = {"relationshipStage": "stranger", "interactionCount": 0, "createdAt": context.now()}
    await profiles.update_one(whose, {"$set": change, "$setOnInsert": fresh}, upsert=True, session=context.session)
    saved = [what for what, value in (("name", name), ("sports", sports), ("fact", fact)) if value]
    return Remembered(saved=saved, message=f"Remembered: {', '.join(saved)}.")


def _set(profile: Row, part: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as a `$set` inside a part of the profile; a part that is no object (the app PUTs any) is replaced."""
    if not values:
        return {}
    inside = part not in profile or isinstance(profile[part], Mapping)
    return {f"{part}.{key}": value for key, value in values.items()} if inside else {part: dict(values)}


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(
        name="remember_user_info",
        description="Remember what the rider tells of themselves: what to call them, their sports, or one short fact.",
        arguments=RememberUserInfo,
        result=Remembered,
        handler=remember_user_info,
        scope="user",
        effect="write",
        destructive=True,
    ),
)
