"""The way to a trick, over random graphs: prerequisites first, each once, circles cut, nothing out of reach."""

from hypothesis import given
from hypothesis import strategies as st

from brain.knowledge.domain.learning import MOST_DEPTH, Step, steps_to

graphs = st.integers(1, 12).flatmap(
    lambda size: st.dictionaries(
        st.integers(0, size - 1), st.lists(st.integers(0, size), max_size=4), max_size=size
    ).map(lambda needs: {0: [], **needs})
)
acyclic = graphs.map(lambda needs: {trick: [one for one in ones if one > trick] for trick, ones in needs.items()})


def within(needs: dict[int, list[int]], depth: int) -> dict[int, int]:
    """By brute force: every walk of at most so many steps from trick 0, and the shortest to each trick."""
    found = {0: 0}
    walks = [[0]]
    for length in range(1, depth + 1):
        walks = [[*walk, one] for walk in walks for one in dict.fromkeys(needs[walk[-1]]) if one in needs]
        for walk in walks:
            found.setdefault(walk[-1], length)
    return found


@given(graphs, st.integers(0, 4))
def test_exactly_what_is_within_reach_each_once_the_goal_last(needs: dict[int, list[int]], depth: int) -> None:
    """Circles, dangling edges and edges to itself included."""
    steps = steps_to(0, needs, depth)
    assert {step.trick: step.depth for step in steps} == within(needs, depth)
    assert len({step.trick for step in steps}) == len(steps)
    assert steps[-1] == Step(0, 0)


@given(acyclic)
def test_without_circles_no_trick_comes_before_what_it_needs(needs: dict[int, list[int]]) -> None:
    """Also where one is needed by two, on two levels."""
    order = [step.trick for step in steps_to(0, needs)]
    for trick in order:
        assert all(order.index(one) < order.index(trick) for one in needs[trick] if one in order)


@given(graphs)
def test_the_answer_is_stable(needs: dict[int, list[int]]) -> None:
    """The order in which the database gave the tricks does not matter."""
    turned = dict(reversed(list(needs.items())))
    assert steps_to(0, needs) == steps_to(0, turned)


def test_a_long_chain_ends_at_the_depth() -> None:
    """Four levels below the goal and no further, however deep the graph is."""
    needs = {trick: [trick + 1] for trick in range(20_000)}
    assert [step.trick for step in steps_to(0, needs)] == [4, 3, 2, 1, 0]
    assert len(steps_to(0, needs, 19_000)) == 19_001
    assert MOST_DEPTH == 4


def test_the_order_of_needs_decides_among_equals() -> None:
    """The first prerequisite is learned first."""
    needs = {"tre flip": ["varial", "kickflip"], "varial": ["kickflip", "shove-it"], "kickflip": [], "shove-it": []}
    assert [step.trick for step in steps_to("tre flip", needs)] == ["kickflip", "shove-it", "varial", "tre flip"]
