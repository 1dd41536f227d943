"""Documentation comments: the description, and the tags that describe values.

Tags that name a JSON Schema keyword set that keyword, as in the tools that write `schema.json` from
TypeScript: `@minimum 0`, `@format uri`, `@TJS-type number`. All other tags are only documentation.
Links in the description become their texts; nothing is included from other files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

from mcpgen.json_types import Json
from mcpgen.schema.typescript.syntax import Comment

MAX_TAGS = 1_000
"""Limit of the tags in one comment."""

MAX_TEXT = 2_000
"""Limit of the characters of the value of a tag such as `@pattern`."""

_TAG = re.compile(r"@(?:TJS-)?([A-Za-z][\w-]*)")
_INLINE_TAG = re.compile(r"\{@(\w+)([^{}]*)\}")
_LINKS = frozenset({"link", "linkcode", "linkplain"})
_FENCE = re.compile(r"\s*```")
_JAVASCRIPT_NUMBER = re.compile(
    r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,15})?(?:[eE][+-]?[0-9]{1,2})?"
)


class WrongTagError(Exception):
    """The value of a tag is invalid."""

    def __init__(self, expected: str, actual: str) -> None:
        super().__init__(f"expected {expected}, got {actual}")
        self.expected = expected
        self.actual = actual


def read_comment(text: str) -> Comment:
    """The content of a comment `/** ... */`.

    Raises:
        WrongTagError: The value of a tag that names a keyword is malformed.
    """
    description: list[str] = []
    tags: list[list[str]] = []
    fenced = False
    for line in _lines(text):
        if _FENCE.match(line):
            fenced = not fenced
        first, *further = [line] if fenced else _KEYWORD_TAG.split(line)
        if not fenced and first.lstrip().startswith("@"):
            tags.append([first.strip()])
        elif tags:
            tags[-1].append(first)
        else:
            description.append(first)
        tags += [[tag] for tag in further]
    if len(tags) > MAX_TAGS:
        raise WrongTagError(f"at most {MAX_TAGS} tags in a comment", str(len(tags)))
    keywords: dict[str, Json] = {}
    flags = {"nullable": False, "ignore": False}
    for name, value in _values(tags):
        if name in flags:
            flags[name] = True
        elif reader := _READERS.get(name):
            keywords[_KEYWORDS.get(name, name)] = reader(name, value)
    shown = _INLINE_TAG.sub(_link_text, "\n".join(description))
    return Comment(shown.strip(), keywords, flags["nullable"], flags["ignore"])


def _lines(text: str) -> list[str]:
    inner = text.removeprefix("/**").removesuffix("*/")
    return [re.sub(r"^\s*\* ?", "", line).rstrip() for line in inner.split("\n")]


def _link_text(tag: re.Match[str]) -> str:
    """The text that an inline tag shows: for `{@link Tool | tools}` the text, else the name."""
    if tag[1] not in _LINKS:
        return ""
    target, _, text = tag[2].partition("|")
    return text.strip() or target.strip()


def _values(tags: list[list[str]]) -> Iterator[tuple[str, str]]:
    for first, *more in tags:
        if tag := _TAG.match(first):
            yield tag[1], " ".join([first[tag.end() :], *more]).strip()


def _number(tag: str, text: str) -> Json:
    if not _JAVASCRIPT_NUMBER.fullmatch(text):
        raise WrongTagError(f"a number after @{tag}", text)
    value = float(text)
    return int(value) if value.is_integer() else value


def _count(tag: str, text: str) -> Json:
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise WrongTagError(f"a count after @{tag}", text)
    return int(text)


def _boolean(tag: str, text: str) -> Json:
    if text not in ("", "true", "false"):
        raise WrongTagError(f"true or false after @{tag}", text)
    return text != "false"


def _text(tag: str, text: str) -> Json:
    if not 0 < len(text) <= MAX_TEXT:
        raise WrongTagError(f"a text of at most {MAX_TEXT} characters after @{tag}", text)
    return text


_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")


def _type(tag: str, text: str) -> Json:
    if text not in _TYPES:
        raise WrongTagError(f"one of {', '.join(_TYPES)} after @{tag}", text)
    return text


def _json(tag: str, text: str) -> Json:
    try:
        value: Json = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    return value


def _refuse(name: str) -> Json:
    raise ValueError(name)


_READERS: Mapping[str, Callable[[str, str], Json]] = {
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _number
    ),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _count
    ),
    **dict.fromkeys(("format", "contentEncoding", "contentMediaType", "pattern"), _text),
    "additionalProperties": _boolean,
    "uniqueItems": _boolean,
    "type": _type,
    "asType": _type,
    "default": _json,
    "deprecated": lambda tag, text: True,
}
_KEYWORDS = {"asType": "type"}
_KEYWORD_TAG = re.compile(
    rf"(?<!\S)(?=@(?:TJS-)?(?:{'|'.join((*_READERS, 'nullable', 'ignore'))})(?![\w-]))"
)
"""Matches the beginning of a tag that sets a keyword, anywhere in a line."""
