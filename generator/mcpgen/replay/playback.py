"""The recorded answer to a request: found by method and params, in any order or in sequence.

A scene answers a request if it has the same method and params. The params are compared by value,
then by shape (see `matching`). Two parts of them do not count: `_meta`, and the answers in a retry,
of which only the questions that they answer have to be the same.

    in any order    the first scene that was not played yet; if all were, the last one again
    in sequence     the next scene, and no other
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Protocol

from mcpgen.errors import format_value
from mcpgen.json_types import Json, Node, is_object
from mcpgen.model.schema_queries import META, canonical
from mcpgen.replay import matching
from mcpgen.replay.matching import ABSENT, Difference, Matcher, Rule, Subject
from mcpgen.replay.recording import Message
from mcpgen.replay.scenes import Scene

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602

_RESPONSES = "inputResponses"
_SHOWN_DIFFERENCES = 5
_SHOWN_VALUE = 500
"""Limit of the characters of a value in an error."""


@dataclass(frozen=True)
class Miss:
    """A request that a trace has no answer for.

    Attributes:
        code: The code of the JSON-RPC error.
        text: What the trace has instead, in one line, without the method.
        data: The nearest recorded request, with its line and the differences; `None` if there is
            none.
    """

    code: int
    text: str
    data: Node | None


class Playback(Protocol):
    """The scenes of one session that is being served."""

    @property
    def missed(self) -> Sequence[str]:
        """Texts of the requests without a recorded answer, in order."""
        ...

    @property
    def unplayed(self) -> Sequence[Scene]:
        """The scenes that no request asked for."""
        ...

    def take(self, method: str, params: Node) -> Scene | Miss:
        """The scene that answers a request."""
        ...


@dataclass
class UnorderedPlayback:
    """Scenes that are asked for in any order; see `Playback`.

    Attributes:
        scenes: The scenes.
        rules: Rules of the user for what is compared by shape.
    """

    scenes: Sequence[Scene]
    rules: Sequence[Rule] = ()
    missed: list[str] = field(default_factory=list[str])
    _played: set[int] = field(default_factory=set[int])

    @property
    def unplayed(self) -> list[Scene]:
        """The scenes that no request asked for."""
        return [each for index, each in enumerate(self.scenes) if index not in self._played]

    def take(self, method: str, params: Node) -> Scene | Miss:
        """The scene that answers a request."""
        same = [index for index, each in enumerate(self.scenes) if each.request.method == method]
        for is_same in _comparisons(method, params, self.rules):
            equal = [index for index in same if is_same(self.scenes[index].request)]
            if equal:
                fresh = (index for index in equal if index not in self._played)
                index = next(fresh, equal[-1])
                self._played.add(index)
                return self.scenes[index]
        miss = _miss(method, params, [self.scenes[index] for index in same], self.rules)
        self.missed.append(f"{method}: {miss.text}")
        return miss


@dataclass
class SequentialPlayback:
    """Scenes that are asked for in their order; see `Playback`.

    Attributes:
        scenes: The scenes.
        rules: Rules of the user for what is compared by shape.
    """

    scenes: Sequence[Scene]
    rules: Sequence[Rule] = ()
    missed: list[str] = field(default_factory=list[str])
    _next: int = 0

    @property
    def unplayed(self) -> Sequence[Scene]:
        """The scenes that no request asked for."""
        return self.scenes[self._next :]

    def take(self, method: str, params: Node) -> Scene | Miss:
        """The next scene, if it answers a request."""
        if self._next < len(self.scenes):
            scene = self.scenes[self._next]
            request = scene.request
            comparisons = _comparisons(method, params, self.rules)
            if request.method == method and any(is_same(request) for is_same in comparisons):
                self._next += 1
                return scene
            miss = _out_of_turn(method, params, scene, self.rules)
        else:
            text = f"the trace is at its end, after {len(self.scenes)} requests"
            miss = Miss(INVALID_PARAMS, text, None)
        self.missed.append(f"{method}: {miss.text}")
        return miss


def _comparisons(
    method: str, params: Node, rules: Sequence[Rule]
) -> tuple[Callable[[Message], bool], ...]:
    """Whether a recorded request is the same as a request, from strict to loose."""
    whole, plain = canonical(_without_meta(params)), canonical(_comparable(params))
    matcher, subject = Matcher(rules), Subject.of({"method": method, "params": params})

    def has_shape(recorded: Message) -> bool:
        return matcher.fits(
            _call(method, recorded.params), _call(method, params), subject, masked=recorded.masked
        )

    return (
        lambda recorded: canonical(_without_meta(recorded.params)) == whole,
        lambda recorded: canonical(_comparable(recorded.params)) == plain,
        has_shape,
    )


def _without_meta(params: Node) -> Node:
    return {name: value for name, value in params.items() if name != META}


def _comparable(params: Node) -> Node:
    """The params that are compared: of answers, only the questions."""
    plain = _without_meta(params)
    answers: Json = plain.get(_RESPONSES)
    return {**plain, _RESPONSES: sorted(answers)} if is_object(answers) else plain


def _call(method: str, params: Node) -> Node:
    return {"method": method, "params": _comparable(params)}


def _miss(method: str, params: Node, scenes: Sequence[Scene], rules: Sequence[Rule]) -> Miss:
    recorded = [_comparable(each.request.params) for each in scenes]
    index = matching.nearest(recorded, _comparable(params))
    if index is None:
        return Miss(METHOD_NOT_FOUND, "the trace has no such request", None)
    request = scenes[index].request
    different = _differences(method, params, request, rules)
    text = (
        f"the trace has no request with these params; the nearest one, in line"
        f" {request.line}, has {_text_of(different)}"
    )
    return Miss(INVALID_PARAMS, text, _data(request, different))


def _out_of_turn(method: str, params: Node, scene: Scene, rules: Sequence[Rule]) -> Miss:
    request = scene.request
    if request.method != method:
        text = f"expected {request.method} next, as in line {request.line}"
        return Miss(INVALID_PARAMS, text, _data(request, ()))
    different = _differences(method, params, request, rules)
    text = f"expected the request of line {request.line} next, which has {_text_of(different)}"
    return Miss(INVALID_PARAMS, text, _data(request, different))


def _differences(
    method: str, params: Node, request: Message, rules: Sequence[Rule]
) -> list[Difference]:
    subject = Subject.of({"method": method, "params": params})
    return Matcher(rules).differences(
        _call(method, request.params), _call(method, params), subject, masked=request.masked
    )


def _text_of(differences: Sequence[Difference]) -> str:
    first, *others = differences
    more = f", and {len(others)} more" if others else ""
    recorded, came = (_value_text(each) for each in (first.expected, first.actual))
    return f"{recorded} at {first.pointer}, not {came}{more}"


def _value_text(value: Json) -> str:
    return "nothing" if value is ABSENT else format_value(value)


def _data(request: Message, differences: Sequence[Difference]) -> Node:
    """The nearest request and the differences from it, for programs."""
    rows = takewhile(lambda row: row[0] < _SHOWN_DIFFERENCES, enumerate(differences))
    return {
        "nearest": {
            "line": request.line,
            "method": request.method,
            "params": _cut(_without_meta(request.params)),
        },
        "differences": [
            {
                "pointer": each.pointer,
                **({} if each.expected is ABSENT else {"recorded": _cut(each.expected)}),
                **({} if each.actual is ABSENT else {"received": _cut(each.actual)}),
            }
            for _, each in rows
        ],
    }


def _cut(value: Json) -> Json:
    """A value, or the beginning of its JSON if that is long."""
    text = canonical(value)
    return value if len(text) <= _SHOWN_VALUE else f"{text[:_SHOWN_VALUE]}..."
