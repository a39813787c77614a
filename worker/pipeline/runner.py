"""The runner: takes work from the coalescer through every step and gives each change its outcome.

It is the only place that knows the order of the steps. What the database or the embedder cannot do now is tried again
for as long as it takes, with the work in hand, so that nothing is lost and intake fills up to its bound and waits.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from worker.errors import Poison
from worker.model import Delta, DocKey, DocState, Outcome, Publication
from worker.pipeline.around import Around
from worker.pipeline.coalesce import Coalescer, Work
from worker.pipeline.dead_letters import Undertaker
from worker.pipeline.diff import Target, diff, diff_beside
from worker.pipeline.embed import EmbedStep, Failed, digest_of
from worker.pipeline.publish import Publisher
from worker.pipeline.shape import Looked, Shaper
from worker.ports import KnowledgeStore

BATCH: Final = 64
"""Documents that are read and compared together: few round trips, and little that a crash makes read again."""

TEXTS: Final = 64
"""Texts to embed of the documents that are published together."""

LONG_WAIT: Final = 5.0
"""Seconds that a pump waits for the embedder until somebody looks for what needs no text: few answers are as late."""

LOOK_EVERY: Final = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of the way, in their order; `beside` are the targets of the other generations."""

    coalescer: Coalescer
    shaper: Shaper
    target: Target
    embed: EmbedStep
    publisher: Publisher
    undertaker: Undertaker
    beside: Sequence[Target] = ()


class Runner:
    """Pumps work through the steps; several pumps may run beside each other.

    `scanned` is told the outcome of each document that a scan asked for.
    """

    def __init__(
        self,
        steps: Steps,
        store: KnowledgeStore,
        around: Around,
        scanned: Callable[[Outcome], None] = lambda _outcome: None,
    ) -> None:
        self._scanned = scanned
        self._steps = steps
        self._store = store
        self._around = around
        self._waits: list[float] = []  # since when each of the pumps waits for its texts

    async def pump(self, *, urgent_only: bool = False) -> None:
        """Work for ever; with `urgent_only` on what the stream tells alone, so that it never waits behind a scan.

        Raises Fatal, or whatever is a bug.
        """
        coalescer = self._steps.coalescer
        while True:
            works = {work.key: work for work in await coalescer.take(BATCH, urgent_only=urgent_only)}
            self._around.meter.queued("coalesce", coalescer.waiting)
            await self._around.probe.reached("taken")
            await self._settle(works)

    async def lookout(self) -> None:
        """While the pumps wait for the embedder, see to what needs none, for ever. Raises as `pump`.

        A spot that was hidden, or a page that is gone, must not be found until a provider or a budget comes back.
        """
        coalescer, clock = self._steps.coalescer, self._around.clock
        while True:
            await clock.sleep(LOOK_EVERY)
            while self._waits and clock.monotonic() - min(self._waits) >= LONG_WAIT:
                works = {work.key: work for work in coalescer.take_unseen(BATCH)}
                if not works:
                    break
                coalescer.put_back((await self._settle(works, without_texts=True)).values())

    async def _settle(self, works: Mapping[DocKey, Work], *, without_texts: bool = False) -> Mapping[DocKey, Work]:
        """Release the documents as they get their outcomes; those that got none."""
        rest = dict(works)
        async for outcomes in self._outcomes(list(works.values()), without_texts=without_texts):
            settled = [rest.pop(key) for key in outcomes]
            self._count(settled, outcomes)
            await self._steps.coalescer.release(settled)
            await self._around.probe.reached("released")
        return rest

    async def _outcomes(self, works: Sequence[Work], *, without_texts: bool) -> AsyncIterator[Mapping[DocKey, Outcome]]:
        """Take the documents to their durable outcomes, a group at a time as they get there."""
        wanted = {work.key: work.after for work in works}
        looked = await self._around.persist("database", lambda: self._steps.shaper.look(wanted))
        await self._around.probe.reached("shaped")
        states = await self._states(works)
        deltas = self._deltas(looked, states)
        await self._around.probe.reached("diffed")
        unchanged: dict[DocKey, Outcome] = {delta.key: "unchanged" for delta in deltas if delta.empty}
        if unchanged:
            yield unchanged
        if unreadable := _unreadable(looked, states):
            yield await self._finish([], unreadable, states)
        for group in _groups([delta for delta in deltas if not delta.empty]):
            if without_texts and group[-1].texts:
                return
            publications, failed = await self._embed(group)
            await self._around.probe.reached("embedded")
            yield await self._finish(publications, failed, states)

    async def _embed(self, deltas: Sequence[Delta]) -> tuple[Sequence[Publication], Sequence[Failed]]:
        began = self._around.clock.monotonic()
        self._waits.append(began)
        try:
            return await self._around.persist("database", lambda: self._steps.embed.embed(deltas))
        finally:
            self._waits.remove(began)

    async def _finish(
        self, publications: Sequence[Publication], failed: Sequence[Failed], states: Mapping[DocKey, DocState]
    ) -> Mapping[DocKey, Outcome]:
        """Publish what can be published, bury what cannot."""
        words = _words_of(failed, states)
        became = await self._steps.publisher.publish([*publications, *words])
        outcomes: dict[DocKey, Outcome] = {}
        refused: list[Failed] = []
        for publication, end in zip(publications, became, strict=False):
            if isinstance(end, Poison):
                refused.append(Failed(publication.delta, end, digest_of(publication.delta)))
            else:
                outcomes[publication.delta.key] = end
        for end in became[len(publications) :]:
            if isinstance(end, Poison):  # nothing of a document was to be stored, so no document can be at fault
                raise end
        await self._around.probe.reached("published")
        for failure in failed:
            await self._steps.undertaker.bury(failure, states[failure.delta.key].dead)
            outcomes[failure.delta.key] = "dead_lettered"
            await self._around.probe.reached("buried")
        return {**outcomes, **await self._finish([], refused, states)} if refused else outcomes

    async def _states(self, works: Sequence[Work]) -> Mapping[DocKey, DocState]:
        """What is stored of the documents.

        A look that only pays a debt does not ask what others show of the document: two that name each other, and can
        never agree, would send each other round for ever.
        """
        keys = [work.key for work in works]
        states = dict(await self._around.persist("database", lambda: self._store.states(keys)))
        for work in works:
            if all(received.change.origin == "refresh" for received in work.received):
                states[work.key] = replace(states[work.key], seen_as=frozenset())
        return states

    def _deltas(self, looked: Sequence[Looked], states: Mapping[DocKey, DocState]) -> Sequence[Delta]:
        deltas: list[Delta] = []
        for found in looked:
            if isinstance(found.shaped, Poison):
                continue
            state = states[found.key]
            delta = diff(found.key, found.version, found.shaped, state, self._steps.target)
            deltas.append(diff_beside(delta, found.beside, state, self._steps.beside))
            for oddity in found.shaped.oddities:
                self._around.meter.odd(found.key.source, oddity)
        return deltas

    def _count(self, works: Sequence[Work], outcomes: Mapping[DocKey, Outcome]) -> None:
        """Give every change one outcome: the newest of a document gets the document's, the others were superseded."""
        now = self._around.clock.now()
        for work in works:
            for received in work.received[:-1]:
                self._around.meter.settled(received.change.key.source, "superseded", None)
            committed = next((r.change.wall for r in work.received if r.change.wall is not None), None)
            lag = None if committed is None else (now - committed).total_seconds()
            self._around.meter.settled(work.key.source, outcomes[work.key], lag)
            if any(received.change.origin == "scan" for received in work.received):
                self._scanned(outcomes[work.key])


