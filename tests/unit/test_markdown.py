"""Markdown and MDX as sections of readable text."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.tools import NODE, node_package, tool
from tests.support.words import words
from worker.sources.anchors import Slugger, explicit_id, slug
from worker.sources.docs import Docs
from worker.sources.markdown import TOP, Page, first_heading, read_page
from worker.sources.mdx import plain_markdown

GOLDEN = Path(__file__).parent / "golden"
LONG = "Many words make this section long enough to stand alone. " * 12


def page(markdown: str, title: str | None = None) -> Page:
    """The page in sections, counted in words."""
    return read_page(markdown, title, words())


def text_of(markdown: str) -> str:
    """The text of a page of one section."""
    (section,) = page(markdown).sections
    return "".join(block.glue + block.whole for block in section.blocks).strip()


@pytest.mark.parametrize(
    "code",
    [
        "```bash\n# no heading\n```",
        "~~~\n# no heading\n~~~",
        "````md\n```\n# no heading\n```\n````",
        "- item\n\n  ```\n  # no heading\n  ```",
        "> ```\n> # no heading\n> ```",
        "<TabItem value='a'>\n```\n# no heading\n```\n</TabItem>",
        ":::note\n```\n# no heading\n```\n:::",
        "1. a\n   - b\n     ```\n# no heading of the list\n     ```",
        "```\n# never closed",
        "    # indented by four",
        "<pre>\n# no heading\n</pre>",
    ],
)
def test_a_hash_inside_code_is_no_heading(code: str) -> None:
    """Fences of every kind and place, and indented code."""
    for section in page(f"# Page\n\n{LONG}\n\n## Real\n\n{LONG}\n\n{code}").sections:
        assert section.path in ((), ("Real",)) or "of the list" in code


def test_fences_keep_every_character() -> None:
    """Tags, imports, comments and admonitions inside code stay; the language stays; a diagram goes."""
    code = "import x from 'y'\n\n<Tabs>{/* c */}\n:::note\n<!-- a -->"
    assert text_of(f"```jsx title='a.js' {{1}}\n{code}\n```") == f"```jsx\n{code}\n```"
    assert text_of("`<Tabs>` and ``a ` <!-- b -->`` stay") == "`<Tabs>` and `a ` <!-- b -->` stay"
    assert text_of("before\n\n```mermaid\ngraph TD; A-->B\n```") == "before"


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ('See [the guide](./a.md) and ![a board](b.png "t").', "See the guide and a board."),
        ("[ref][x] <https://a.example>\n\n[x]: /y", "ref (/y) https://a.example"),
        (
            "[a](/docs/a#b) [b](/img/b.png) [c](./c) [d](//d.example/x) [e](#e) [`f`](/f)",
            "a (/docs/a#b) b c d e `f` (/f)",
        ),
        ("| [a](/docs/a) |\n|---|\n| x |", "| a (/docs/a) |\n| --- |\n| x |"),
        ("text {/* #no-id */} end", "text end"),
        ("**bold** _it_ ~~x~~ `code` &amp; \\*", "bold it ~~x~~ `code` & *"),
        ("soft\nwrap  \nhard", "soft wrap\nhard"),
        ("- a\n  - b\n\n    c\n- d", "- a\n  - b\n    c\n- d"),
        ("3. a\n4. b", "3. a\n4. b"),
        ("> quoted\n> more", "quoted more"),
        ("| a | b |\n|---|---|\n| `x` | [y](z) |", "| a | b |\n| --- | --- |\n| `x` | y |"),
        ("#### Deep {#d}\n\ntext", "#### Deep\n\ntext"),
        (":::note\nText\n:::", "Note:\n\nText"),
        (":::tip Title here\nText\n:::", "Tip: Title here\n\nText"),
        (":::danger[Take `care`]{#x}\nText\n:::", "Danger: Take `care`\n\nText"),
        ("::::info\n\n:::note\nInner\n:::\n\n::::", "Info:\n\nNote:\n\nInner"),
        ("- item\n\n  :::note\n  Inner\n  :::", "- item\n  Note:\n  Inner"),
        ("import A from 'a';\nimport {\n  B,\n} from \"b\";\n\nText", "Text"),
        ("export const a = {\n  b: 1,\n\n  c: 2,\n};\n\nText", "Text"),
        ("import the trick into your list\nexport it", "import the trick into your list export it"),
        ("<!-- gone\n\n# gone -->Text{/* gone */} here", "Text here"),
        ("Line{' '}break <br/> <Foo a={{b: '>'}} c=\"d\" /> end", "Line break end"),
        ("Use Array<string> and <your-name> &lt;b>", "Use Array<string> and <your-name> <b>"),
        (
            "<Tabs>\n<TabItem value='a' label=\"With npm\">\n\nnpm\n\n</TabItem>\n<TabItem value='b'>\n\ny\n</TabItem>",
            "With npm:\n\nnpm\n\nb:\n\ny",
        ),
        ("<details>\n<summary>More</summary>\n\nHidden text\n\n</details>", "More\n\nHidden text"),
        ("```mdx-code-block\nimport X from 'x'\n\n<X>in</X>\n```", "in"),
        ("watch @@https://v.example/1@@ now", "watch now"),
        ("<style>.a{}</style>Text<script>\nx\n</script>", "Text"),
    ],
)
def test_reduced_to_text(markdown: str, text: str) -> None:
    """Each construct of Docusaurus pages, told in words."""
    assert text_of(markdown) == text


def test_sections_and_paths() -> None:
    """Levels 1 to 3 open sections; deeper ones and those in lists do not; paths follow the levels."""
    body = f"{LONG}\n\n# One\n\n{LONG}\n\n### Three\n\n{LONG}\n\n## Two\n\n{LONG}\n\n#### Four\n\n- # in a list\n"
    found = page(body, "Title")
    assert [(section.name, section.path) for section in found.sections] == [
        (TOP, ()),
        ("one", ("One",)),
        ("one/three", ("One", "Three")),
        ("one/two", ("One", "Two")),
    ]
    assert found.heading == "One"


def test_small_sections_join_the_one_before_only() -> None:
    """A short section is appended with its heading; the first one stays, whatever comes after it."""
    found = page(f"Short start.\n\n## A\n\n{LONG}\n\n## B\n\nShort.\n\n### C\n\nShort too.\n\n## D\n\n{LONG}")
    assert [section.name for section in found.sections] == [TOP, "a", "d"]
    told = [block.text for block in found.sections[1].blocks]
    assert told[1:] == ["## B", "Short.", "### C", "Short too."]


def test_duplicate_headings_are_numbered_as_the_site_does() -> None:
    """Every heading counts, also the deep ones that open no section; explicit ids are taken as they are."""
    body = f"## A\n\n{LONG}\n\n#### A\n\n## A\n\n{LONG}\n\n## A {{#a}}\n\n{LONG}\n\nA\n---\n\n{LONG}"
    found = page(body)
    assert [section.anchor for section in found.sections] == ["a", "a-2", "a", "a-3"]
    assert len({section.name for section in found.sections}) == 4


def test_names_do_not_move_with_edits_elsewhere() -> None:
    """A new section between two others changes nobody's name."""
    one = f"## A\n\n{LONG}\n\n## C\n\n{LONG}"
    two = f"## A\n\n{LONG}\n\n## B\n\n{LONG}\n\n## C\n\n{LONG}"
    names = {section.name for section in page(one).sections}
    assert names < {section.name for section in page(two).sections}


