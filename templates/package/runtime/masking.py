"""Masking of secrets in messages before they are recorded: by member name, and within text.

In JSON, member names decide. Within text, and in messages that cannot be decoded, secrets are found
by form: values assigned to secret names, HTTP header fields, credentials in URLs, and tokens of
well-known forms. Masking too much is harmless; masking too little discloses a secret. So in doubt
the longer value is masked.

All patterns take time in proportion to the text: repetitions are bounded or possessive, and the
end of a value is searched once, from its start; the search continues after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeAlias, TypeGuard

MASK = "***"

SEARCH_LIMIT = 1024 * 1024
"""Characters of one message that are searched for secrets; later texts show only their length.
Texts that cannot contain a secret, such as Base64 data, do not count."""

# Parts of a name, in any case.
_PARTS = (
    "authorization|api[-_. ]?key|passw(?:or)?d|passphrase|pass[-_]?code|secret|cookie|credential"
    "|(?:access|account|encryption|master|private|shared|signing|storage)[-_.]?key"
    "|session[-_.]?(?:id|key)|code[-_.]?verifier|client[-_.]?assertion|mnemonic|csrf|xsrf"
)
# Whole words within a name, as snake_case, camelCase and constants write them.
_WORDS = ("auth", "bearer", "jwt", "otp", "pwd", "sid")
# Whole words whose numbers are not masked, since they count or number something else.
_COUNTED_WORDS = ("pin", "pins", "tokens")
# Not tokens of progress and of pages, and no properties of a token except its value.
_TOKEN = (
    r"(?<!progress)(?<!progress[-_])(?<!page)(?<!page[-_])(?<!continuation)"
    r"token(?:secret|string|value)?"
    r"(?![a-z]|[-_.](?:count|endpoint|expir|introspect|limit|name|revocation|type|ur[il]|usage))"
)


def _as_words(words: tuple[str, ...]) -> str:
    lower, title, upper = (
        "|".join(change(word) for word in words) for change in (str.lower, str.title, str.upper)
    )
    return (
        rf"(?<![A-Za-z])(?:{lower})(?![a-z])|(?:{title})(?![a-z])"
        rf"|(?<![A-Za-z])(?:{upper})(?![A-Za-z])"
    )


_COUNTED = _as_words(_COUNTED_WORDS)
_ANY_NAME = rf"(?i:{_PARTS}|{_TOKEN})|{_as_words(_WORDS)}|{_COUNTED}"
_is_secret = re.compile(_ANY_NAME).search
_is_counted = re.compile(_COUNTED).search

_candidate = re.compile("|".join((_PARTS, "token", *_WORDS, *_COUNTED_WORDS))).search
_assignment = re.compile(
    rf"(?P<name>{_ANY_NAME})(?P<rest>[\w-]{{0,32}}+)"
    r"(?:\\{0,15}[\"'`])?"  # the name was quoted, maybe within a quoted text
    r"(?:[ \t]{0,16}(?P<sign>=>|:=|[:=])[ \t]{0,16}|(?P<tag>>)|[ \t]{1,16}(?=[^\s:=-]))"
).match
_is_option = re.compile(r"(?<![\w-])--[\w-]{0,40}\Z").search
_opening_quote = re.compile(r"\\{0,15}[\"'`]").match
_scheme = re.compile(
    r"(?:apikey|aws4-hmac-sha256|basic|bearer|digest|dpop|hmac|key|mac|negotiate|ntlm|oauth|token)"
    r"[ \t]{1,16}(?=\S)",
    re.IGNORECASE,
).match
_word = re.compile(r"(?:[^\s\"'`&,;]|[,;](?!\s{0,8}[\w.-]{1,40}\s{0,8}[:=]))*+").match
_rest_of_line = re.compile(r"(?:[^\r\n\\]|\\(?![rn]))*+").match
_brackets = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL).finditer
_is_number = re.compile(r"[-+.\deE]+[,;)\]}]{0,8}\Z").match

# Each secret name contains one of these, in lower case.
_STEMS = (
    *("pass", "secret", "cookie", "credential", "key", "session", "verifier"),
    *("assertion", "mnemonic", "csrf", "xsrf", "token", *_WORDS, *_COUNTED_WORDS),
)
_OPTION_LIMIT = 100
_QUOTES = ('"', "'", "`")
_ELEMENT_LIMIT = 4096

_Match: TypeAlias = Callable[[str, int, int], "re.Match[str] | None"]

_WHOLE_LINE = re.compile(r"authorization|cookie|passphrase|mnemonic", re.IGNORECASE).search
"""Names whose value, if it is not quoted, extends to the end of the line."""


class _Shape(NamedTuple):
    """A form of secrets that have no name.

    Attributes:
        keywords: Texts in lower case; each secret of this form contains at least one of them.
    """

    keywords: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: str


_SHAPES = (
    # Schemes of HTTP authentication; some are also English words.
    _Shape(
        ("bearer",),
        re.compile(r"\b(bearer[ \t]{1,16})[\w.~+/=-]{8,}", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    _Shape(
        ("digest",),
        re.compile(r"\b(digest[ \t]{1,16})(?=\w{1,20}=)[^\r\n]*+", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    _Shape(
        ("basic", "dpop", "negotiate", "token"),
        re.compile(
            r"\b((?i:basic|dpop|negotiate|token)[ \t]{1,16})"
            r"(?=[A-Za-z][a-z]{0,64}[A-Z0-9_+=]|\d)[\w.~+/=-]{8,}"
        ),
        rf"\1{MASK}",
    ),
    # The password in a URL, up to the last "@" of the authority; or a user name that is a token.
    _Shape(
        ("://",),
        re.compile(
            r"(://[^/\s:@\"'<>]{0,256}:)(?:[^/\s\"'<>]*@|(?!\d{1,5}[/?#])[^\s\"'<>@]{0,100}@)"
        ),
        rf"\1{MASK}@",
    ),
    _Shape(("://",), re.compile(r"(://)[^/\s:@\"'<>]{16,}@"), rf"\1{MASK}@"),
    # JSON Web Tokens, private keys, and tokens with the prefix of a service.
    _Shape(("eyj",), re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"), MASK),
    _Shape(
        ("private key",),
        re.compile(
            r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)(?:[^-]|-(?!----END))*+", re.IGNORECASE
        ),
        rf"\1{MASK}",
    ),
    _Shape(
        (
            "gho_",
            "ghp_",
            "ghr_",
            "ghs_",
            "ghu_",
            "github_pat_",
            "glpat-",
            "sk-",
            "xox",
            "aiza",
            "akia",
            "asia",
        ),
        re.compile(
            r"\b(?:gh[oprsu]_|github_pat_|glpat-|sk-|xox[abeprs]-|AIza|AKIA|ASIA)[\w-]{12,}"
        ),
        MASK,
    ),
)

_SCHEMAS = ("properties", "$defs")


def mask_value(value: Any) -> Any:
    """A copy of decoded JSON without secrets: members by name, secrets within text by form.

    Members of a JSON Schema's `properties` keep their schemas; only plain values are masked there.

    Raises:
        RecursionError: The value is nested too deep.
    """
    return _Masking().value(value)


def mask_text(text: str) -> str:
    """A text with everything masked that looks like a secret."""
    return _Masking().text(text)


class _Masking:
    """Masks one message; searches `SEARCH_LIMIT` characters of it."""

    def __init__(self) -> None:
        self._left = SEARCH_LIMIT

    def value(self, value: Any) -> Any:
        if _is_object(value):
            named = value.get("name", value.get("key"))
            return {
                name: self._member(
                    named if name == "value" and isinstance(named, str) else name, member
                )
                for name, member in value.items()
            }
        if _is_array(value):
            return self._items(value)
        return self.text(value) if isinstance(value, str) else value

    def text(self, text: str) -> str:
        lower = _in_lower_case(text)
        assigned = _may_be_assigned(lower)
        shapes = [shape for shape in _SHAPES if any(mark in lower for mark in shape.keywords)]
        if not assigned and not shapes:
            return text
        size, limit = len(text), self._left
        self._left = max(0, limit - size)
        text, lower = text[:limit], lower[:limit]
        if assigned:
            text = _mask_assignments(text, lower)
        for shape in shapes:
            text = shape.pattern.sub(shape.replacement, text)
        return text if size <= limit else f"{text}... ({size} characters)"

    def _member(self, name: str, value: Any) -> Any:
        if name in _SCHEMAS and _is_object(value):
            return {
                inner: self.value(member) if _is_object(member) else self._member(inner, member)
                for inner, member in value.items()
            }
        if value is None or isinstance(value, bool) or not _is_secret(name):
            return self.value(value)
        if isinstance(value, int | float) and _is_counted(name):
            return value
        return MASK

    def _items(self, items: list[Any]) -> list[Any]:
        """The items of an array; an item after an option such as `--password` is masked."""
        copies: list[Any] = []
        option = False
        for item in items:
            copies.append(MASK if option and isinstance(item, str) else self.value(item))
            option = isinstance(item, str) and _names_secret(item)
        return copies


def _names_secret(option: str) -> bool:
    """Whether an argument of a command is an option whose secret value is the next argument."""
    return (
        option.startswith("--")
        and len(option) < _OPTION_LIMIT
        and "=" not in option
        and _is_secret(option) is not None
    )


def _in_lower_case(text: str) -> str:
    """The text in lower case, with its length kept: one character would grow."""
    return text.replace("\u0130", "i").lower()


def _may_be_assigned(lower: str) -> bool:
    """Whether the text may contain an assignment to a secret name."""
    if not any(sign in lower for sign in (":", ">", "--")) and "=" not in lower.rstrip("="):
        return False
    return any(stem in lower for stem in _STEMS)


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _mask_assignments(text: str, lower: str) -> str:
    """A text with the values masked that are assigned to secret names."""
    candidate = _candidate(lower)
    if candidate is None:
        return text
    parts: list[str] = []
    done = 0
    while candidate is not None:
        behind = candidate.end()
        assigned = _assignment(text, candidate.start())
        if assigned is not None:
            start, stop = _value_span(text, assigned)
            behind = max(assigned.end("rest"), stop)
            if stop > start and not _is_plain_count(assigned, text[start:stop]):
                parts += text[done:start], MASK
                done = stop
        candidate = _candidate(lower, behind)
    parts.append(text[done:])
    return "".join(parts)


def _is_plain_count(assigned: re.Match[str], value: str) -> bool:
    counted = _is_counted(assigned["name"] + assigned["rest"]) is not None
    return counted and _is_number(value) is not None


def _value_span(text: str, assigned: re.Match[str]) -> tuple[int, int]:
    """Start and end of the value of a secret name; both are equal if it has no value."""
    start = assigned.end()
    if assigned["tag"]:
        return start, _element_end(text, assigned)
    if not assigned["sign"] and not _is_option(text, assigned.start() - 64, assigned.end("name")):
        return start, start
    quote = _opening_quote(text, start)
    if quote is not None:
        start = _behind_scheme(text, quote.end(), assigned)
        return start, _closing_quote(text, start, quote[0])
    if text.startswith(("[", "{"), start):
        return start, _container_end(text, start)
    start = _behind_scheme(text, start, assigned)
    if not _WHOLE_LINE(assigned["name"]):
        return start, _match_end(_word, text, start, len(text))
    before = text[assigned.start() - 1 : assigned.start()]
    close = text.find(before, start) if before in _QUOTES else -1  # as in -H "name: value"
    return start, _match_end(_rest_of_line, text, start, len(text) if close == -1 else close)


def _element_end(text: str, assigned: re.Match[str]) -> int:
    """The end of the text in an XML element with a secret name."""
    if "<" not in text[max(0, assigned.start() - 64) : assigned.start()]:
        return assigned.end()
    limit = assigned.end() + _ELEMENT_LIMIT
    close = text.find("<", assigned.end(), limit)
    return min(limit, len(text)) if close == -1 else close


def _behind_scheme(text: str, start: int, assigned: re.Match[str]) -> int:
    """The start of the credentials in the value of a header field, after the scheme."""
    scheme = _scheme(text, start) if "auth" in assigned["name"].lower() else None
    return start if scheme is None else scheme.end()


def _match_end(match: _Match, text: str, start: int, limit: int) -> int:
    matched = match(text, start, limit)
    return start if matched is None else matched.end()


def _closing_quote(text: str, start: int, opening: str) -> int:
    """The end of a quoted value: a quote with at most as many backslashes as the opening quote."""
    quote, escapes = opening[-1], len(opening) - 1
    at = text.find(quote, start)
    while at != -1:
        run = at
        while run > start and text[run - 1] == "\\":
            run -= 1
        if at - run <= escapes:
            return run
        at = text.find(quote, at + 1)
    return len(text)


def _container_end(text: str, start: int) -> int:
    """The end of a JSON array or object; the end of the text if it is not closed."""
    depth = 0
    for token in _brackets(text, start):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return len(text)


def mask_members(value: Any, names: Collection[str]) -> Any:
    """A copy of decoded JSON with the values of members with these names masked."""
    if _is_object(value):
        return {
            name: MASK if name in names else mask_members(member, names)
            for name, member in value.items()
        }
    return [mask_members(each, names) for each in value] if _is_array(value) else value
