"""The facts of one revision, fitted to a schema that is near to it.

The schema takes precedence. Facts about methods, types or keys that the schema lacks are dropped;
facts that definitions show are read from them; for a method that the revision does not know, a rule
chooses. If a rule is not certain, the value is a guess, which is reported to the user. All other
facts are carried over from the revision.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from mcpgen import names
from mcpgen import schema as schema_module
from mcpgen.errors import format_value
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model.core_names import core_names
from mcpgen.model.normalized import target
from mcpgen.schema import Schema, latest
from mcpgen.schema import facts as facts_module
from mcpgen.schema.facts import Facts, Results
from mcpgen.schema.method_facts import UNSTATED, MethodFacts
from mcpgen.schema.revision_facts import Behaviour, MetaKeys
from mcpgen.schema.structure import escape

Side = Literal["client", "server"]
_RESULTS: Mapping[Side, str] = {"client": "ServerResult", "server": "ClientResult"}
"""The union of the results for the requests of each side."""
_CAPABILITIES: Mapping[Side, str] = {"client": "ClientCapabilities", "server": "ServerCapabilities"}
_UNITS = frozenset({"ms", "millis", "milliseconds", "sec", "secs", "seconds", "minutes"})
_ALIKE = 0.75
"""The least share of common members of two objects that count as one renamed object."""
_RESULT_TYPE = "resultType"
_META_KEY = re.compile(r"[\w.-]+/[\w-]+")
_META_RULES = frozenset({"key_rules", "reserved_prefix", "trace_keys"})
"""Facts about all keys of `_meta`, which definitions cannot show."""


@dataclass(frozen=True)
class Guess:
    """A fact that neither the schema nor a facts file states.

    Attributes:
        pointer: The place of the fact in a facts file.
        value: The assumed value.
        revision: The revision that the facts around it came from.
        why: The basis of the guess; empty for the prose of that revision.
    """

    pointer: str
    value: Json
    revision: str
    why: str

    def __str__(self) -> str:
        what = f"{self.pointer} = {format_value(self.value)}"
        if not self.why:
            return f"{what}, carried over from {self.revision}"
        return f"{what}, beside the facts of {self.revision}: {self.why}"


@dataclass(frozen=True)
class FittedFacts:
    """Facts for a schema, and those that the schema does not state.

    Attributes:
        facts: The facts.
        guesses: The facts that the revision does not state either.
        carried: The facts that the prose of the revision states.
    """

    facts: Facts
    guesses: tuple[Guess, ...] = ()
    carried: tuple[Guess, ...] = ()


@dataclass(frozen=True)
class Fit:
    """The facts of a revision, fitted to a schema.

    Attributes:
        facts: The facts.
        guesses: The guessed facts.
        stated: The places in a facts file of the facts that the schema states.
    """

    facts: Facts
    guesses: tuple[Guess, ...]
    stated: frozenset[str]


def methods_of(schema: Schema) -> frozenset[str]:
    """The names of all messages of a schema."""
    return _Messages(schema.definitions).methods


def fit(carried: Facts, schema: Schema, base: Schema) -> Fit:
    """The facts for a schema.

    Args:
        carried: Facts of the revision nearest to the schema.
        schema: The schema.
        base: The schema of that revision.
    """
    return _Fit(carried, _Messages(schema.definitions), _Messages(base.definitions)).run()


@dataclass(frozen=True)
class _Messages:
    """The messages that the definitions of a schema declare."""

    definitions: Mapping[str, Node]

    def requests(self, side: Side) -> Mapping[str, str]:
        """Method to definition of the requests that a side sends, also those within results."""
        if side == "client":
            return self.union_messages("ClientRequest")
        return self.union_messages("ServerRequest", "InputRequest")

    def notifications(self, side: Side) -> Mapping[str, str]:
        """Method to definition of the notifications that a side sends."""
        return self.union_messages(f"{side.capitalize()}Notification")

    @property
    def methods(self) -> frozenset[str]:
        """The names of all messages."""
        sides: Sequence[Side] = ("client", "server")
        return frozenset(
            name for side in sides for name in (*self.requests(side), *self.notifications(side))
        )

    @property
    def has_handshake(self) -> bool:
        """Whether a session begins with a handshake."""
        return core_names().handshake in self.requests("client")

    def results(self, side: Side, method: str) -> tuple[str, ...]:
        """The results of a request by rule: those in `XResultResponse` of `XRequest`, or `XResult`.

        Missing definitions are left out.
        """
        request = self.requests(side).get(method)
        if request is None:
            return ()
        stem = request.removesuffix("Request")
        response: Json = self.definitions.get(f"{stem}ResultResponse", {}).get("properties", {})
        node: Json = response.get("result", {})
        named = _references(node) if is_object(node) else []
        return tuple(name for name in named or [f"{stem}Result"] if name in self.definitions)

    def find_similar(self, node: Node, others: Collection[str]) -> str | None:
        """The only definition, except some, with nearly the same members as an object."""
        wanted = frozenset(node.get("properties", {}))
        shares: dict[str, float] = {}
        for name in self.definitions.keys() - others:
            members = frozenset(self.definitions[name].get("properties", {}))
            if members and members.issuperset(node.get("required", ())):
                shares[name] = len(wanted & members) / len(wanted | members)
        most = max(shares.values(), default=0.0)
        best = [name for name, share in shares.items() if share == most]
        return best[0] if len(best) == 1 and most >= _ALIKE else None

    def members(self, union: str) -> frozenset[str]:
        """The definitions that are members of a union, through unions and references."""
        seen: dict[str, None] = {}
        left = [union]
        while left:
            name = left.pop()
            node = self.definitions.get(name)
            if node is None or name in seen:
                continue
            seen[name] = None
            left += _references(node)
        return frozenset(seen)

    def has_capability(self, side: Side, path: Sequence[str]) -> bool:
        """Whether the capabilities of a side have a member at a path."""
        node: Json = self.definitions.get(_CAPABILITIES[side], {})
        for name in path:
            while is_object(node) and "$ref" in node:
                node = self.definitions.get(target(node), {})
            members: Json = node.get("properties", {}) if is_object(node) else {}
            if name not in members:
                return False
            node = members[name]
        return True

    def meta_keys(self) -> Iterator[str]:
        """Members of definitions whose name has a prefix, like keys of `_meta`."""
        for node in self.definitions.values():
            yield from (key for key in node.get("properties", {}) if _META_KEY.fullmatch(key))

    def error_codes(self) -> Mapping[str, int]:
        """The codes of errors that have definitions, by the name of the error."""
        codes: dict[str, int] = {}
        for name, node in self.definitions.items():
            code = _code(node)
            if name.endswith("Error") and code is not None:
                codes[name.removesuffix("Error")] = code
        return codes

    def union_messages(self, *unions: str) -> Mapping[str, str]:
        """Method to definition of the messages in some unions."""
        messages: dict[str, str] = {}
        for name in (member for union in unions for member in sorted(self.members(union))):
            method: Json = self.definitions[name].get("properties", {}).get("method", {})
            if is_object(method) and isinstance(method.get("const"), str):
                messages.setdefault(method["const"], name)
        return messages


def _references(node: Node) -> list[str]:
    """The targets of a union or reference."""
    variants: list[Node] = [*node.get("anyOf", ()), *node.get("oneOf", ()), node]
    return [target(variant) for variant in variants if isinstance(variant.get("$ref"), str)]


def _code(node: Json) -> int | None:
    """The fixed code of an error, at any place in the definition."""
    if is_array(node):
        return next((code for item in node if (code := _code(item)) is not None), None)
    if not is_object(node):
        return None
    own: Json = node.get("properties", {}).get("code", {})
    if is_object(own) and type(own.get("const")) is int:
        return int(own["const"])
    inner = [node.get("allOf"), *node.get("properties", {}).values()]
    return next((code for part in inner if (code := _code(part)) is not None), None)


@dataclass
class _Fit:
    carried: Facts
    own: _Messages
    base: _Messages
    guesses: list[Guess] = field(default_factory=list[Guess])
    stated: set[str] = field(default_factory=set[str])
    results_of_clients: dict[str, tuple[str, ...]] = field(init=False)

    def run(self) -> Fit:
        carried = self.carried
        self.results_of_clients = self.results("client")
        facts = replace(
            carried,
            behaviour=self.behaviour(),
            capabilities=self.capabilities(),
            results=Results(client=self.results_of_clients, server=self.results("server")),
            meta=self.meta(),
            methods=self.methods(),
            defaults=self.defaults(),
            renamed={
                name: later
                for name, later in carried.renamed.items()
                if name in self.own.definitions
            },
        )
        codes = self.codes()
        facts = facts_module.with_codes(facts, codes)
        self.mark_stated("errors", *facts_module.conditions(codes))
        if self.own.has_handshake != self.base.has_handshake:
            why = "the lifecycle is another one than that of the revision"
            self.guess(("transports", "streamable_http"), carried.transports.streamable_http, why)
            self.guess(("http", "cancellation"), carried.http.cancellation, why)
        return Fit(facts, tuple(self.guesses), frozenset(self.stated))

    def guess(self, path: Sequence[str], value: Json, why: str) -> None:
        """Record a guessed value."""
        self.guesses.append(Guess(_pointer(*path), value, self.carried.revision, why))

    def mark_stated(self, table: str, *keys: str) -> None:
        """Record facts that the schema states."""
        self.stated.update(_pointer(*table.split("."), key) for key in keys)

    def capabilities(self) -> dict[str, str]:
        """Capability by method: the carried one if it still exists, else from the method's name."""
        capabilities: dict[str, str] = {}
        for method, side in self.capability_sides():
            carried = self.carried.capability(method)
            path = self.known_part(side, carried) or self.capability_of(side, method)
            if method in self.base.methods and not carried:
                continue
            if path:
                capabilities[method] = ".".join(path)
            if method not in self.base.methods:
                why = "named like the method" if path else "no capability is named like the method"
                self.guess(("capabilities", method), ".".join(path) or False, why)
        return dict(
            sorted(capabilities.items(), key=lambda row: (row[0].startswith("notif"), row[0]))
        )

    def defaults(self) -> dict[str, Mapping[str, Json]]:
        """The carried defaults, and those of a later revision for members that only it requires."""
        defaults = {
            name: values
            for name, values in self.carried.defaults.items()
            if name == "*" or name in self.own.definitions
        }
        later = facts_module.load(latest().name)
        required = {
            wire for node in self.own.definitions.values() for wire in node.get("required", ())
        }
        for wire, value in later.defaults.get("*", {}).items():
            if wire in required and not any(wire in values for values in defaults.values()):
                defaults["*"] = {**defaults.get("*", {}), wire: value}
                self.guess(("defaults", "*", wire), value, f"{later.revision} has this default")
        for name in self.new_alternatives():
            value = names.snake(name.removesuffix("Result"))
            defaults[name] = {**defaults.get(name, {}), _RESULT_TYPE: value}
            self.guess(("defaults", name, _RESULT_TYPE), value, "named like the definition")
        for name, wire, newer in self.zeros_without_unit(later):
            defaults[name] = {**defaults.get(name, {}), wire: 0}
            self.guess(("defaults", name, wire), 0, f"{later.revision} has it for {newer}")
        return defaults

    def new_alternatives(self) -> Iterator[str]:
        """New results beside others of a request, whose type has a name that no constant states."""
        alternatives: dict[str, None] = {}
        for stem, node in self.own.definitions.items():
            result: Json = node.get("properties", {}).get("result", {})
            named = _references(result) if is_object(result) else []
            if stem.endswith("ResultResponse") and len(named) > 1:
                alternatives |= dict.fromkeys(named)
        for name in sorted(alternatives.keys() - self.base.definitions.keys()):
            node = self.own.definitions.get(name, {}).get("properties", {}).get(_RESULT_TYPE)
            if is_object(node) and not node.keys() & {"const", "enum"}:
                yield name

    def zeros_without_unit(self, later: Facts) -> Iterator[tuple[str, str, str]]:
        """Members that a later revision names with another unit, if the default there is zero.

        Zero is the same in every unit: the default of `ttlMs` applies to `ttl`.
        """
        definitions = schema_module.load(later.revision).definitions
        for name in sorted(self.own.definitions.keys() & definitions.keys()):
            own, others = self.own.definitions[name], definitions[name]
            for wire in own.get("required", ()):
                if wire in others.get("properties", {}):
                    continue
                for newer in others.get("required", ()):
                    default = later.default(name, newer)
                    same = _without_unit(newer) == _without_unit(wire) and newer != wire
                    if same and type(default) is int and default == 0:
                        yield name, wire, newer

    def capability_sides(self) -> Iterator[tuple[str, Side]]:
        """Every method, and the side whose capability it depends on."""
        sides: Sequence[tuple[Side, Side]] = (("client", "server"), ("server", "client"))
        seen: set[str] = set()
        for sender, receiver in sides:
            of_side: dict[str, Side] = dict.fromkeys(self.own.requests(sender), receiver)
            of_side |= dict.fromkeys(self.own.notifications(sender), sender)
            for name, side in of_side.items():
                if name not in seen:
                    seen.add(name)
                    yield name, side

    def known_part(self, side: Side, path: Sequence[str]) -> tuple[str, ...]:
        """The longest beginning of a path among the capabilities of a side, or of the other."""
        sides: Sequence[Side] = (side, "client", "server")
        parts = (
            tuple(path[:end])
            for end in range(len(path), 0, -1)
            for one in sides
            if self.own.has_capability(one, path[:end])
        )
        return next(parts, ())

    def capability_of(self, side: Side, method: str) -> tuple[str, ...]:
        """The capability that a method is named after: `notes` for `notes/list`.

        `notifications/notes/list_changed` gives `notes.listChanged` if that exists.
        """
        words = method.removeprefix("notifications/").split("/")
        camel = [_camel(word) for word in words]
        for first in (camel[0], f"{camel[0]}s"):
            for path in ((first, *camel[1:]), (first,)):
                if self.own.has_capability(side, path):
                    return path
        return ()

    def results(self, side: Side) -> dict[str, tuple[str, ...]]:
        """Result types by method: the carried ones that still exist, else the empty result."""
        table = self.carried.results.client if side == "client" else self.carried.results.server
        definitions = self.own.definitions
        results: dict[str, tuple[str, ...]] = {}
        for method, message in self.own.requests(side).items():
            kept = tuple(name for name in table.get(method, ()) if name in definitions)
            stem = message.removesuffix("Request")
            if {f"{stem}ResultResponse", f"{stem}Result"} & definitions.keys():
                # If a rule finds results in the schema, carried results count only if complete.
                if kept and len(kept) == len(table[method]):
                    results[method] = kept
            elif renamed := self.renamed_results(side, method, table.get(method, ())):
                results[method], why = renamed
                if results[method] != kept:
                    self.guess(("results", side, method), [*results[method]], why)
            elif self.has_empty_result(side):
                results[method] = ("EmptyResult",)
                why = f"there is no {stem}Result, and {_RESULTS[side]} has EmptyResult"
                self.guess(("results", side, method), ["EmptyResult"], why)
        return results

    def renamed_results(
        self, side: Side, method: str, stated: Sequence[str]
    ) -> tuple[tuple[str, ...], str] | None:
        """The results of a method of the revision whose request or result was renamed.

        Args:
            side: The side that sends the request.
            method: The method.
            stated: The results that facts state for the method.
        """
        known = self.base.definitions
        results: list[str] = []
        why = f"it is so in {self.carried.revision}"
        for before in stated or self.base.results(side, method):
            if before in self.own.definitions:
                results.append(before)
            elif before in known and (likely := self.own.find_similar(known[before], known.keys())):
                results.append(likely)
                why = f"it has the members of {before}"
        return (tuple(results), why) if results else None

    def has_empty_result(self, side: Side) -> bool:
        """Whether EmptyResult, or the definition that it refers to, is among the results."""
        empty = self.own.definitions.get("EmptyResult")
        if empty is None:
            return False
        members = self.own.members(_RESULTS[side])
        return bool(members & {"EmptyResult", *_references(empty)})

    def behaviour(self) -> Behaviour:
        """Rules that the definitions show, and rules about existing methods."""
        carried = self.carried.behaviour
        methods = self.own.methods
        listen = [name for name in sorted(methods) if name.rpartition("/")[2] == "listen"]
        self.mark_stated("behaviour", "structured_content", "listen")
        return replace(
            carried,
            structured_content=self.structured_content(),
            unreadable_id=self.unreadable_id(),
            log_level=self.log_level(),
            listen=carried.listen if carried.listen in methods else next(iter(listen), None),
        )

    def structured_content(self) -> Literal["none", "object", "any"]:
        """The kind of value that `structuredContent` of a tool's result may be."""
        results = self.tool_results()
        properties = (self.own.definitions[name].get("properties", {}) for name in results)
        nodes = (members.get("structuredContent") for members in properties)
        node: Json = next((node for node in nodes if node is not None), None)
        if node is None:
            return "none"
        while is_object(node) and "$ref" in node:
            node = self.own.definitions.get(target(node), {})
        return "object" if is_object(node) and node.get("type") == "object" else "any"

    def tool_results(self) -> list[str]:
        """The definitions of the results of tools."""
        methods = [name for name in self.own.methods if self.carried.method(name).runs_tool]
        stated = self.results_of_clients
        named = [name for each in methods for name in self.own.results("client", each)]
        named += [name for each in methods for name in stated.get(each, ())]
        return sorted({member for name in named for member in self.own.members(name)})

    def unreadable_id(self) -> Literal["null", "omit"]:
        """How an error expresses that the id could not be read: without an id if it is optional."""
        names_of_errors = ("JSONRPCErrorResponse", "JSONRPCError")
        errors = (self.own.definitions.get(name) for name in names_of_errors)
        node = next((node for node in errors if node and "properties" in node), None)
        if node is None:
            return self.carried.behaviour.unreadable_id
        self.mark_stated("behaviour", "unreadable_id")
        return "null" if "id" in node.get("required", ()) else "omit"

    def log_level(self) -> Literal["session", "request"]:
        """How a client asks for log messages."""
        once = "SetLevelRequest" in self.own.requests("client").values()
        if not (once or any(key.endswith("/logLevel") for key in self.own.meta_keys())):
            return self.carried.behaviour.log_level
        self.mark_stated("behaviour", "log_level")
        return "session" if once else "request"

    def methods(self) -> dict[str, MethodFacts]:
        """The facts about the methods of the schema and of extensions."""
        methods, asking = self.own.methods, self.input_required()
        rows: dict[str, MethodFacts] = {}
        for name in (*self.carried.methods, *sorted(methods - self.carried.methods.keys())):
            carried = self.carried.method(name)
            if name not in methods:
                if name not in self.base.methods:  # it may come from an extension
                    rows[name] = carried
                continue
            row = replace(
                carried,
                input_required=name in asking,
                listed_by=carried.listed_by if carried.listed_by in methods else None,
                invalidates=tuple(other for other in carried.invalidates if other in methods),
            )
            if row != UNSTATED:
                rows[name] = row
            if name not in self.base.methods and name not in self.carried.methods:
                self.guess(("methods", name), {}, "nothing is stated of the method")
            self.stated.add(_pointer("methods", name, "input_required"))
        return rows

    def input_required(self) -> frozenset[str]:
        """The requests whose response may ask for input."""
        asking = {
            name
            for name, node in self.own.definitions.items()
            if name.endswith("Result") and "inputRequests" in node.get("properties", {})
        }
        methods: list[str] = []
        for method, message in self.own.requests("client").items():
            response = f"{message.removesuffix('Request')}ResultResponse"
            node: Json = self.own.definitions.get(response, {}).get("properties", {}).get("result")
            if is_object(node) and asking & {*_references(node)}:
                methods.append(method)
        return frozenset(methods)

    def meta(self) -> MetaKeys:
        """Keys of `_meta` with a meaning, if the definitions have them."""
        keys = {names.snake(key): key for key in self.own.meta_keys()}
        carried = self.carried.meta
        by_name: dict[str, Any] = {
            one.name: keys.get(one.name)
            for one in fields(carried)
            if one.name in keys or _META_KEY.fullmatch(f"{getattr(carried, one.name)}")
        }
        self.mark_stated("meta", *({one.name for one in fields(carried)} - _META_RULES))
        if "RelatedTaskMetadata" in self.own.definitions and "related_task" in by_name:
            by_name["related_task"] = carried.related_task
            self.stated.discard(_pointer("meta", "related_task"))
        return replace(carried, **by_name)

    def codes(self) -> dict[str, int]:
        """Codes by condition, of the errors that have definitions."""
        codes = self.own.error_codes()
        return {"_".join(names.words(name)).upper(): code for name, code in codes.items()}


def _pointer(*path: str) -> str:
    return "".join(f"/{escape(part)}" for part in path)


def _without_unit(wire: str) -> list[str]:
    """The words of a member's name, without a unit of time at its end."""
    words = names.words(wire)
    return words[:-1] if len(words) > 1 and words[-1].lower() in _UNITS else words


def _camel(word: str) -> str:
    first, *others = names.words(word) or [""]
    return first + "".join(other.capitalize() for other in others)
