"""How the search index of the active pin stands, for commands that are about something else: a warning at most."""

from dataclasses import dataclass

from worker.errors import Fatal, Retryable
from worker.mongo.vector_index import MongoVectorIndex
from worker.parts import App


@dataclass(frozen=True, slots=True)
class IndexNotice:
    """In words, and whether somebody must do something."""

    words: str
    warning: str | None = None


async def index_notice(app: App) -> IndexNotice:
    """Look once. Whatever is wrong with the index, the worker can work: searches alone find nothing."""
    try:
        state = await MongoVectorIndex(app.database).look(app.pin)
    except (Fatal, Retryable) as error:  # a role that may not list search indexes, say
        return IndexNotice("not known", f"the search index could not be looked at: {error}")
    if state.ready:
        return IndexNotice(state.words)
    return IndexNotice(state.words, f"the search index {app.pin.index} is not ready: {state.words}")
