"""Whatever a document holds, every source answers: within the limits, in JSON's types, the same every time."""

import json
import uuid
from datetime import UTC, datetime

from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.knowledge.chunk import content_hash, text_hash
from brain.knowledge.domain.fields import ODDITIES
from brain.knowledge.pin import MINILM
from brain.knowledge.tokens import counter_for
from tests.support.words import NOW, words
from worker.model import DocKey, Document
from worker.sources.docs import Docs
from worker.sources.mdx import plain_markdown
from worker.sources.registry import SOURCES
from worker.sources.source import Setting

FIELDS = (
    *("_id", "name", "title", "category", "difficulty", "description", "steps", "tips", "commonMistakes", "safety"),
    *("aliases", "progression", "url", "slug", "text", "sport", "skillLevel", "topic", "sportTypes", "sports"),
    *("markdown", "frontMatter", "path", "city", "state", "country", "tags", "parkType", "releaseYear", "riders"),
    *("startAt", "endAt", "timezone", "venue", "participation", "organizer", "canonicalName", "signatureTricks"),
)
VISIBLE: Document = {
    "approvalStatus": "approved",
    "isPublished": True,
    "type": "film",
    "reviewStatus": "published",
    "status": "published",
}
TEXTS = st.one_of(
    st.text(max_size=60),
    st.text(st.characters(codec=None), max_size=20),  # lone surrogates too
    st.sampled_from(
        ["<p>HTML</p>", "<b", "&amp;&#0;", "\x00", "{#id}", "50-50", "word " * 700, "x" * 3000, "# A\n\n## B\n" * 40]
    ),
)
SCALARS: st.SearchStrategy[object] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    TEXTS,
    st.binary(max_size=8),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.builds(ObjectId),
    st.sampled_from(
        [
            *(
                Decimal128("1.5"),
                Decimal128("NaN"),
                Decimal128("sNaN"),
                Decimal128("9E+6144"),
                Int64(5),
                MinKey(),
                MaxKey(),
            ),
            *(Timestamp(1, 1), Regex("a"), Code("x"), Binary(b"x", 4), uuid.UUID(int=5), datetime.min, datetime.max),  # noqa: DTZ901
            *(
                DBRef("tricks", ObjectId()),
                DBRef("tricks", None),
                "5a0000000000000000000001",
                "Inline Skating",
                "published",
            ),
        ]
    ),
)
VALUES: st.SearchStrategy[object] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["name", "text", "0", "$id", "status", "research", "trickId", "x"]), inner, max_size=4
        ),
    ),
    max_leaves=12,
)
EDGES: st.SearchStrategy[list[object]] = st.lists(
    st.one_of(
        SCALARS,
        st.fixed_dictionaries(
            {"trickId": SCALARS, "research": st.one_of(SCALARS, st.just({"status": "reviewed"}))},
            optional={"order": SCALARS, "strength": SCALARS, "reason": SCALARS},
        ),
    ),
    max_size=5,
)


def with_progression(values: dict[str, object], edges: list[object]) -> Document:
    """The document with these edges, where there are any."""
    return {**values, "progression": {"prerequisites": edges, "nextSteps": edges}} if edges else values


DOCUMENTS: st.SearchStrategy[Document] = st.builds(
    with_progression, st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=14), EDGES
)
REAL = Setting(NOW, counter_for(MINILM), 256)


def check(source_name: str, document: Document, setting: Setting) -> None:
    """The promises of `Source.shape`."""
    source = SOURCES[source_name]
    neighbours = source.neighbours(document)
    shaped = source.shape(document, setting)
    assert shaped == source.shape(document, setting)
    assert set(shaped.oddities) <= set(ODDITIES)
    assert set(neighbours) == set(shaped.refs)
    assert len({part.name for part in shaped.parts}) == len(shaped.parts)
    assert shaped.expires_at is None or shaped.expires_at.tzinfo is not None
    for part in shaped.parts:
        assert part.text.strip()
        assert setting.tokens.count(part.text) <= setting.limit
        assert part.name.encode("utf-8")
        assert text_hash(part.text)
        assert content_hash(part.text, part.metadata.as_fields(), source.chunker_version)
        assert json.loads(json.dumps(part.metadata.as_fields(), allow_nan=False)) == part.metadata.as_fields()
        assert part.metadata.title


@settings(max_examples=150, deadline=None)
@given(document=DOCUMENTS, visible=st.booleans(), limit=st.sampled_from([24, 64, 512]))
def test_any_document_through_every_source(document: Document, limit: int, *, visible: bool) -> None:
    """Nothing raises, no chunk is above the limit, everything can be stored."""
    shown = {**document, **VISIBLE} if visible else document
    for name in SOURCES:
        check(name, {**shown, "status": None} if name in ("coaching", "events") else shown, words(limit))


@settings(max_examples=40, deadline=None)
@given(document=DOCUMENTS)
def test_any_document_with_a_real_tokenizer(document: Document) -> None:
    """Word pieces do not add up as words do; the limit holds all the same."""
    for name in SOURCES:
        check(name, {**document, **VISIBLE, "status": None}, REAL)


@settings(max_examples=60, deadline=None)
@given(document=DOCUMENTS, neighbour=DOCUMENTS)
def test_any_neighbour(document: Document, neighbour: Document) -> None:
    """A neighbour may be as odd as the trick itself."""
    keys: dict[DocKey, Document] = dict.fromkeys(SOURCES["trickipedia"].neighbours(document), neighbour)
    check("trickipedia", document, words(64, keys))


MARKS = st.sampled_from(
    [
        *(
            "# ",
            "## ",
            "#### ",
            "```",
            "~~~",
            "\n",
            "\n\n",
            "> ",
            "- ",
            "1. ",
            "    ",
            "\t",
            "|a|b|\n|-|-|\n",
            ":::",
            ":::note ",
        ),
        *(
            "<Tabs>",
            "</Tabs>",
            "<TabItem label='x'>",
            "<A b={`",
            "{/*",
            "*/}",
            "<!--",
            "-->",
            "import a from 'b'\n",
            "export {",
        ),
        *(
            "{#id}",
            "[a](b)",
            "![",
            "](",
            "`",
            "**",
            "&lt;",
            "---\n",
            "===\n",
            "\\",
            "{' '}",
            "@@https://a@@",
            "<pre>",
            "</pre>",
        ),
        *("mdx-code-block", "mermaid\n", "word ", "\x00", "\ud800", "🏂", "<script>"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(pieces=st.lists(st.one_of(MARKS, st.text(max_size=8)), max_size=40))
def test_any_markdown(pieces: list[str]) -> None:
    """Any mixture of Markdown and MDX marks is read, below the limit, twice the same."""
    check("docs", {"markdown": "".join(pieces), "url": "/docs/x"}, words(48))


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=300))
def test_plain_words_are_never_lost(text: str) -> None:
    """The words of a page without any marks are all in its chunks."""
    plain = " ".join("".join(c if c.isalnum() and c.isascii() else " " for c in text).split())
    told = " ".join(part.text for part in Docs().shape({"markdown": plain, "title": "T"}, words(24)).parts)
    assert plain_markdown(plain) == plain
    assert all(word in told for word in plain.split())