def test_headings_only() -> None:
    """A page of headings without text still says its headings; an empty page says nothing."""
    assert [section.path for section in page("## A\n\n### B\n").sections] == [("A", "B")]
    assert page("").sections == ()
    assert page("# Only a title\n").sections == ()
    assert first_heading("text\n\n```\n# no\n```\n\n# Yes *it* is {#x}\n") == "Yes it is"
    assert first_heading("## Two") is None


def test_deep_nesting_is_told() -> None:
    """What is nested deeper than anybody writes is not read, and that is reported."""
    shaped = Docs().shape({"markdown": "start\n\n" + ">" * 500 + " deep"}, words())
    assert "too_deep" in shaped.oddities


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Hello World", "hello-world"),
        ("What's new?  Two", "whats-new--two"),
        ("`useState()` & co.", "usestate--co"),
        ("Über Größe 滑板", "über-größe-滑板"),
        ("Canary 🧪", "canary-"),
        ("snake_case-and-dash", "snake_case-and-dash"),
    ],
)
def test_slugs(heading: str, expected: str) -> None:
    """github-slugger's rule."""
    assert slug(heading.replace("`", "")) == expected


def test_slugger_numbers() -> None:
    """A number that is taken is passed over."""
    slugger = Slugger()
    assert [slugger.slug(text) for text in ("a", "a", "a-1", "a", "", "")] == ["a", "a-1", "a-1-1", "a-2", "", "-1"]
    assert explicit_id("Title {#my-id}") == ("Title", "my-id")
    assert explicit_id("Title {minimumVersion}") == ("Title {minimumVersion}", None)