def _groups(deltas: Sequence[Delta]) -> Iterator[Sequence[Delta]]:
    """Whole documents with up to `TEXTS` texts to embed, small first: none waits for all; a large one goes alone.

    What needs no text waits for none, so it is a group of its own.
    """
    group: list[Delta] = []
    texts = 0
    for delta in sorted(deltas, key=lambda delta: delta.texts):
        if group and (texts + delta.texts > TEXTS or (texts == 0) != (delta.texts == 0)):
            yield group
            group, texts = [], 0
        group.append(delta)
        texts += delta.texts
    if group:
        yield group


def _unreadable(looked: Sequence[Looked], states: Mapping[DocKey, DocState]) -> list[Failed]:
    """The documents that nobody can shape; what others show of them may be anything."""
    return [
        Failed(
            Delta(found.key, found.version, refresh_neighbours=bool(states[found.key].seen_as)),
            found.shaped,
            found.digest,
        )
        for found in looked
        if isinstance(found.shaped, Poison)
    ]


def _words_of(failed: Sequence[Failed], states: Mapping[DocKey, DocState]) -> list[Publication]:
    """Nothing of a failed document is stored, but others may show a face that it has no longer."""
    deltas = [failure.delta for failure in failed if not failure.published]
    changed = [delta for delta in deltas if delta.refresh_neighbours and states[delta.key].seen_as]
    return [Publication(Delta(delta.key, delta.version, refresh_neighbours=True), {}) for delta in changed]
