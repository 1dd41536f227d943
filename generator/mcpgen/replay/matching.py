"""Compares a message with the recorded one: by value, or by shape where values always differ.

Compared by shape:

    ids            of requests, tasks, elicitations and subscriptions, and UUIDs in any text
    cursors        of pages, and the state of a request that a server asks input for
    times          with a date and a time of day, or a time of day with seconds, in any text
    tokens         of progress
    masked values  `***` in a recorded message stands for any text
    rules          whatever a rules file names

Ids, cursors and states that differ from the recorded ones are kept as `Bindings`: the messages that
are sent later have the values of this time. An id has to stay the same within a session.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import Enum
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from mcpgen.errors import SettingsError, UsageError, format_value
from mcpgen.input_files import json_pointer
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model.schema_queries import canonical

Way: TypeAlias = Literal["value", "shape", "ignore", "unordered", "pattern", "number", "keys"]
"""How a value is compared; by `keys` an object whose members may have other names each time."""

WAYS: tuple[Way, ...] = get_args(Way)
MASK = "***"
INPUT_RESPONSES = "inputResponses"
"""The member of params that answers requests for input, by the names that these had."""

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_CLOCK = r"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?[AaPp][Mm])?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_TIME = rf"(?:\b\d{{4}}-\d\d-\d\d[T ]|\b){_CLOCK}{_ZONE}(?!\d)"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? "
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_LONG_TIME = rf"{_DAY}(?:\d{{1,2}} {_MONTH}|{_MONTH} +\d{{1,2}})(?: \d{{4}})? {_TIME}(?: \d{{4}})?"
_NAMELESS = re.compile(rf"(?P<id>\b{_UUID}\b)|(?P<time>{_LONG_TIME}|{_TIME})")
"""Ids and times in a text."""


class Absent(Enum):
    """The type of `ABSENT`, which stands for a value that is not there."""

    ABSENT = "nothing"


ABSENT = Absent.ABSENT

Steps: TypeAlias = tuple[str | int, ...]
"""The steps from a message to a place in it: names of members and indices."""


@dataclass(frozen=True)
class Subject:
    """The request that compared messages are about, by which rules choose.

    Attributes:
        method: The method of the request or notification.
        name: The tool, prompt or resource that it names; empty for none.
    """

    method: str = ""
    name: str = ""

    @classmethod
    def of(cls, request: Json) -> Subject:
        """The subject of a request or notification."""
        if not is_object(request):
            return cls()
        params: Json = request.get("params")
        named: list[Json] = [params.get(key) for key in _NAMES] if is_object(params) else []
        name = next((each for each in named if isinstance(each, str)), "")
        return cls(str(request.get("method", "")), name)


_NAMES = ("name", "uri")


@dataclass(frozen=True)
class Rule:
    """How values at a place are compared.

    Attributes:
        pointer: The place: a JSON pointer in the message, with `*` for one step and `**` for any
            number of them.
        way: How values there are compared.
        method: The methods whose messages have the rule, with `*` for any characters.
        name: The tools, prompts or resources, likewise.
        pattern: The regular expression that the whole text has to match, for `pattern`.
        tolerance: The greatest difference of numbers, for `number`.
        opaque: Whether the value is an id that must stay the same in a session (`id`), one that
            may be another one each time (`cursor`), or neither.
    """

    pointer: str
    way: Way
    method: str = "*"
    name: str = "*"
    pattern: str = ""
    tolerance: float = 0.0
    opaque: Literal["id", "cursor", ""] = ""

    @cached_property
    def steps(self) -> tuple[str, ...]:
        """The steps of the pointer."""
        return tuple(
            step.replace("~1", "/").replace("~0", "~") for step in self.pointer.split("/")[1:]
        )

    def is_about(self, subject: Subject) -> bool:
        """Whether the rule is for messages about a request."""
        return fnmatchcase(subject.method, self.method) and fnmatchcase(subject.name, self.name)


def leads_to(steps: Sequence[str], path: Steps) -> bool:
    """Whether the steps of a pointer, with `*` and `**`, lead to a place."""
    if not steps:
        return not path
    if steps[0] == "**":
        return leads_to(steps[1:], path) or (bool(path) and leads_to(steps, path[1:]))
    return bool(path) and fnmatchcase(str(path[0]), steps[0]) and leads_to(steps[1:], path[1:])


def _opaque(kind: Literal["id", "cursor"], *pointers: str) -> tuple[Rule, ...]:
    return tuple(Rule(pointer, "shape", opaque=kind) for pointer in pointers)


PROTOCOL_RULES: tuple[Rule, ...] = (
    Rule("/id", "ignore"),
    Rule("/params/requestId", "ignore"),
    Rule("/params/progressToken", "ignore"),
    Rule("/params/_meta/progressToken", "ignore"),
    Rule("/params/_meta/*~1subscriptionId", "ignore"),
    Rule("/result/inputRequests", "keys"),
    *_opaque("cursor", "/result/nextCursor", "/params/cursor"),
    *_opaque("cursor", "/result/requestState", "/params/requestState"),
    *_opaque("id", "/result/taskId", "/result/task/taskId", "/result/tasks/*/taskId"),
    *_opaque("id", "/params/taskId", "/*/_meta/*~1related-task/taskId"),
    *_opaque("id", "/params/elicitationId", "/error/data/elicitations/*/elicitationId"),
)
"""The places where the protocol has values that a peer chooses."""


@dataclass(frozen=True)
class Difference:
    """A place where a message is not as it was recorded.

    Attributes:
        path: The steps from the message to the place.
        expected: The recorded value; `ABSENT` if there was none.
        actual: The value of this time; `ABSENT` if there is none.
        text: The difference in words.
    """

    path: Steps
    expected: Json | Absent
    actual: Json | Absent
    text: str

    @property
    def pointer(self) -> str:
        """The place as a JSON pointer; empty for the whole message."""
        return json_pointer(self.path)


@dataclass
class Bindings:
    """Values of this time, by the recorded values that they stand for.

    Attributes:
        values: Texts and numbers of this time by the recorded ones, as canonical JSON.
        names: Names of requests for input by the recorded ones.
    """

    values: dict[str, Json] = field(default_factory=dict[str, Json])
    names: dict[str, str] = field(default_factory=dict[str, str])

    def bind(self, recorded: Json, actual: Json) -> None:
        """Let a value of this time stand for a recorded one."""
        self.values[canonical(recorded)] = actual

    def of(self, recorded: Json) -> Json:
        """The value of this time; the recorded one if nothing stands for it."""
        return self.values.get(canonical(recorded), recorded)

    def apply(self, value: Json) -> Json:
        """A recorded value with all texts that are bound, and UUIDs in them, as of this time."""
        if is_object(value):
            members = {name: self.apply(member) for name, member in value.items()}
            answers: Json = members.get(INPUT_RESPONSES)
            if is_object(answers):
                renamed = {self.names.get(name, name): each for name, each in answers.items()}
                members[INPUT_RESPONSES] = renamed
            return members
        if is_array(value):
            return [self.apply(item) for item in value]
        if isinstance(value, str):
            whole = self.of(value)
            return whole if whole != value else _NAMELESS.sub(self._text_of, value)
        return value

    def _text_of(self, match: re.Match[str]) -> str:
        return str(self.of(match["id"])) if match["id"] else match[0]


class Matcher:
    """Compares messages with recorded ones.

    Args:
        rules: Rules of a user, the last of which counts before all of the protocol.
        bindings: Keeps the ids, cursors and states of this time.
    """

    def __init__(self, rules: Sequence[Rule] = (), bindings: Bindings | None = None) -> None:
        self._rules = tuple(rules)
        self.bindings = Bindings() if bindings is None else bindings

    def differences(
        self, expected: Json, actual: Json, subject: Subject, *, masked: bool
    ) -> list[Difference]:
        """The places where a message is not as it was recorded.

        Args:
            expected: The recorded message.
            actual: The message of this time.
            subject: The request that both are about.
            masked: Whether `***` in the recorded message stands for any text.
        """
        rules = [rule for rule in (*PROTOCOL_RULES, *self._rules)[::-1] if rule.is_about(subject)]
        return list(_Comparison(rules, self.bindings, masked).compare(expected, actual, ()))

    def fits(self, expected: Json, actual: Json, subject: Subject, *, masked: bool) -> bool:
        """Whether a message is as it was recorded; binds nothing."""
        trial = Matcher(
            self._rules, Bindings(dict(self.bindings.values), dict(self.bindings.names))
        )
        return not trial.differences(expected, actual, subject, masked=masked)


class _Comparison:
    """One comparison of two messages.

    Args:
        rules: The rules that are about the messages; the first one for a place counts.
        bindings: Keeps the ids, cursors and states of this time.
        masked: Whether `***` in the recorded message stands for any text.
    """

    def __init__(self, rules: Sequence[Rule], bindings: Bindings, masked: bool) -> None:
        self._rules = rules
        self._bindings = bindings
        self._masked = masked

    def _rule_at(self, path: Steps) -> Rule | None:
        """The rule for a place; `None` if values there are compared by value."""
        return next((rule for rule in self._rules if leads_to(rule.steps, path)), None)

    def compare(self, expected: Json, actual: Json, path: Steps) -> Iterator[Difference]:
        rule = self._rule_at(path)
        match rule.way if rule is not None else "value":
            case "ignore":
                pass
            case "shape":
                yield from self._by_shape(expected, actual, path, rule)
            case "pattern":
                assert rule is not None
                if not isinstance(actual, str) or not re.fullmatch(rule.pattern, actual):
                    text = f"expected a text of the pattern {rule.pattern}"
                    yield Difference(path, expected, actual, text)
            case "number":
                assert rule is not None
                yield from self._by_number(expected, actual, path, rule.tolerance)
            case "keys" if is_object(expected) and is_object(actual):
                yield from self._by_order(expected, actual, path)
            case "unordered" if is_array(expected) and is_array(actual):
                yield from self._compare_unordered(expected, actual, path)
            case _:
                yield from self._by_value(expected, actual, path)

    def _by_value(self, expected: Json, actual: Json, path: Steps) -> Iterator[Difference]:
        if self._masked and expected == MASK and actual is not None:
            return
        if is_object(expected) and is_object(actual):
            yield from self._members(expected, actual, path)
        elif is_array(expected) and is_array(actual):
            yield from self._items(expected, actual, path)
        elif isinstance(expected, str) and isinstance(actual, str):
            if not self._same_text(expected, actual):
                text = "another text" if expected != actual else "another id stood for this one"
                yield Difference(path, expected, actual, text)
        elif _kind(expected) != _kind(actual):
            text = f"expected {_kind(expected)}, got {_kind(actual)}"
            yield Difference(path, expected, actual, text)
        elif expected != actual:
            yield Difference(path, expected, actual, "another value")

    def _members(self, expected: Node, actual: Node, path: Steps) -> Iterator[Difference]:
        for name, member in expected.items():
            if name in actual:
                yield from self.compare(member, actual[name], (*path, name))
            elif not self._is_ignored((*path, name)):
                yield Difference((*path, name), member, ABSENT, "the member is gone")
        for name, member in actual.items():
            if name not in expected and not self._is_ignored((*path, name)):
                yield Difference((*path, name), ABSENT, member, "a new member")

    def _by_order(self, expected: Node, actual: Node, path: Steps) -> Iterator[Difference]:
        """The differences of members, which are paired by their order, and their names bound."""
        if expected.keys() == actual.keys() or len(expected) != len(actual):
            yield from self._members(expected, actual, path)
            return
        for (name, member), (other, value) in zip(expected.items(), actual.items(), strict=True):
            self._bindings.names[name] = other
            yield from self.compare(member, value, (*path, other))

    def _is_ignored(self, path: Steps) -> bool:
        rule = self._rule_at(path)
        return rule is not None and rule.way == "ignore"

    def _items(
        self, expected: Sequence[Json], actual: Sequence[Json], path: Steps
    ) -> Iterator[Difference]:
        key = _key_of(expected, actual)
        if key:
            yield from self._named_items(expected, actual, path, key)
            return
        for index, (one, other) in enumerate(zip(expected, actual, strict=False)):
            yield from self.compare(one, other, (*path, index))
        yield from _rest(expected, actual, path)

    def _named_items(
        self, expected: Sequence[Node], actual: Sequence[Node], path: Steps, key: str
    ) -> Iterator[Difference]:
        """The differences of lists whose items have names, item by item."""
        places = {item[key]: index for index, item in enumerate(actual)}
        names = [item[key] for item in expected]
        for index, item in enumerate(expected):
            at = places.get(item[key])
            if at is None:
                text = f"{format_value(item[key])} is gone"
                yield Difference((*path, index), item, ABSENT, text)
            else:
                yield from self.compare(item, actual[at], (*path, at))
        for name, at in places.items():
            if name not in names:
                yield Difference((*path, at), ABSENT, actual[at], f"{format_value(name)} is new")
        common = [name for name in names if name in places]
        if sorted(common, key=places.__getitem__) != common:
            order = [item[key] for item in actual if item[key] in common]
            yield Difference(path, common, order, "another order")

    def _compare_unordered(
        self, expected: Sequence[Json], actual: Sequence[Json], path: Steps
    ) -> Iterator[Difference]:
        left = list(enumerate(actual))
        for index, item in enumerate(expected):
            same = next(
                (each for each in left if not [*self.compare(item, each[1], (*path, each[0]))]),
                None,
            )
            if same is None:
                yield Difference((*path, index), item, ABSENT, "no item is like this one")
            else:
                left.remove(same)
        for index, item in left:
            yield Difference((*path, index), ABSENT, item, "a new item")

    def _by_number(
        self, expected: Json, actual: Json, path: Steps, tolerance: float
    ) -> Iterator[Difference]:
        if _kind(actual) != "a number":
            yield Difference(path, expected, actual, "expected a number")
        elif _kind(expected) == "a number" and abs(expected - actual) > tolerance:
            text = f"differs by more than {tolerance:g}"
            yield Difference(path, expected, actual, text)

    def _by_shape(
        self, expected: Json, actual: Json, path: Steps, rule: Rule | None
    ) -> Iterator[Difference]:
        if rule is not None and rule.opaque:
            yield from self._opaque(expected, actual, path, rule)
        elif is_object(expected) and is_object(actual):
            for name, member in expected.items():
                if name in actual:
                    yield from self._by_shape(member, actual[name], (*path, name), None)
                else:
                    yield Difference((*path, name), member, ABSENT, "the member is gone")
            for name, member in actual.items():
                if name not in expected:
                    yield Difference((*path, name), ABSENT, member, "a new member")
        elif is_array(expected) and is_array(actual):
            for index, item in enumerate(actual):
                if expected and not any(_same_shape(each, item) for each in expected):
                    yield from self._by_shape(expected[0], item, (*path, index), None)
        elif _kind(expected) != _kind(actual):
            text = f"expected {_kind(expected)}, got {_kind(actual)}"
            yield Difference(path, expected, actual, text)

    def _opaque(
        self, expected: Json, actual: Json, path: Steps, rule: Rule
    ) -> Iterator[Difference]:
        if _kind(expected) != _kind(actual):
            text = f"expected {_kind(expected)}, got {_kind(actual)}"
            yield Difference(path, expected, actual, text)
        elif rule.opaque == "cursor":
            self._bindings.bind(expected, actual)
        elif not self._is_bound(expected, actual):
            text = f"expected {format_value(self._bindings.of(expected))}, as before"
            yield Difference(path, expected, actual, text)

    def _is_bound(self, expected: Json, actual: Json) -> bool:
        """Bind an id, unless another one stands for it; whether this one does."""
        bindings = self._bindings
        if canonical(expected) not in bindings.values:
            bindings.bind(expected, actual)
        return bool(bindings.of(expected) == actual)

    def _same_text(self, expected: str, actual: str) -> bool:
        if self._masked and MASK in expected:
            parts = (re.escape(_without_values(part)) for part in expected.split(MASK))
            return re.fullmatch(".*?".join(parts), _without_values(actual), re.DOTALL) is not None
        if expected != actual and _without_values(expected) != _without_values(actual):
            return False
        return all(map(self._is_bound, _ids_in(expected), _ids_in(actual)))


def _without_values(text: str) -> str:
    """A text with the names of kinds in place of ids and times."""
    return _NAMELESS.sub(lambda match: f"<{match.lastgroup}>", text)


def _ids_in(text: str) -> list[str]:
    return [match["id"] for match in _NAMELESS.finditer(text) if match["id"]]


def _rest(expected: Sequence[Json], actual: Sequence[Json], path: Steps) -> Iterator[Difference]:
    for index in range(len(actual), len(expected)):
        yield Difference((*path, index), expected[index], ABSENT, "the item is gone")
    for index in range(len(expected), len(actual)):
        yield Difference((*path, index), ABSENT, actual[index], "a new item")


_KEYS = ("name", "uri", "uriTemplate", "taskId")


def _key_of(expected: Sequence[Json], actual: Sequence[Json]) -> str:
    """The member that names the items of both lists; empty if they have no names."""
    named = (key for key in _KEYS if _are_named(expected, key) and _are_named(actual, key))
    return next(named, "")


def _are_named(items: Sequence[Json], key: str) -> bool:
    """Whether there are items, each with a name of its own."""
    names = [item[key] for item in items if is_object(item) and isinstance(item.get(key), str)]
    return bool(names) and len(names) == len(items) == len({*names})


def _kind(value: Json) -> str:
    """The JSON type of a value, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "an array"
        case _:
            return "an object"


