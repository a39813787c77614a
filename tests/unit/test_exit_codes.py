"""Which error leads to which exit code: both programs agree on what they share."""

import pytest

from brain import errors as of_the_brain
from brain.knowledge import errors
from brain.knowledge.errors import EXIT_BUG, EXIT_CONFIGURATION, EXIT_TRY_LATER, EXIT_USAGE, KnowledgeError
from worker import errors as of_the_worker

SHARED: list[tuple[KnowledgeError, int]] = [
    (errors.Unreachable("x"), EXIT_TRY_LATER),
    (errors.Throttled("x"), EXIT_TRY_LATER),
    (errors.IndexNotReady("x"), EXIT_TRY_LATER),
    (errors.ConfigurationFault("x"), EXIT_CONFIGURATION),
    (errors.Refused("x"), EXIT_CONFIGURATION),
    (errors.PinMismatch("x"), EXIT_CONFIGURATION),
    (errors.Unsupported("x"), EXIT_CONFIGURATION),
    (errors.Fatal("a code that is in no table"), EXIT_BUG),
    (KnowledgeError("x"), EXIT_BUG),
]


@pytest.mark.parametrize(("error", "code"), SHARED, ids=lambda value: type(value).__name__)
def test_both_programs_say_the_same(error: KnowledgeError, code: int) -> None:
    """A plain Fatal is a bug to both."""
    assert of_the_brain.exit_code(error) == of_the_worker.exit_code(error) == code


def test_each_program_has_leaves_of_its_own() -> None:
    """What was typed is the input of the brain's commands; the worker's input is documents."""
    assert of_the_brain.exit_code(errors.Poison("x")) == EXIT_USAGE
    assert of_the_worker.exit_code(errors.Poison("x")) == EXIT_BUG
    assert of_the_worker.exit_code(of_the_worker.LeaseHeld("x")) == EXIT_TRY_LATER
