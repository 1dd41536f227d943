"""The outcomes of checks: a rule is kept, is broken, or does not apply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mcpgen.check_server.connections import Reply
from mcpgen.check_server.rules import Rule
from mcpgen.errors import format_value
from mcpgen.explain.violations import Violation
from mcpgen.json_types import Json, Node, is_array, is_object

State = Literal["passed", "broken", "not applicable"]


class BrokenRuleError(Exception):
    """The server breaks the rule that is checked.

    Args:
        expected: The behaviour of a correct server.
        actual: The behaviour of this server.
    """

    def __init__(self, expected: str, actual: str) -> None:
        super().__init__(f"expected {expected}, got {actual}")
        self.expected = expected
        self.actual = actual


class NotApplicableError(Exception):
    """The rule does not apply to this server; the text is the reason."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one check in one revision.

    Attributes:
        rule: The rule.
        revision: The revision.
        state: Whether the rule is kept.
        expected: The behaviour of a correct server, if the rule is broken.
        actual: The behaviour of this server, if the rule is broken.
        why: The reason, if the rule does not apply.
    """

    rule: Rule
    revision: str
    state: State
    expected: str = ""
    actual: str = ""
    why: str = ""


def require(kept: bool, expected: str, actual: str) -> None:
    """Check that a rule is kept.

    Raises:
        BrokenRuleError: The rule is broken.
    """
    if not kept:
        raise BrokenRuleError(expected, actual)


def applies(whether: bool, why: str) -> None:
    """Check that a rule applies.

    Raises:
        NotApplicableError: The rule does not apply.
    """
    if not whether:
        raise NotApplicableError(why)


def result_of(reply: Reply, request: str = "") -> Node:
    """The result of a reply.

    Raises:
        BrokenRuleError: The reply has no result.
    """
    result: Json = reply.result
    of = f" of {request}" if request else ""
    if not is_object(result) or reply.error is not None:
        raise BrokenRuleError(f"a result{of}", reply.text)
    return result


def require_error(reply: Reply, *codes: int, what: str = "") -> None:
    """Check that a reply is an error, with one of the given codes if there are any.

    Raises:
        BrokenRuleError: The reply is no such error.
    """
    numbers = " or ".join(map(str, codes))
    expected = f"error {numbers}".strip() + (f" {what}" if what else "")
    kept = is_object(reply.error) and reply.result is None
    require(kept and (not codes or reply.code in codes), expected, reply.text)


def require_valid(violation: Violation | None, of: str) -> None:
    """Check that a value has its type.

    Raises:
        BrokenRuleError: The value has a violation.
    """
    if violation is not None:
        at = f"{of}{violation.pointer}"
        raise BrokenRuleError(f"{violation.expected} at {format_value(at)[1:-1]}", violation.actual)


def no_objects(values: Json) -> Json:
    """An array without its objects, which other rules check; any other value unchanged."""
    return [each for each in values if not is_object(each)] if is_array(values) else values
