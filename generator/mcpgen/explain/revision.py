"""The meaning of messages in one revision, and whether the revision accepts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from typing import Any, Literal

from jsonschema import Draft202012Validator

from mcpgen import schema
from mcpgen.diff.alternatives import Array, Object
from mcpgen.diff.alternatives import Literal as Fixed
from mcpgen.diff.changes import OTHER
from mcpgen.diff.protocol import Protocol, load
from mcpgen.errors import format_value
from mcpgen.explain import violations
from mcpgen.explain.violations import Violation
from mcpgen.input_files import json_pointer
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model.methods import Method
from mcpgen.model.name import Role
from mcpgen.model.schema_queries import META, canonical
from mcpgen.schema import docs
from mcpgen.schema.nearest import features, known_document

Kind = Literal["request", "notification", "success response", "error response", "invalid message"]

_ENVELOPES: Mapping[Kind, tuple[str, ...]] = {
    "request": ("JSONRPCRequest",),
    "notification": ("JSONRPCNotification",),
    "success response": ("JSONRPCResultResponse", "JSONRPCResponse"),
    "error response": ("JSONRPCErrorResponse", "JSONRPCError"),
}
_RESERVED = range(-32099, -32019)
"""Codes that the specification reserves in revisions that say so."""
_CONDITIONS = (
    *("resource_not_found", "missing_capability", "header_mismatch"),
    *("unsupported_revision", "url_elicitation_required"),
)
"""Facts whose values are error codes."""
_RESULT_TYPE = "resultType"
_CODES: Mapping[int, str] = {
    -32700: "parse error",
    -32600: "invalid request",
    -32601: "method not found",
    -32602: "invalid params",
    -32603: "internal error",
}
"""The codes of JSON-RPC itself."""


@dataclass(frozen=True)
class Verdict:
    """The judgement of one revision on a message.

    Attributes:
        revision: The revision.
        type: The type that the message was checked against; empty if there is none.
        part: The member of the message that has the type; empty for the whole.
        senders: The roles that may send the message.
        violation: The violation; `None` if the message is accepted.
        ignored: Unknown members, which the revision ignores.
        page: Address of the page about the type; empty if unknown.
    """

    revision: str
    type: str
    part: str
    senders: tuple[Role, ...]
    violation: Violation | None
    ignored: tuple[str, ...] = ()
    page: str = ""

    @property
    def is_accepted(self) -> bool:
        """Whether the revision accepts the message."""
        return self.violation is None


def kind_of(message: Json) -> Kind:
    """The kind of a message."""
    if not is_object(message):
        return "invalid message"
    if isinstance(message.get("method"), str):
        return "request" if "id" in message else "notification"
    if "result" in message:
        return "success response"
    return "error response" if "error" in message else "invalid message"


@dataclass(frozen=True)
class Revision:
    """One revision, ready to judge messages."""

    protocol: Protocol

    @property
    def name(self) -> str:
        """The name of the revision, or the file that it was read from."""
        return self.protocol.name

    @property
    def version(self) -> str:
        """The name of the revision in messages and on the pages of the specification."""
        return self.protocol.normal.schema.revision

    @cached_property
    def definitions(self) -> Node:
        """The published types of the revision."""
        return dict(self.protocol.normal.schema.definitions)

    @cached_property
    def _methods(self) -> Mapping[str, tuple[Method, ...]]:
        by_name: dict[str, list[Method]] = {}
        for method in (*self.protocol.methods.all, *self.protocol.methods.inputs):
            by_name.setdefault(method.name, []).append(method)
        return {name: tuple(methods) for name, methods in by_name.items()}

    def methods(self, name: str, sender: Role | None = None) -> tuple[Method, ...]:
        """The methods of a name that one side sends; of both sides if `None`."""
        rows = self._methods.get(name, ())
        return tuple(method for method in rows if sender in (None, method.sender))

    def closest_method(self, name: str) -> str | None:
        """The method closest to a misspelt name; `None` for a method of another revision."""
        if name in _every_method():
            return None
        return next(iter(get_close_matches(name, self._methods, cutoff=0.7)), None)

    def schema_of(self, name: str) -> Node:
        """The schema of a type, with all types that it refers to."""
        return {"$ref": f"#/$defs/{name}", "$defs": self.definitions}

    def violation(self, name: str, value: Json) -> Violation | None:
        """The first violation in a value of a type; `None` if the value is valid."""
        if name not in self._validators:
            self._validators[name] = Draft202012Validator(self.schema_of(name))
        return violations.first(self._validators[name].iter_errors(value))

    @cached_property
    def _validators(self) -> dict[str, Any]:
        """Validators by type, made on demand."""
        return {}

    def envelope(self, kind: Kind) -> str:
        """The type of every message of a kind; empty if the schema has none."""
        names = (name for name in _ENVELOPES.get(kind, ()) if name in self.definitions)
        return next((name for name in names if "properties" in self.definitions[name]), "")

    def judge(self, message: Json, sender: Role | None = None, request: Json = None) -> Verdict:
        """The verdict of the revision on a message.

        Args:
            message: The message.
            sender: The role of the sender, if known.
            request: The request that a response answers, if known.
        """
        kind = kind_of(message)
        if is_array(message):
            return self._batch(message, sender)
        if kind == "invalid message" or not is_object(message):
            expected = "a request, a notification or a response"
            return Verdict(self.name, "", "", (), Violation((), expected, format_value(message)))
        envelope = self.envelope(kind)
        wrong = self.violation(envelope, message) if envelope else None
        if wrong is not None:
            verdict = self._content(kind, message, sender, request)
            return Verdict(
                self.name, verdict.type or envelope, "", verdict.senders, wrong, (), verdict.page
            )
        return self._content(kind, message, sender, request)

    def _batch(self, messages: Sequence[Json], sender: Role | None) -> Verdict:
        if not self.protocol.methods.batching:
            return Verdict(
                *(self.name, "", "", ()),
                Violation((), "one message: the revision has no batches", "an array"),
            )
        for index, message in enumerate(messages):
            verdict = self.judge(message, sender)
            if verdict.violation is not None:
                at = verdict.violation.below(index)
                return Verdict(self.name, verdict.type, "", verdict.senders, at, (), verdict.page)
        return Verdict(self.name, "JSONRPCBatchRequest", "", (), None)

    def _content(self, kind: Kind, message: Node, sender: Role | None, request: Json) -> Verdict:
        match kind:
            case "request" | "notification":
                return self._call(message, sender)
            case "success response":
                return self._result(message, sender, request)
            case _:
                name = self._error_type(message)
                wrong = self.violation(name, message) or self._wrong_code(message)
                return self._verdict(name, "", (sender,) if sender else (), wrong, message)

    def _call(self, message: Node, sender: Role | None) -> Verdict:
        name: str = message["method"]
        known = self.methods(name)
        rows = tuple(
            method for method in self.methods(name, sender) if method.kind == _word(message)
        )
        if not rows:
            return self._unknown_method(message, known, sender)
        method = rows[0]
        senders: tuple[Role, ...] = tuple(dict.fromkeys(each.sender for each in rows))
        wrong = self.violation(method.type, message)
        if all(each in self.protocol.methods.inputs for each in rows):
            expected = f"{method.name} inside a result that requires input"
            wrong = Violation((), expected, "a message of its own")
        return self._verdict(method.type, "", senders, wrong, message)

    def _unknown_method(
        self, message: Node, known: tuple[Method, ...], sender: Role | None
    ) -> Verdict:
        name = message["method"]
        if known and sender is not None and sender not in {method.sender for method in known}:
            expected = f"a method that the {sender} sends"
        elif known:
            expected = f"a {known[0].kind}"
        elif self.protocol.facts.method(name).extension:
            expected = "a method of the revision, not one of an extension"
        else:
            close = self.closest_method(name)
            expected = "a method of the revision" + (f", such as {close}" if close else "")
        wrong = Violation(("method",), expected, format_value(name), keyword="method")
        return Verdict(self.name, "", "", (), wrong)

    def _result(self, message: Node, sender: Role | None, request: Json) -> Verdict:
        method = request.get("method") if is_object(request) else None
        rows = self.methods(method, OTHER[sender] if sender else None) if method else ()
        rows = tuple(each for each in rows if each.result is not None)
        if method is not None and not rows:
            wrong = Violation((), "a response to a method of the revision", format_value(method))
            return Verdict(self.name, "", "", (), wrong)
        if not rows:
            return self._guess_result(message, sender)
        verdicts = [self._as_result(each, message) for each in rows]
        return next((each for each in verdicts if each.is_accepted), verdicts[0])

    def _as_result(self, method: Method, message: Node) -> Verdict:
        candidates = [
            (self.violation(name, message["result"]), name)
            for name in self._candidate_types(method.results, message["result"])
        ]
        senders: tuple[Role, ...] = (OTHER[method.sender],)
        if not candidates:
            return Verdict(self.name, "", "", senders, None)
        wrong, name = min(
            candidates, key=lambda row: (row[0] is not None, -self._known_members(row[1], message))
        )
        wrong = None if wrong is None else wrong.below("result")
        return self._verdict(name, "result", senders, wrong, message)

    def _candidate_types(self, names: Sequence[str], result: Json) -> list[str]:
        """The types among some that the `resultType` of a result allows."""
        known = [name for name in names if name in self.definitions]
        stated = self.protocol.facts.defaults
        own = {name: stated.get(name, {}).get(_RESULT_TYPE) for name in known}
        value: Json = result.get(_RESULT_TYPE) if is_object(result) else None
        if value in own.values() and value is not None:
            return [name for name in known if own[name] == value]
        return [name for name in known if own[name] is None] or known

    def _guess_result(self, message: Node, sender: Role | None) -> Verdict:
        """The verdict on the most likely result type of a response whose request is missing."""
        verdicts = [
            (self._as_result(method, message), method)
            for method in (*self.protocol.methods.all, *self.protocol.methods.inputs)
            if method.result is not None and sender in (None, OTHER[method.sender])
        ]
        if not verdicts:
            return Verdict(self.name, "", "", (), None)
        best, _ = min(
            verdicts,
            key=lambda row: (
                -self._known_members(row[0].type, message),
                not row[0].is_accepted,
                len(row[0].ignored),
            ),
        )
        return best

    def _known_members(self, name: str, message: Node) -> int:
        """The number of members of a result that a type knows."""
        shape = self.protocol.alternatives.object(name) if name else None
        result: Json = message.get("result")
        if shape is None or not is_object(result):
            return 0
        return len(result.keys() & shape.fields.keys())

    def _error_type(self, message: Node) -> str:
        error: Json = message.get("error")
        code = error.get("code") if is_object(error) else None
        for each in self.protocol.errors:
            alternatives = self.protocol.alternatives.of(each.fields["error"])
            for alternative in alternatives:
                if isinstance(alternative, Object) and "code" in alternative.fields and each.name:
                    codes = self.protocol.alternatives.of(alternative.fields["code"])
                    if [str(one) for one in codes if isinstance(one, Fixed)] == [str(code)]:
                        return each.name
        return self.envelope("error response")

    def _wrong_code(self, message: Node) -> Violation | None:
        """The violation of an error code that is retired, or reserved without a definition."""
        code: Json = message["error"]["code"]
        errors = self.protocol.facts.errors
        actual = format_value(code)
        if code in errors.retired:
            return Violation(("error", "code"), "a code that the revision has not retired", actual)
        if errors.defined is not None and code in _RESERVED and code not in errors.defined:
            expected = f"one of {format_value(sorted(errors.defined))}, or one that is not reserved"
            return Violation(("error", "code"), expected, actual)
        return None

    def unknown_members(
        self, message: Node, sender: Role | None = None, request: Json = None
    ) -> tuple[str, ...]:
        """Pointers to members that the revision does not know, even if it refuses the message.

        Args:
            message: The message.
            sender: The role of the sender, if known.
            request: The request that a response answers, if known.
        """
        verdict = self.judge(message, sender, request)
        if verdict.is_accepted or not verdict.type:
            return verdict.ignored
        part = "result" if "result" in message else ""
        value: Json = message.get(part) if part else message
        return tuple(self._unknown_places(verdict.type, value, (part,) if part else ()))

    def code_meaning(self, code: Json) -> str:
        """The meaning of an error code; empty for an unknown one."""
        errors = self.protocol.facts.errors
        named = [name for name in _CONDITIONS if getattr(errors, name) == code]
        meanings = [_CODES[code]] if isinstance(code, int) and code in _CODES else []
        return ", ".join([*meanings, *(name.replace("_", " ") for name in named)])

    def _verdict(
        self,
        name: str,
        part: str,
        senders: tuple[Role, ...],
        wrong: Violation | None,
        message: Node,
    ) -> Verdict:
        value: Json = message.get(part) if part else message
        ignored = (
            tuple(self._unknown_places(name, value, (part,) if part else ()))
            if wrong is None
            else ()
        )
        return Verdict(self.name, name, part, senders, wrong, ignored, self.page(name))

    def page(self, name: str) -> str:
        """Address of the page about a type; empty if none is known."""
        page = _docs().page(self.version, name)
        return docs.address(self.version, page) if page else ""

    def summary(self, name: str) -> str:
        """The description of a type, in a sentence; empty if there is none."""
        return _docs().type_doc(self.version, name)

    def _unknown_places(self, name: str, value: Json, path: tuple[object, ...]) -> Iterator[str]:
        shape = self.protocol.alternatives.object(name)
        if shape is not None:
            envelope = {"/jsonrpc", "/id", "/method"}
            yield from (at for at in self._unknown_in(shape, value, path) if at not in envelope)

    def _unknown_in(self, shape: Object, value: Json, path: tuple[object, ...]) -> Iterator[str]:
        if not is_object(value):
            return
        for wire, child in value.items():
            if wire == META:
                continue
            if wire in shape.fields:
                yield from self._unknown_at(shape.fields[wire], child, (*path, wire))
            elif shape.rest == {} and shape.fields and not shape.open:
                yield json_pointer((*path, wire))

    def _unknown_at(self, node: Node, value: Json, path: tuple[object, ...]) -> Iterator[str]:
        alternatives = self.protocol.alternatives.of(node)
        if is_array(value):
            arrays = (each.items for each in alternatives if isinstance(each, Array))
            unknown: Node = {}
            items = next(arrays, unknown)
            for index, item in enumerate(value):
                yield from self._unknown_at(items, item, (*path, index))
        if is_object(value):
            objects = [
                alternative for alternative in alternatives if isinstance(alternative, Object)
            ]
            fitting = [each for each in objects if self._fits(each, value)]
            if fitting:
                best = max(fitting, key=lambda each: len(each.fields.keys() & value.keys()))
                yield from self._unknown_in(best, value, path)

    def _fits(self, shape: Object, value: Node) -> bool:
        """Whether a value has the fixed members of an object."""
        for wire in shape.required:
            if wire not in value:
                return False
            fixed = [
                a for a in self.protocol.alternatives.of(shape.fields[wire]) if isinstance(a, Fixed)
            ]
            if fixed and canonical(value[wire]) not in {alternative.text for alternative in fixed}:
                return False
        return True


def _word(message: Node) -> str:
    return "request" if "id" in message else "notification"


@cache
def _every_method() -> frozenset[str]:
    """The methods of all revisions that mcpgen has."""
    documents = (known_document(row) for row in schema.revisions())
    return frozenset(name for document in documents for name in features(document).methods)


@cache
def _docs() -> docs.Docs:
    return docs.load()


@cache
def revision(name: str) -> Revision:
    """A revision that mcpgen has, or a schema file.

    Raises:
        UsageError: There is no such revision.
        SchemaError: The file is no schema of the protocol.
    """
    own, _ = load(name, name, errata=True)
    return Revision(own)