def _same_shape(one: Json, other: Json) -> bool:
    if is_object(one) and is_object(other):
        return one.keys() == other.keys() and all(_same_shape(one[n], other[n]) for n in one)
    return _kind(one) == _kind(other)


def nearest(expected: Sequence[Json], actual: Json) -> int | None:
    """The index of the value that is most like another one; `None` if there are no values."""
    text = canonical(actual)
    ratios = [SequenceMatcher(None, canonical(each), text).ratio() for each in expected]
    return max(range(len(ratios)), key=ratios.__getitem__) if ratios else None


def read_rules(path: Path) -> tuple[Rule, ...]:
    """The rules in a file: tables `[[match]]` of TOML, each with `pointer` and `by`.

    Raises:
        UsageError: The file cannot be read.
        SettingsError: It is no TOML, or a table has unknown or missing members.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(str(path), "", "TOML", str(error)) from error
    rows: Json = document.get("match", [])
    if not is_array(rows) or document.keys() - {"match"}:
        raise SettingsError(str(path), "", "tables [[match]]", ", ".join(document))
    return tuple(_rule(row, f"/match/{index}", str(path)) for index, row in enumerate(rows))


_TEXTS: Mapping[str, str] = {"method": "*", "name": "*", "pattern": ""}


def _rule(row: Json, at: str, source: str) -> Rule:
    if not is_object(row):
        raise SettingsError(source, at, "a table", format_value(row))
    known = {"pointer", "by", "tolerance", "reason", *_TEXTS}
    for name in row.keys() - known:
        raise SettingsError(source, f"{at}/{name}", f"one of {', '.join(sorted(known))}", name)
    pointer, way = row.get("pointer"), row.get("by")
    if not isinstance(pointer, str) or not pointer.startswith("/"):
        raise SettingsError(source, f"{at}/pointer", "a JSON pointer", format_value(pointer))
    if way not in WAYS:
        raise SettingsError(source, f"{at}/by", f"one of {', '.join(WAYS)}", format_value(way))
    texts = {name: row.get(name, default) for name, default in _TEXTS.items()}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise SettingsError(source, f"{at}/{name}", "a text", format_value(text))
    tolerance = row.get("tolerance", 0.0)
    if _kind(tolerance) != "a number":
        raise SettingsError(source, f"{at}/tolerance", "a number", format_value(tolerance))
    try:
        re.compile(texts["pattern"])
    except re.error as error:
        raise SettingsError(source, f"{at}/pattern", "a pattern", str(error)) from error
    if (way == "pattern") != bool(texts["pattern"]):
        raise SettingsError(source, at, 'a pattern, and by = "pattern"', "one without the other")
    return Rule(pointer, way, texts["method"], texts["name"], texts["pattern"], float(tolerance))
