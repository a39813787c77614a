"""Debts: whoever shows another document's name shows its present one in the end, and nobody is looked at for ever."""

from tests.support import virtual
from tests.support.sim_line import Failing, Line, pay, working
from tests.support.sim_stage import Stage, document, trick


def test_a_rename_leaves_a_debt_and_the_debt_is_paid_by_a_look() -> None:
    """Who names it is stored anew; a look that pays sends nobody else round."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage)) as line:
            a, b = stage.put(document(1, "Ollie", links=(2,))), stage.put(document(2, "Pop", links=(1,)))
            await line.look(a, b)
            await pay(line)
            stage.put(document(2, "Kickflip", links=(1,)))
            await line.look(b)
            assert list(await stage.papers.store.owing(["tricks"], 10)) == [a]
            await pay(line)
            assert stage.texts(1) == ["Ollie leads to Kickflip"]
            assert list(await stage.papers.store.owing(["tricks"], 10)) == []

    virtual.run(main)


def test_a_name_that_went_there_and_back_leaves_nobody_wrong() -> None:
    """A neighbour that was read in between shows the other name; the renamed one's own look finds it."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage)) as line:
            a, b = stage.put(document(1, "Ollie", links=(2,))), stage.put(document(2, "Pop", "x"))
            await line.look(a, b)
            stage.put(document(2, "Kickflip", "x"))
            await line.look(a)
            assert stage.texts(1) == ["Ollie leads to Kickflip"]
            stage.put(document(2, "Pop", "x"))
            await line.look(b)
            await pay(line)
            assert stage.texts(1) == ["Ollie leads to Pop"]

    virtual.run(main)


def test_a_dead_letter_still_tells_its_neighbours() -> None:
    """They show its new name though it is not stored itself."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage)) as line:
            a, b = stage.put(document(1, "Ollie", links=(2,))), stage.put(document(2, "Pop", "x"))
            await line.look(a, b)
            await pay(line)
            stage.put(document(2, "Kickflip", "x", poison="text"))
            assert await line.look(b) == {"dead_lettered": 1}
            await pay(line)
            assert stage.texts(1) == ["Ollie leads to Kickflip"]

    virtual.run(main)


def test_two_dead_letters_do_not_send_each_other_round_for_ever() -> None:
    """What is stored of them shows old names and cannot be mended: they are tried once more, and then left."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage)) as line:
            names = ("Ollie", "Pop"), ("Heelflip", "Kickflip")
            for (one, two), poison in zip(names, (None, "text"), strict=True):
                keys = [
                    stage.put(document(1, one, "x", links=(2,), poison=poison)),
                    stage.put(document(2, two, "x", links=(1,), poison=poison)),
                ]
                for key in keys:
                    await line.look(key)
                await pay(line)
            assert set(stage.db.letters) == {trick(1), trick(2)}

    virtual.run(main)


def test_a_debt_survives_an_answer_that_was_lost() -> None:
    """A document that shows a face which is not stored yet owes a look, also when its publication is stored twice."""

    async def main() -> None:
        weather = Failing(())
        stage = Stage(weather=weather)
        async with working(Line(stage), pumps=1) as line:
            a = stage.put(document(1, "Ollie", links=(2,)))
            stage.put(document(2, "Pop", "x"))
            weather.loses_an_answer = True
            assert await line.look(a) == {"applied": 1}
            assert not weather.loses_an_answer
            assert list(await stage.papers.store.owing(["tricks"], 10)) == [a]

    virtual.run(main)
