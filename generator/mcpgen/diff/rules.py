"""The rules that name and judge a change between two revisions, as one table.

A change is judged for code that is written for the old revision and meets a peer of the new one.
If fewer forms of a message are valid than before, senders are affected: they still send the old
forms. If more forms are valid, receivers are affected: they do not know the new forms. Each rule
says who is affected, and how much:

    breaking     a peer refuses or misses something until code changes
    warning      messages stay valid, but something that was sent or relied on has no effect
    compatible   nothing has to change

Every rule has a mirror: the rule of the same change from the new revision to the old one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mcpgen.errors import UsageError, format_value

Severity = Literal["breaking", "warning", "compatible", "ignore"]
Kind = Literal["added", "removed", "renamed", "tightened", "loosened", "changed"]
Affects = Literal["sender", "receiver", "both", "nobody"]

SEVERITIES: tuple[Severity, ...] = ("breaking", "warning", "compatible", "ignore")
"""The severities of rules; changes of an ignored rule are not reported."""


@dataclass(frozen=True)
class Rule:
    """One kind of change.

    Attributes:
        id: Its name, which settings and reports use.
        element: The changed element: `method`, `notification`, `field`, ...
        kind: How.
        affects: Which side of the message has to change.
        severity: How much, unless settings say otherwise.
        mirror: The rule for the way back.
        reason: The reason of the severity.
    """

    id: str
    element: str
    kind: Kind
    affects: Affects
    severity: Severity
    mirror: str
    reason: str

    @property
    def text(self) -> str:
        """The change in words, with `{old}`, `{new}` and `{senders}` for what a change has."""
        return _TEXTS.get(self.id, f"{self.element} {self.kind}")

    @property
    def category(self) -> str:
        """The first word of the id, which settings accept for all rules that begin with it."""
        return self.id.partition("_")[0]


_TEXTS: Mapping[str, str] = {
    "METHOD_ADDED": "method added: sent by {senders}",
    "METHOD_REMOVED": "method removed: no longer sent by {senders}",
    "NOTIFICATION_ADDED": "notification added: sent by {senders}",
    "NOTIFICATION_REMOVED": "notification removed: no longer sent by {senders}",
    "METHOD_MOVED_INTO_RESULT": "asked inside a result, no longer a request of its own",
    "METHOD_MOVED_OUT_OF_RESULT": "a request of its own, no longer asked inside a result",
    "METHOD_RENAMED": "renamed from {old}",
    "NOTIFICATION_RENAMED": "renamed from {old}",
    "PARAMS_MADE_REQUIRED": "params are required, were optional",
    "PARAMS_MADE_OPTIONAL": "params are optional, were required",
    "CAPABILITY_CHANGED": "depends on the capability {new}, depended on {old}",
    "FIELD_ADDED_REQUIRED": "required field added: {new}",
    "FIELD_ADDED_OPTIONAL": "optional field added: {new}",
    "FIELD_REMOVED_REQUIRED": "required field removed: {old}",
    "FIELD_REMOVED_OPTIONAL": "optional field removed: {old}",
    "FIELD_RENAMED": "field renamed from {old}",
    "FIELD_MADE_REQUIRED": "field is required, was optional",
    "FIELD_MADE_OPTIONAL": "field is optional, was required",
    "FIELD_TYPE_NARROWED": "type narrowed: {old} -> {new}",
    "FIELD_TYPE_WIDENED": "type widened: {old} -> {new}",
    "FIELD_TYPE_CHANGED": "type changed: {old} -> {new}",
    "FIELD_BOUND_TIGHTENED": "bound tightened: {old} -> {new}",
    "FIELD_BOUND_LOOSENED": "bound loosened: {old} -> {new}",
    "FIELD_PATTERN_CHANGED": "{old} -> {new}",
    "VARIANT_ADDED": "can also be {new}",
    "VARIANT_REMOVED": "can no longer be {old}",
    "OBJECT_OPENED": "any other member is allowed",
    "OBJECT_CLOSED": "other members are no longer free",
    "VALUE_ADDED": "value added: {new}",
    "VALUE_REMOVED": "value removed: {old}",
    "VALUE_RENAMED": "value renamed: {old} -> {new}",
    "TYPE_RENAMED": "type renamed from {old}",
    "TYPE_NAMED": "a type of its own, was part of another",
    "TYPE_INLINED": "part of another type, was one of its own",
    "ERROR_CODE_ADDED": "error code added: {new}",
    "ERROR_CODE_REMOVED": "error code removed: {old}",
    "ERROR_CODE_CHANGED": "error code changed: {old} -> {new}",
    "LIFECYCLE_CHANGED": "lifecycle changed: {old} -> {new}",
    "BATCHING_ADDED": "several messages may come as one array",
    "BATCHING_REMOVED": "several messages may no longer come as one array",
    "TRANSPORT_ADDED": "transport added",
    "TRANSPORT_REMOVED": "transport removed",
    "TRANSPORT_CHANGED": "transport changed: {old} -> {new}",
    "HEADER_ADDED": "header added: {new}",
    "HEADER_REMOVED": "header removed: {old}",
    "HEADER_RENAMED": "header renamed: {old} -> {new}",
    "STATUS_CHANGED": "status changed: {old} -> {new}",
    "META_KEY_ADDED": "key of _meta added: {new}",
    "META_KEY_REMOVED": "key of _meta removed: {old}",
    "META_KEY_RENAMED": "key of _meta renamed: {old} -> {new}",
    "FACT_ADDED": "rule added: {new}",
    "FACT_REMOVED": "rule removed: {old}",
    "FACT_CHANGED": "rule changed: {old} -> {new}",
    "DEPRECATION_ADDED": "deprecated {new}",
    "DEPRECATION_REMOVED": "no longer deprecated {old}",
    "DEPRECATION_CHANGED": "deprecated {old} -> {new}",
}
"""Changes in words; those of other rules name their element and kind."""

_NOT_FOUND = "a receiver of the new revision answers -32601 (method not found)"
_UNKNOWN_FIELD = "receivers ignore members that they do not know"
_NAMES = "names of types are not on the wire; generated code has them"

_ROWS: tuple[tuple[str, str, Kind, Affects, Severity, str, str], ...] = (
    (
        *("METHOD_ADDED", "method", "added", "nobody", "compatible", "METHOD_REMOVED"),
        "a sender asks for it only where the capability is declared",
    ),
    ("METHOD_REMOVED", "method", "removed", "sender", "breaking", "METHOD_ADDED", _NOT_FOUND),
    ("METHOD_RENAMED", "method", "renamed", "both", "breaking", "METHOD_RENAMED", _NOT_FOUND),
    (
        *("METHOD_MOVED_INTO_RESULT", "method", "changed", "both", "breaking"),
        "METHOD_MOVED_OUT_OF_RESULT",
        "it comes inside a result now, and a retry of the request answers it",
    ),
    (
        *("METHOD_MOVED_OUT_OF_RESULT", "method", "changed", "both", "breaking"),
        "METHOD_MOVED_INTO_RESULT",
        "it is a message of its own, which was part of a result before",
    ),
    (
        *("NOTIFICATION_ADDED", "notification", "added", "nobody", "compatible"),
        "NOTIFICATION_REMOVED",
        "receivers ignore notifications that they do not know",
    ),
    (
        *("NOTIFICATION_REMOVED", "notification", "removed", "both", "breaking"),
        "NOTIFICATION_ADDED",
        "a receiver that waits for it gets nothing, and what a sender still sends is ignored",
    ),
    (
        *("NOTIFICATION_RENAMED", "notification", "renamed", "both", "breaking"),
        "NOTIFICATION_RENAMED",
        "the new name is ignored by old receivers, the old one by new receivers",
    ),
    (
        *("PARAMS_ADDED", "params", "added", "nobody", "compatible", "PARAMS_REMOVED"),
        _UNKNOWN_FIELD,
    ),
    (
        *("PARAMS_REMOVED", "params", "removed", "sender", "warning", "PARAMS_ADDED"),
        "what a sender still puts there has no effect",
    ),
    (
        *("PARAMS_MADE_REQUIRED", "params", "tightened", "sender", "breaking"),
        "PARAMS_MADE_OPTIONAL",
        "a message without params is refused",
    ),
    (
        *("PARAMS_MADE_OPTIONAL", "params", "loosened", "receiver", "breaking"),
        "PARAMS_MADE_REQUIRED",
        "a message may come without the params that a receiver takes for granted",
    ),
    (
        *("CAPABILITY_CHANGED", "capability", "changed", "both", "breaking", "CAPABILITY_CHANGED"),
        "a peer that declares the old capability is not asked",
    ),
    (
        *("FIELD_ADDED_REQUIRED", "field", "added", "sender", "breaking", "FIELD_REMOVED_REQUIRED"),
        "a message without it is refused",
    ),
    (
        *("FIELD_ADDED_OPTIONAL", "field", "added", "nobody", "compatible"),
        "FIELD_REMOVED_OPTIONAL",
        _UNKNOWN_FIELD,
    ),
    (
        *("FIELD_REMOVED_REQUIRED", "field", "removed", "receiver", "breaking"),
        "FIELD_ADDED_REQUIRED",
        "a receiver takes it for granted",
    ),
    (
        *("FIELD_REMOVED_OPTIONAL", "field", "removed", "sender", "warning"),
        "FIELD_ADDED_OPTIONAL",
        "what a sender still puts there has no effect",
    ),
    (
        *("FIELD_RENAMED", "field", "renamed", "both", "breaking", "FIELD_RENAMED"),
        "the value is not found under the other name",
    ),
    (
        *("FIELD_MADE_REQUIRED", "field", "tightened", "sender", "breaking"),
        "FIELD_MADE_OPTIONAL",
        "a message without it is refused",
    ),
    (
        *("FIELD_MADE_OPTIONAL", "field", "loosened", "receiver", "breaking"),
        "FIELD_MADE_REQUIRED",
        "a receiver takes it for granted",
    ),
    (
        *("FIELD_TYPE_NARROWED", "field", "tightened", "sender", "breaking", "FIELD_TYPE_WIDENED"),
        "some values that a sender may send are refused",
    ),
    (
        *("FIELD_TYPE_WIDENED", "field", "loosened", "receiver", "breaking", "FIELD_TYPE_NARROWED"),
        "values come that a receiver does not read",
    ),
    (
        *("FIELD_TYPE_CHANGED", "field", "changed", "both", "breaking", "FIELD_TYPE_CHANGED"),
        "each side refuses values of the other revision",
    ),
    (
        *("FIELD_BOUND_TIGHTENED", "field", "tightened", "sender", "breaking"),
        "FIELD_BOUND_LOOSENED",
        "values outside the new bound are refused",
    ),
    (
        *("FIELD_BOUND_LOOSENED", "field", "loosened", "receiver", "warning"),
        "FIELD_BOUND_TIGHTENED",
        "values outside the old bound come, which most receivers can read",
    ),
    (
        *("FIELD_PATTERN_CHANGED", "field", "changed", "both", "breaking", "FIELD_PATTERN_CHANGED"),
        "values of one pattern need not match the other",
    ),
    (
        *("VARIANT_ADDED", "type", "loosened", "receiver", "breaking", "VARIANT_REMOVED"),
        "an object comes that a receiver does not know",
    ),
    (
        *("VARIANT_REMOVED", "type", "tightened", "sender", "breaking", "VARIANT_ADDED"),
        "an object that a sender may send is refused",
    ),
    (
        *("OBJECT_OPENED", "type", "loosened", "receiver", "warning", "OBJECT_CLOSED"),
        "members come that were not described before",
    ),
    (
        *("OBJECT_CLOSED", "type", "tightened", "sender", "breaking", "OBJECT_OPENED"),
        "members are refused, or checked, that were free before",
    ),
    (
        *("VALUE_ADDED", "value", "added", "receiver", "breaking", "VALUE_REMOVED"),
        "a value comes that a receiver does not know",
    ),
    (
        *("VALUE_REMOVED", "value", "removed", "sender", "breaking", "VALUE_ADDED"),
        "a value that a sender may send is refused",
    ),
    (
        *("VALUE_RENAMED", "value", "renamed", "both", "breaking", "VALUE_RENAMED"),
        "each side refuses the value of the other revision",
    ),
    ("TYPE_ADDED", "type", "added", "nobody", "compatible", "TYPE_REMOVED", _NAMES),
    ("TYPE_REMOVED", "type", "removed", "nobody", "compatible", "TYPE_ADDED", _NAMES),
    ("TYPE_RENAMED", "type", "renamed", "nobody", "compatible", "TYPE_RENAMED", _NAMES),
    ("TYPE_NAMED", "type name", "added", "nobody", "compatible", "TYPE_INLINED", _NAMES),
    ("TYPE_INLINED", "type name", "removed", "nobody", "compatible", "TYPE_NAMED", _NAMES),
    (
        *("ERROR_CODE_ADDED", "error code", "added", "nobody", "compatible", "ERROR_CODE_REMOVED"),
        "receivers treat codes that they do not know as any error",
    ),
    (
        *("ERROR_CODE_REMOVED", "error code", "removed", "receiver", "warning", "ERROR_CODE_ADDED"),
        "a receiver that looks for the code does not find it any more",
    ),
    (
        *("ERROR_CODE_CHANGED", "error code", "changed", "both", "breaking", "ERROR_CODE_CHANGED"),
        "a receiver that looks for the old code misses the condition",
    ),
    (
        *("LIFECYCLE_CHANGED", "fact", "changed", "both", "breaking", "LIFECYCLE_CHANGED"),
        "a connection begins in another way",
    ),
    (
        *("BATCHING_ADDED", "fact", "loosened", "receiver", "breaking", "BATCHING_REMOVED"),
        "several messages may come as one array",
    ),
    (
        *("BATCHING_REMOVED", "fact", "tightened", "sender", "breaking", "BATCHING_ADDED"),
        "an array of messages is refused",
    ),
    (
        *("TRANSPORT_ADDED", "fact", "added", "nobody", "compatible", "TRANSPORT_REMOVED"),
        "the other transports stay",
    ),
    (
        *("TRANSPORT_REMOVED", "fact", "removed", "both", "breaking", "TRANSPORT_ADDED"),
        "peers of the new revision do not offer it",
    ),
    (
        *("TRANSPORT_CHANGED", "fact", "changed", "both", "breaking", "TRANSPORT_CHANGED"),
        "the same transport works by other rules",
    ),
    (
        *("HEADER_ADDED", "fact", "added", "sender", "breaking", "HEADER_REMOVED"),
        "a request without it may be refused",
    ),
    (
        *("HEADER_REMOVED", "fact", "removed", "receiver", "breaking", "HEADER_ADDED"),
        "a receiver that reads it finds nothing",
    ),
    (
        *("HEADER_RENAMED", "fact", "renamed", "both", "breaking", "HEADER_RENAMED"),
        "the header is not found under the other name",
    ),
    (
        *("STATUS_CHANGED", "fact", "changed", "both", "warning", "STATUS_CHANGED"),
        "a condition is answered with another HTTP status",
    ),
    (
        *("META_KEY_ADDED", "fact", "added", "nobody", "compatible", "META_KEY_REMOVED"),
        "receivers ignore keys of _meta that they do not know",
    ),
    (
        *("META_KEY_REMOVED", "fact", "removed", "receiver", "warning", "META_KEY_ADDED"),
        "a receiver that reads the key finds nothing",
    ),
    (
        *("META_KEY_RENAMED", "fact", "renamed", "both", "breaking", "META_KEY_RENAMED"),
        "the value is not found under the other key",
    ),
    (
        *("DEPRECATION_ADDED", "deprecation", "added", "both", "warning", "DEPRECATION_REMOVED"),
        "it still works, and a later revision may remove it",
    ),
    (
        *("DEPRECATION_REMOVED", "deprecation", "removed", "both", "warning", "DEPRECATION_ADDED"),
        "it is here to stay, or gone already",
    ),
    (
        *("DEPRECATION_CHANGED", "deprecation", "changed", "both", "warning"),
        "DEPRECATION_CHANGED",
        "its removal or its replacement is another",
    ),
    (
        *("FACT_ADDED", "fact", "added", "both", "warning", "FACT_REMOVED"),
        "a rule that only the pages state is new",
    ),
    (
        *("FACT_REMOVED", "fact", "removed", "both", "warning", "FACT_ADDED"),
        "a rule that only the pages state is gone",
    ),
    (
        *("FACT_CHANGED", "fact", "changed", "both", "warning", "FACT_CHANGED"),
        "a rule that only the pages state is another",
    ),
)

RULES: Mapping[str, Rule] = {row[0]: Rule(*row) for row in _ROWS}
"""All rules by id, in the order of reports."""

_BY_NAME: Mapping[str, Severity] = {severity: severity for severity in SEVERITIES}
"""The severities as settings spell them."""


def severities(settings: Sequence[str]) -> Mapping[str, Severity]:
    """The severity of every rule, by id.

    Args:
        settings: `RULE=SEVERITY` each; RULE is an id, a category such as `FIELD`, or `ALL`. Later
            ones win.

    Raises:
        UsageError: A setting has another form, or names no rule or severity.
    """
    chosen: dict[str, Severity] = {rule.id: rule.severity for rule in RULES.values()}
    for setting in settings:
        name, _, value = setting.partition("=")
        severity = _BY_NAME.get(value.strip().lower())
        name = name.strip().upper()
        ids = [rule.id for rule in RULES.values() if name in (rule.id, rule.category, "ALL")]
        if severity is None or not ids:
            expected = f"RULE=SEVERITY, with a rule of mcpgen diff --rules and {_severity_list()}"
            raise UsageError(f"expected --severity {expected}, got {format_value(setting)}")
        for rule in ids:
            chosen[rule] = severity
    return chosen


def _severity_list() -> str:
    return f"{', '.join(SEVERITIES[:-1])} or {SEVERITIES[-1]}"
