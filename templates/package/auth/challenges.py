"""Challenges of `WWW-Authenticate`: lenient parsing and strict formatting.

A header contains several challenges, and a challenge several parameters. Both are separated by
commas, so a word without an equals sign begins the next challenge.

Source: RFC 9110, section 11.6.1; RFC 6750, section 3; RFC 9449, section 7.1; RFC 9728, section 5.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

CHALLENGES_LIMIT = 64 * 1024
"""Characters of a header that are parsed; further characters are ignored."""

_SPACE = re.compile(r"[ \t\r\n]*")
_SEPARATORS = re.compile(r"[ \t\r\n,]*")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TOKEN68 = re.compile(r"[ \t\r\n]+([A-Za-z0-9\-._~+/]+=*)[ \t\r\n]*(?=,|\Z)")
_EQUALS = re.compile(r"[ \t\r\n]*=[ \t\r\n]*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_UNQUOTED = re.compile(r'[^ \t\r\n,"]*')
_TO_COMMA = re.compile(r"[^,]*")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_QUOTABLE = re.compile(r"[\t\x20-\x7e]*\Z")


@dataclass(frozen=True)
class Challenge:
    """One authentication scheme that a server offers.

    Attributes:
        scheme: The scheme as written; compared case-insensitively.
        parameters: Values by name in lower case. The first value of a repeated name is used.
        token68: The value that replaces the parameters in schemes such as Negotiate.
    """

    scheme: str
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    token68: str | None = None

    def is_scheme(self, *names: str) -> bool:
        """Whether the scheme is one of these names."""
        return self.scheme.lower() in {name.lower() for name in names}


def parse_challenges(header: str) -> tuple[Challenge, ...]:
    """The challenges of a `WWW-Authenticate` header.

    Unquoted values may contain any characters except spaces, commas and quotes, because several
    servers send such values. Malformed text is skipped up to the next comma.

    Args:
        header: The value of the field, or the values of several fields joined by commas.
    """
    text = header[:CHALLENGES_LIMIT]
    challenges: list[Challenge] = []
    parameters: dict[str, str] = {}
    position = _after(_SEPARATORS, text, 0)
    while position < len(text):
        word = _TOKEN.match(text, position)
        if word is None:
            position = _after(_TO_COMMA, text, position)
        elif challenges and (equals := _EQUALS.match(text, word.end())):
            value, position = _value(text, equals.end())
            parameters.setdefault(word[0].lower(), value)
        elif _EQUALS.match(text, word.end()):
            position = _after(_TO_COMMA, text, position)  # a parameter before the first challenge
        elif token68 := _TOKEN68.match(text, word.end()):
            parameters = {}
            challenges.append(Challenge(word[0], parameters, token68[1]))
            position = token68.end()
        else:
            parameters = {}
            challenges.append(Challenge(word[0], parameters))
            position = word.end()
        position = _after(_SEPARATORS, text, position)
    return tuple(challenges)


def format_challenge(challenge: Challenge) -> str:
    """A challenge as the value of a `WWW-Authenticate` field; every parameter is quoted.

    Raises:
        ValueError: A name or a value is not allowed in a header. The text does not quote it.
    """
    if _TOKEN.fullmatch(challenge.scheme) is None:
        raise ValueError("expected a token as the scheme of a challenge")
    if challenge.token68 is not None:
        return f"{challenge.scheme} {challenge.token68}"
    written = [_parameter(name, value) for name, value in challenge.parameters.items()]
    return f"{challenge.scheme} {', '.join(written)}".rstrip()


def format_challenges(challenges: Iterable[Challenge]) -> str:
    """Several challenges as the value of one field.

    Raises:
        ValueError: See `format_challenge`.
    """
    return ", ".join(format_challenge(each) for each in challenges)


def _parameter(name: str, value: str) -> str:
    if _TOKEN.fullmatch(name) is None:
        raise ValueError("expected a token as the name of a parameter of a challenge")
    if _QUOTABLE.match(value) is None:
        raise ValueError(f"{name}: expected visible ASCII and spaces in a challenge")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}"'


def _value(text: str, position: int) -> tuple[str, int]:
    """A value and the position after it. An unclosed quote extends to the end of the text."""
    if quoted := _QUOTED.match(text, position):
        return _ESCAPE.sub(r"\1", quoted[1]), quoted.end()
    if text.startswith('"', position):
        return "", len(text)
    end = _after(_UNQUOTED, text, position)
    return text[position:end], end


def _after(pattern: re.Pattern[str], text: str, position: int) -> int:
    """The position after the match of a pattern."""
    match = pattern.match(text, position)
    return position if match is None else match.end()
