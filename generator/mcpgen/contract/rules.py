"""The rules that name and judge a change of a server, as one table.

A rule belongs to a category, which says whom it protects: see `CATEGORIES`.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from mcpgen.errors import SettingsError, UsageError, format_value
from mcpgen.json_types import is_array, is_object

Severity: TypeAlias = Literal["breaking", "warning", "compatible"]
Category: TypeAlias = Literal["callers", "models", "clients"]

SEVERITIES: tuple[Severity, ...] = ("breaking", "warning", "compatible")
"""The severities, gravest first."""

CATEGORIES: Mapping[Category, str] = {
    "callers": "Code that calls the server, written for its old state: names, arguments, results.",
    "models": "A model that reads titles, descriptions, annotations and instructions.",
    "clients": "Clients of some revisions, or that rely on a capability or an extension.",
}
"""The categories of rules, each with what it protects."""

FAILING: Mapping[str, tuple[Severity, ...]] = {
    "breaking": ("breaking",),
    "warning": ("breaking", "warning"),
    "any": ("breaking", "warning", "compatible"),
    "never": (),
}
"""The severities that make a check fail, by the word of `--fail-on`."""


@dataclass(frozen=True)
class Rule:
    """One kind of change.

    Attributes:
        id: Its name, which reports and settings use.
        category: Its category.
        severity: How grave it is.
        text: The change in words, with `{old}` and `{new}`.
        reason: Why it has this severity.
    """

    id: str
    category: Category
    severity: Severity
    text: str
    reason: str


_GONE = "a request for it is answered with an error"
_REFUSED = "arguments that were accepted are refused"
_MORE = "nothing that was sent or read before changes"
_READ = "a model reads it when it chooses what to call, so it may choose otherwise"
_PROMISED = "code that reads the result takes it for granted"
_UNKNOWN = (
    "mcpgen has neither a proof that the values are the same nor a value that shows otherwise"
)

_ROWS: tuple[tuple[str, Category, Severity, str, str], ...] = (
    ("TOOL_REMOVED", "callers", "breaking", "the tool is gone", _GONE),
    ("TOOL_RENAMED", "callers", "breaking", "the tool was renamed from {old}", _GONE),
    ("TOOL_ADDED", "callers", "compatible", "a new tool", _MORE),
    (
        "ARGUMENT_REMOVED",
        "callers",
        "breaking",
        "the argument {old} is gone",
        "it is refused, or has no effect",
    ),
    (
        "ARGUMENT_RENAMED",
        "callers",
        "breaking",
        "the argument {old} was renamed to {new}",
        "it is refused, or has no effect",
    ),
    (
        "ARGUMENT_ADDED",
        "callers",
        "compatible",
        "a new argument, {new}, which may be left out",
        _MORE,
    ),
    (
        "ARGUMENT_ADDED_REQUIRED",
        "callers",
        "breaking",
        "a new argument, {new}, is required",
        _REFUSED,
    ),
    (
        "ARGUMENT_MADE_REQUIRED",
        "callers",
        "breaking",
        "the argument {old} is required, was optional",
        _REFUSED,
    ),
    (
        "ARGUMENT_MADE_OPTIONAL",
        "callers",
        "compatible",
        "the argument {old} may be left out, was required",
        _MORE,
    ),
    ("ARGUMENT_NARROWED", "callers", "breaking", "the argument {old} is narrower", _REFUSED),
    ("ARGUMENT_WIDENED", "callers", "compatible", "the argument {old} is wider", _MORE),
    (
        "ARGUMENT_UNDECIDED",
        "callers",
        "warning",
        "the argument {old} changed, and can't be decided: {new}",
        _UNKNOWN,
    ),
    (
        "ARGUMENT_DEFAULT_CHANGED",
        "callers",
        "warning",
        "the default of the argument changed from {old} to {new}",
        "calls without the argument do something else",
    ),
    (
        "ARGUMENT_DESCRIPTION_CHANGED",
        "models",
        "warning",
        "the description of the argument {old} changed",
        _READ,
    ),
    ("INPUT_NARROWED", "callers", "breaking", "some arguments are refused together", _REFUSED),
    (
        "INPUT_UNDECIDED",
        "callers",
        "warning",
        "the arguments changed, and can't be decided: {new}",
        _UNKNOWN,
    ),
    ("OUTPUT_ADDED", "callers", "compatible", "structured results are described", _MORE),
    (
        "OUTPUT_REMOVED",
        "callers",
        "breaking",
        "structured results are no longer described",
        _PROMISED,
    ),
    (
        "OUTPUT_MEMBER_REMOVED",
        "callers",
        "breaking",
        "the member {old} of the result is gone",
        _PROMISED,
    ),
    (
        "OUTPUT_MEMBER_ADDED",
        "callers",
        "compatible",
        "a new member of the result, {new}",
        "clients ignore members that they do not know",
    ),
    (
        "OUTPUT_MEMBER_MADE_OPTIONAL",
        "callers",
        "breaking",
        "the member {old} of the result is no longer promised",
        _PROMISED,
    ),
    (
        "OUTPUT_MEMBER_MADE_REQUIRED",
        "callers",
        "compatible",
        "the member {old} of the result is always there",
        _MORE,
    ),
    (
        "OUTPUT_MEMBER_WIDENED",
        "callers",
        "breaking",
        "the member {old} of the result is wider",
        "values come that a caller does not know",
    ),
    (
        "OUTPUT_MEMBER_NARROWED",
        "callers",
        "compatible",
        "the member {old} of the result is narrower",
        _MORE,
    ),
    (
        "OUTPUT_WIDENED",
        "callers",
        "breaking",
        "results come that the old schema refuses",
        "values come that a caller does not know",
    ),
    (
        "OUTPUT_UNDECIDED",
        "callers",
        "warning",
        "the result changed, and can't be decided: {new}",
        _UNKNOWN,
    ),
    (
        "TASK_REQUIRED",
        "callers",
        "breaking",
        "the tool can only be called as a task",
        "a plain call is refused",
    ),
    (
        "TASK_REFUSED",
        "callers",
        "breaking",
        "the tool can no longer be called as a task",
        "a call as a task is refused",
    ),
    ("TASK_ALLOWED", "callers", "compatible", "task support changed from {old} to {new}", _MORE),
    ("TITLE_CHANGED", "models", "warning", "the title changed", _READ),
    ("DESCRIPTION_CHANGED", "models", "warning", "the description changed", _READ),
    (
        "ANNOTATION_CHANGED",
        "models",
        "warning",
        "the annotation {old} changed to {new}",
        "hosts decide by it what to ask the user",
    ),
    ("META_CHANGED", "models", "warning", "_meta changed", "hosts may act on it"),
    ("ICONS_CHANGED", "models", "compatible", "the icons changed", "nothing depends on them"),
    ("RESOURCE_REMOVED", "callers", "breaking", "the resource is gone", _GONE),
    ("RESOURCE_ADDED", "callers", "compatible", "a new resource", _MORE),
    ("RESOURCE_NAME_CHANGED", "models", "warning", "the name changed from {old} to {new}", _READ),
    (
        "RESOURCE_SIZE_CHANGED",
        "callers",
        "compatible",
        "the size changed from {old} to {new}",
        "contents change",
    ),
    (
        "MIME_TYPE_CHANGED",
        "callers",
        "breaking",
        "the MIME type changed from {old} to {new}",
        "a reader of the old type does not know the new one",
    ),
    ("TEMPLATE_REMOVED", "callers", "breaking", "the resource template is gone", _GONE),
    ("TEMPLATE_ADDED", "callers", "compatible", "a new resource template", _MORE),
    ("PROMPT_REMOVED", "callers", "breaking", "the prompt is gone", _GONE),
    ("PROMPT_RENAMED", "callers", "breaking", "the prompt was renamed from {old}", _GONE),
    ("PROMPT_ADDED", "callers", "compatible", "a new prompt", _MORE),
    (
        "INSTRUCTIONS_CHANGED",
        "models",
        "warning",
        "the instructions changed",
        "a model reads them in every session",
    ),
    (
        "CAPABILITY_REMOVED",
        "clients",
        "breaking",
        "the capability {old} is gone",
        "clients no longer ask for it, or are refused",
    ),
    ("CAPABILITY_ADDED", "clients", "compatible", "a new capability, {new}", _MORE),
    (
        "EXTENSION_REMOVED",
        "clients",
        "breaking",
        "the extension {old} is gone",
        "clients that rely on it are refused",
    ),
    ("EXTENSION_ADDED", "clients", "compatible", "a new extension, {new}", _MORE),
    (
        "EXTENSION_CHANGED",
        "clients",
        "warning",
        "the settings of the extension {old} changed",
        "clients act on them",
    ),
    (
        "REVISION_REMOVED",
        "clients",
        "breaking",
        "the revision {old} is no longer spoken",
        "clients of that revision alone can't connect",
    ),
    ("REVISION_ADDED", "clients", "compatible", "the revision {new} is spoken", _MORE),
)

RULES: Mapping[str, Rule] = {row[0]: Rule(*row) for row in _ROWS}
"""All rules by id, in the order of reports."""


@dataclass(frozen=True)
class Exemption:
    """A rule, or a category of rules, that does not count for some items.

    Attributes:
        rules: The ids of the rules.
        item: The item, such as `tool add`; `*` for all.
        reason: Why they do not count.
        until: The last day; `None` without an end.
    """

    rules: frozenset[str]
    item: str
    reason: str
    until: datetime.date | None = None

    def applies(self, rule: str, item: str, today: datetime.date) -> bool:
        """Whether a change does not count."""
        return (
            rule in self.rules
            and self.item in ("*", item)
            and (self.until is None or today <= self.until)
        )


def read_exemptions(path: Path) -> Sequence[Exemption]:
    """The exemptions in a file of TOML: tables `[[allow]]`.

    Each has either `rule` or `category`, and `item`, `reason` and, if it ends, `until`.

    Raises:
        SettingsError: The file is no TOML, or a table is malformed.
        UsageError: The file can't be read.
    """
    source = str(path)
    try:
        document: Any = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{source}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(source, "", "TOML", str(error)) from error
    listed = document.get("allow", [])
    if not is_array(listed) or document.keys() - {"allow"}:
        raise SettingsError(source, "", "tables [[allow]] alone", format_value(sorted(document)))
    return [_exemption(each, f"/allow/{number}", source) for number, each in enumerate(listed)]


_KEYS = ("rule", "category", "item", "reason", "until")


def _exemption(table: object, pointer: str, source: str) -> Exemption:
    if not is_object(table) or table.keys() - {*_KEYS}:
        expected = f"{', '.join(_KEYS[:-1])} and {_KEYS[-1]}"
        raise SettingsError(source, pointer, expected, format_value(table))
    rules = _exempt_rules(table, pointer, source)
    for key in ("item", "reason"):
        if not isinstance(table.get(key), str) or not table[key].strip():
            raise SettingsError(source, f"{pointer}/{key}", "a text", format_value(table.get(key)))
    until = table.get("until")
    if until is not None and type(until) is not datetime.date:
        raise SettingsError(source, f"{pointer}/until", "a date", format_value(str(until)))
    return Exemption(rules, table["item"], table["reason"], until)


def _exempt_rules(table: Mapping[str, Any], pointer: str, source: str) -> frozenset[str]:
    """The rules that a table names, by itself or by their category."""
    if "category" not in table:
        if table.get("rule") not in RULES:
            expected = "a rule of mcpgen contract rules"
            came = format_value(table.get("rule"))
            raise SettingsError(source, f"{pointer}/rule", expected, came)
        return frozenset({table["rule"]})
    if "rule" in table:
        raise SettingsError(source, pointer, "either rule or category", "both")
    if table["category"] not in CATEGORIES:
        expected = f"one of {', '.join(CATEGORIES)}"
        came = format_value(table["category"])
        raise SettingsError(source, f"{pointer}/category", expected, came)
    return frozenset(row.id for row in RULES.values() if row.category == table["category"])
