"""Text as editors and riders typed it, made fit to embed: the wording stays, what is not text goes.

Two strengths. `scrub` takes out only what no reader sees (it is used on Markdown, whose white space and tags mean
something); `clean` also turns HTML into text and evens out white space (it is used on fields).

Everything here is linear in the length of the text, whatever the text is.
"""

import html
import re
from typing import Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# Control characters, byte order marks and zero-width spaces; the bidirectional overrides and the "tag" characters too,
# because they can hide words from a human reviewer that a language model reads. The joiners (200C, 200D) stay: emoji
# and several scripts need them.
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b\u2060\ufeff\ufdd0-\ufdef\ufffe\uffff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
_LINE_END: Final = re.compile("\r\n?|[\u2028\u2029\x85]")
_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# Possessive, so that a tag that never ends costs one pass and no memory.
_TAG: Final = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,15})(?=[\s/>])((?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+)>")
_SPACES: Final = re.compile(r"[^\S\n]+")
_LINE_EDGES: Final = re.compile(r" ?\n ?")
_BLANK_LINES: Final = re.compile(r"\n{3,}")

INLINE_TAGS: Final = frozenset(
    [
        "a",
        "abbr",
        "b",
        "bdi",
        "bdo",
        "big",
        "cite",
        "code",
        "del",
        "dfn",
        "em",
        "font",
        "i",
        "ins",
        "kbd",
        "label",
        "mark",
        "q",
        "s",
        "samp",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "sup",
        "time",
        "tt",
        "u",
        "var",
    ]
)
"""HTML tags that stand inside a sentence: they vanish."""
BLOCK_TAGS: Final = frozenset(
    [
        "address",
        "article",
        "aside",
        "audio",
        "blockquote",
        "body",
        "br",
        "button",
        "canvas",
        "caption",
        "center",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "embed",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "head",
        "header",
        "hr",
        "html",
        "iframe",
        "img",
        "input",
        "legend",
        "li",
        "link",
        "main",
        "meta",
        "nav",
        "object",
        "ol",
        "option",
        "p",
        "param",
        "picture",
        "pre",
        "section",
        "select",
        "source",
        "summary",
        "svg",
        "table",
        "tbody",
        "td",
        "textarea",
        "tfoot",
        "th",
        "thead",
        "title",
        "tr",
        "track",
        "ul",
        "video",
    ]
)
"""HTML tags that end a line."""
_BARE_ATTRIBUTES: Final = frozenset(
    [
        "allowfullscreen",
        "async",
        "autofocus",
        "autoplay",
        "checked",
        "compact",
        "contenteditable",
        "controls",
        "default",
        "defer",
        "disabled",
        "download",
        "hidden",
        "inert",
        "ismap",
        "itemscope",
        "loop",
        "multiple",
        "muted",
        "nohref",
        "noshade",
        "novalidate",
        "nowrap",
        "open",
        "playsinline",
        "readonly",
        "required",
        "reversed",
        "selected",
    ]
)
"""HTML attributes that stand without a value (the boolean attributes of the HTML standard, and HTML 4's)."""
_UNREAD: Final = (("<!--", "-->"), ("<script", "</script>"), ("<style", "</style>"))


def scrub(text: str) -> str:
    """The text without lone surrogates, control characters and others that no reader sees; line ends made even."""
    if _SURROGATE.search(text):
        # A pair of surrogates is one character written by a careless encoder; a lone one is nothing.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\ufffd", "")
    return _INVISIBLE.sub("", _LINE_END.sub("\n", text))


def clean(text: str) -> str:
    """The text of a field: scrubbed, HTML reduced to its text, white space evened, at most one blank line in a row."""
    text = scrub(text)
    if "<" in text:
        text = _TAG.sub(_tag_to_text, _without_unread(text))
    if "&" in text:
        text = scrub(_ENTITY.sub(lambda match: html.unescape(match.group()).replace("\ufffd", ""), text))
    return _BLANK_LINES.sub("\n\n", _LINE_EDGES.sub("\n", _SPACES.sub(" ", text))).strip()


def one_line(text: str) -> str:
    """A cleaned text on one line."""
    return " ".join(clean(text).split())


def cut(text: str, longest: int) -> str | None:
    """The text, shortened to so many characters where it is longer; None when there is none."""
    return (text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…") or None


def _without_unread(text: str) -> str:
    """Comments, scripts and styles are taken out together with what they hold."""
    for opening, closing in _UNREAD:
        lowered = text.lower() if text.isascii() else text  # lower() may change the length of other texts
        kept: list[str] = []
        at = 0
        while (start := lowered.find(opening, at)) >= 0:
            end = lowered.find(closing, start + len(opening))
            if end < 0:
                break
            kept.append(text[at:start])
            at = end + len(closing)
        if at:
            text = " ".join([*kept, text[at:]])
    return text


def _tag_to_text(match: re.Match[str]) -> str:
    name = match.group(2).lower()
    if (name not in INLINE_TAGS and name not in BLOCK_TAGS) or not _is_markup(match.group(3)):
        return match.group()  # "<your name>", "a <b" and "a <b c> d" are somebody's words
    if name in INLINE_TAGS:
        return ""
    return "\n- " if name == "li" and not match.group(1) else "\n"


def _is_markup(attributes: str) -> bool:
    """Whether what stands behind a tag's name can be its attributes."""
    return "=" in attributes or all(word in _BARE_ATTRIBUTES for word in attributes.lower().replace("/", " ").split())
