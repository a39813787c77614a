"""What the server can do, asked before anything relies on it."""

from worker.errors import Refused, WrongTopology
from worker.mongo.driver import Database


async def check_server(database: Database) -> None:
    """Raise unless change streams and transactions will work.

    WrongTopology for a standalone server; Refused, naming the privilege, when the role may not watch the database;
    Unreachable when nothing answers.
    """
    hello = await database.command({"hello": 1}, admin=True)
    if "setName" not in hello and hello.get("msg") != "isdbgrid":
        message = (
            "this server is standalone, and change streams need a replica set: use Atlas, or start mongod with "
            "--replSet and run rs.initiate()"
        )
        raise WrongTopology(message)
    try:
        async with database.watch([{"$match": {"operationType": "none"}}], max_await_time_ms=1):
            pass
    except Refused as error:
        message = (
            f"the database user may not watch {database.name}: give its role the actions find and changeStream on the "
            "whole database"
        )
        raise Refused(message) from error
