"""A MongoDB server that is none: it speaks the wire protocol on loopback, and misbehaves by script.

with FakeMongod() as server:
    server.write("tricks", {"_id": 1})              # as the backend would: stored, and an event in the history
    server.script.on("getMore", Fail(43), Cut())    # the next getMore answers with an error, the one after is cut
    server.script.always("getMore", Silence())      # … and from then on none is answered, until `calm`
    … a driver at server.uri …

Modules: `wire` has the frames (OP_MSG, and the OP_QUERY of a first hello); `store` the documents, with enough of
queries and updates for the worker's adapters; `history` the event log with tokens, cursors, fragments and a beginning
before which all is lost; `aggregate` pipelines; `search` and `search_filter` Atlas Search with all its refusals (not
there until `server.search.enabled`); `faults` what goes wrong, by command and by occurrence; `commands` what each does
when nothing goes wrong; `server` connections, sessions and transactions.
"""

from tests.support.fake_mongod.faults import Cut, Fail, ItemsFail, LateFail, Script, Silence
from tests.support.fake_mongod.history import Event
from tests.support.fake_mongod.server import FakeMongod

__all__ = ["Cut", "Event", "Fail", "FakeMongod", "ItemsFail", "LateFail", "Script", "Silence"]
