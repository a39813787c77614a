"""What `verify` says of a worker that is catching up."""

from worker.audit.lateness import CatchingUp


def test_who_is_behind_and_what_it_still_scans() -> None:
    """For people and as JSON."""
    late = CatchingUp({"host": "a", "pid": 7, "epoch": 3}, 1_200, ("docs", "spots"))
    assert "(pid 7) is catching up" in late.sentence()
    assert "1,200 s behind and scans docs, spots" in late.sentence()
    assert late.as_row() == {"host": "a", "pid": 7, "epoch": 3, "behindSeconds": 1_200, "scanning": ["docs", "spots"]}
