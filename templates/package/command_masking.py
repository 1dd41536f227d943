"""Command lines for errors and logs, with secrets masked.

A secret is recognized by the name before it (`--api-key=x`, `--token x`, `API_KEY=x`,
`"password": "x"`), by its place (user information of a URL, the value of an HTTP header), or by the
form of a token. In doubt a word is masked: these texts are for people.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .foreign_text import SHOWN_TEXT, safe_text

MASK = "***"

COMMAND_TEXT = 1000
"""Characters of a command line that an error shows."""

_SECRET_NAME = (
    r"(?:authorization|api[-_.]?key|access[-_.]?key|private[-_.]?key|passw(?:or)?d|passphrase"
    r"|secret|cookie|credential|bearer|token(?!s)"
    r"|(?<![a-z])(?:auth|key|pass|pwd|jwt|pat|dsn)(?![a-z]))"
)
_SECRET_OPTION = re.compile(rf"--?[\w.-]*{_SECRET_NAME}[\w.-]*", re.IGNORECASE)
_NO_SECRET = re.compile(r"(?:file|path|dir)$", re.IGNORECASE)
_HEADER_OPTION = re.compile(r"-H|--headers?")
_HEADER = re.compile(r"((?:-H|--headers?=)?\s*[\w-]+\s*:).+", re.DOTALL)
_NAMED = re.compile(
    rf"""(?<![\w./-])([\w.-]*{_SECRET_NAME}[\w.-]*["']?\s*[:=]\s*["']?).+""",
    re.IGNORECASE | re.DOTALL,
)
_SPACED = re.compile(rf"(?<!\S)(--?[\w.-]*{_SECRET_NAME}[\w.-]*)\s+\S+", re.IGNORECASE)
_USER_INFORMATION = re.compile(r"(://)[^/\s@]+@")
_TOKEN = re.compile(
    r"\b(?:(?:sk|pk|rk)-[\w-]{16,}|gh[opsu]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}"
    r"|xox[a-z]-[\w-]{10,}|AKIA[0-9A-Z]{16}|eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?)"
)
_BEARER = re.compile(r"\b(bearer|basic)\s+\S+", re.IGNORECASE)


def masked_command(argv: Sequence[str]) -> str:
    """A command as one line of text, without secrets, cut at `COMMAND_TEXT` characters."""
    words: list[str] = []
    is_value = is_header = False
    for word in argv:
        cut = safe_text(word)
        words.append(MASK if is_value else _mask_word(cut, is_header=is_header))
        head = word[:SHOWN_TEXT]
        is_value = _SECRET_OPTION.fullmatch(head) is not None and not _NO_SECRET.search(head)
        is_header = _HEADER_OPTION.fullmatch(head) is not None
    return safe_text(" ".join(words), COMMAND_TEXT)


def _mask_word(word: str, *, is_header: bool) -> str:
    if is_header or word.startswith(("-H", "--header")):
        word = _HEADER.sub(rf"\1 {MASK}", word)
    word = _USER_INFORMATION.sub(rf"\1{MASK}@", word)
    word = _SPACED.sub(_mask_option, word)  # for a whole command as one word
    word = _BEARER.sub(rf"\1 {MASK}", word)
    word = _TOKEN.sub(MASK, word)
    return _NAMED.sub(_mask_value, word)


def _mask_option(match: re.Match[str]) -> str:
    return match[0] if _NO_SECRET.search(match[1]) else f"{match[1]} {MASK}"


def _mask_value(match: re.Match[str]) -> str:
    name = match[1].rstrip("\"' \t:=")
    return match[0] if _NO_SECRET.search(name) else f"{match[1]}{MASK}"