def test_slugger_against_the_npm_package() -> None:
    """The same slugs as github-slugger itself."""
    node_package("github-slugger")
    program = (
        "const {default: S} = await import('github-slugger'); const s = new S();"
        "console.log(JSON.stringify(JSON.parse(process.argv[1]).map(t => s.slug(t))))"
    )
    texts = [
        "Hello",
        "Hello",
        "Hello-1",
        "Ünï_cödé",
        "a.b/c",
        "Ⓐ ² ½ №",
        "emoji 🏂 end",
        "  two  ",
        "ÅNGSTRÖM",
        "x",
        "滑板",
    ]
    command = [tool("node"), "--input-type=module", "-e", program, json.dumps(texts)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=NODE)
    slugger = Slugger()
    assert [slugger.slug(text) for text in texts] == json.loads(answer.stdout)


@pytest.mark.parametrize(
    "hostile", ["<A {", "export const a = {\n\n", "<!--", "```mdx-code-block\n", "`" * 7 + "a", "{' "]
)
def test_hostile_text_takes_linear_time(hostile: str) -> None:
    """A hundred thousand marks that never end: seconds at most (the suite's own limit), and the words stay."""
    assert plain_markdown(hostile * 20_000 + "\n\nend").endswith("end")


def test_golden_page() -> None:
    """A page with everything on it, chunk by chunk; write the file anew when the change is meant."""
    markdown = (GOLDEN / "everything.mdx").read_text("utf-8")
    shaped = Docs().shape({"markdown": markdown, "url": "/docs/everything"}, words(limit=120))
    told = "".join(
        f"=== {part.name} {part.metadata.url} {json.dumps(part.metadata.extra, ensure_ascii=False)}\n{part.text}\n"
        for part in shaped.parts
    )
    assert told == (GOLDEN / "everything.txt").read_text("utf-8")


def test_a_run_of_small_sections_is_cut_at_its_own_names() -> None:
    """An edit at the front of a long run moves the borders up to the next cut only; two small ones never part there."""

    def told(*sections: str) -> list[str]:
        found = page("\n\n".join(f"## Section {number}\n\n{text}" for number, text in enumerate(sections))).sections
        return ["".join(block.whole for block in section.blocks) for section in found]

    small = [f"Forty words or so are in here, as number {number} of many. " * 3 for number in range(60)]
    before, after = told(*small), told(f"{small[0]} And quite a few more words than there were before.", *small[1:])
    assert len(set(after) - set(before)) <= 3
    assert 60 > len(before) > 6
    assert all(len(text.split()) >= 60 for text in before)


def test_small_text_around_the_title_is_one_section() -> None:
    """The title itself is not repeated inside."""
    (section,) = page("Before.\n\n# Title\n\nAfter.", "Title").sections
    assert [block.whole for block in section.blocks] == ["Before.", "After."]


def test_what_was_joined_stays_whole() -> None:
    """A section joins only where it fits as the filling counts, so no part starts at another section's heading."""
    body = "\n\n".join(
        f"## S{number}\n\n{'word ' * (60 + number)}\n\n### t{number}\n\nOne. Two." for number in range(40)
    )
    for limit in range(66, 112, 3):
        for part in Docs().shape({"title": "T", "markdown": body}, words(limit)).parts:
            assert not part.text.partition("\n\n")[2].startswith("#"), (limit, part.name)
