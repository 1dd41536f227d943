"""Changes of the known revisions, as drafts make them, and schema files that have some of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from generator.schemas import COUNT, OPEN, TEXT, any_of, const, obj, ref
from mcpgen import schema

NAMES = [row.name for row in schema.revisions()]
AWKWARD = (
    *("class", "self", "x-note", "URL", "None", "_private", "a b", "2nd", "list", "meta", "extra"),
    *("keys", "UNSET", 'a"b', "\U0001f600", "na\u00efve"),
)


@dataclass
class Draft:
    """A schema that is changed, and what its package must have."""

    definitions: dict[str, Any]
    methods: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    gone: set[str] = field(default_factory=set[str])
    members: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def add_to(self, union: str, name: str) -> None:
        """Make a definition a member of a union, which may be a lone reference or lacking."""
        node = self.definitions.get(union, {"anyOf": []})
        self.definitions[union] = {"anyOf": [*node.get("anyOf", [node]), ref(name)]}

    def set_member(self, owner: str, name: str, node: Any) -> None:
        """Give a type another member."""
        self.definitions[owner]["properties"][name] = node
        self.members.setdefault(owner, set()).add(name)

    def add_result(self, stem: str, *results: str) -> None:
        """Let a request have some results."""
        result = any_of(*results) if len(results) > 1 else ref(*results)
        members = {"jsonrpc": const("2.0"), "id": ref("RequestId"), "result": result}
        self.definitions[f"{stem}ResultResponse"] = obj("jsonrpc id result", **members)

    def resolve(self, node: dict[str, Any]) -> dict[str, Any]:
        """The definition that a reference leads to, or the schema itself."""
        while "$ref" in node:
            node = self.definitions[node["$ref"].rpartition("/")[2]]
        return node

    @property
    def content(self) -> list[Any]:
        """The alternatives of the content of a tool's result."""
        result = self.definitions["CallToolResult"]["properties"]["content"]["items"]
        alternatives: list[Any] = self.resolve(result)["anyOf"]
        return alternatives

    def rename(self, old: str, new: str) -> None:
        """Give a definition another name."""
        text = json.dumps(self.definitions)
        for start in ("", "#/$defs/"):
            text = text.replace(f'"{start}{old}"', f'"{start}{new}"')
        self.definitions = json.loads(text)
        if old in self.members:
            self.members[new] = self.members.pop(old)

    def add_request(self, at: int, awkward: str) -> None:
        params = obj(awkward, **{awkward: TEXT, "count": COUNT})
        request = obj("method params", method=const(f"tools/new{at}"), params=params)
        self.definitions[f"New{at}Request"] = request
        self.definitions[f"New{at}Result"] = obj("", **{awkward: TEXT})
        self.add_to("ClientRequest", f"New{at}Request")
        self.methods[f"tools/new{at}"] = f"New{at}Result"
        self.members[f"New{at}Result"] = {awkward}

    def add_server_request(self, at: int, awkward: str) -> None:
        if "ServerRequest" not in self.definitions:  # without sessions a server sends no requests
            return
        request = obj("method params", method=const(f"ask{at}"), params=obj("", **{awkward: TEXT}))
        self.definitions[f"Ask{at}Request"] = request
        self.definitions[f"Ask{at}Result"] = obj(awkward, **{awkward: COUNT})
        self.add_to("ServerRequest", f"Ask{at}Request")
        self.methods[f"ask{at}"] = f"Ask{at}Result"

    def add_bare_requests(self, at: int, awkward: str) -> None:
        """Requests without a result of their own: one without params, one of an odd method."""
        params = {"params": obj("", **{awkward: TEXT})}
        odd = f'{awkward}"\U0001f389/{at}'
        for stem, method, more in ((f"Bare{at}", f"bare{at}", {}), (f"Odd{at}", odd, params)):
            self.definitions[f"{stem}Request"] = obj("method", method=const(method), **more)
            self.add_to("ClientRequest", f"{stem}Request")
            self.methods[method] = "EmptyResult"

    def add_notifications(self, at: int, awkward: str) -> None:
        for side, stem in (("Server", "New"), ("Client", "Told")):
            method = f"notifications/{stem.lower()}{at}"
            node = obj("method", method=const(method), params=obj("", **{awkward: TEXT}))
            self.definitions[f"{stem}{at}Notification"] = node
            self.add_to(f"{side}Notification", f"{stem}{at}Notification")
            self.methods[method] = None

    def remove_request(self, at: int, awkward: str) -> None:
        self.definitions["ClientRequest"]["anyOf"].remove(ref("CompleteRequest"))
        self.gone.add("completion/complete")

    def remove_notification(self, at: int, awkward: str) -> None:
        self.definitions["ServerNotification"]["anyOf"].remove(ref("LoggingMessageNotification"))
        self.gone.add("notifications/message")

    def change_values(self, at: int, awkward: str) -> None:
        values = self.definitions["LoggingLevel"]["enum"]
        values[values.index("emergency")] = f"{awkward}{at}"

    def add_content(self, at: int, awkward: str) -> None:
        name = f"Hologram{at}"
        node = obj("type data", type=const(f"hologram{at}"), data=TEXT, **{awkward: TEXT})
        self.definitions[name] = node
        self.content.append(ref(name))
        self.members[name] = {"type", "data", awkward}

    def add_loose_content(self, at: int, awkward: str) -> None:
        self.content.extend((obj("", **{awkward: TEXT}), obj("", **{f"{awkward}2": COUNT})))

    def remove_content(self, at: int, awkward: str) -> None:
        self.content.remove(ref("ImageContent"))

    def add_member(self, at: int, awkward: str) -> None:
        self.set_member("Tool", awkward, {"type": ["string", "null"]})

    def add_undecided_union(self, at: int, awkward: str) -> None:
        lists = [{"type": "array", "items": each} for each in (TEXT, COUNT)]
        maps = [{"type": "object", "additionalProperties": each} for each in (TEXT, COUNT)]
        loose = [obj("", **{awkward: TEXT}), obj(other=COUNT), TEXT]
        self.set_member("Tool", f"odd{at}", {"anyOf": (lists, maps, loose)[at % 3]})

    def name_definition(self, at: int, awkward: str) -> None:
        if awkward not in self.definitions:
            self.definitions[awkward] = obj(awkward, **{awkward: TEXT})
            self.set_member("Tool", f"named{at}", ref(awkward))

    def require_core_member(self, at: int, awkward: str) -> None:
        for owner in ("Tool", "Implementation"):
            self.set_member(owner, f"seal{at}", TEXT)
            self.definitions[owner]["required"].append(f"seal{at}")

    def require_member(self, at: int, awkward: str) -> None:
        self.definitions["Resource"]["required"].append("mimeType")

    def retype_member(self, at: int, awkward: str) -> None:
        shapes = [TEXT, COUNT, {"type": "array", "items": obj("", **{awkward: COUNT})}, {}]
        self.set_member("Implementation", "version", shapes[at % 4])

    def retype_params(self, at: int, awkward: str) -> None:
        params = self.resolve(self.definitions["CompleteRequest"]["properties"]["params"])
        params["properties"][awkward] = {"anyOf": [TEXT, {"type": "array", "items": COUNT}]}
        params["required"] = [awkward]

    def rename_definition(self, at: int, awkward: str) -> None:
        self.rename("Annotations", f"Hints{at}")

    def rename_core_type(self, at: int, awkward: str) -> None:
        old = ("Implementation", "ListToolsResult", "CallToolRequest")[at % 3]
        self.rename(old, f"Core{at}{old[-6:]}")

    def rename_method(self, at: int, awkward: str) -> None:
        request = self.definitions["GetPromptRequest"]
        request["properties"]["method"]["const"] = f"prompts/{at}/read"
        self.methods[f"prompts/{at}/read"] = None
        self.gone.add("prompts/get")

    def add_definitions(self, at: int, awkward: str) -> None:
        """A union without a tag, a composition, and names that Python cannot spell."""
        near = obj("near", near=TEXT, **{awkward: TEXT})
        either = {"anyOf": [near, obj("far", far=COUNT)]}
        parts = [ref("Implementation"), obj("", **{awkward: TEXT}), {"required": ["name"]}]
        self.definitions |= {
            f"Place{at}": obj(where=either),
            f"Whole{at}": {"allOf": parts},
            f"{awkward}<x-{at}>": obj("", **{awkward: TEXT}),
            f"{awkward} x {at}": obj(other=ref(f"{awkward}<x-{at}>")),
        }
        self.members |= {f"Place{at}": {"where"}, f"Whole{at}": {"name", awkward}}


Change: TypeAlias = Callable[[Draft, int, str], None]
"""Changes a draft; gets a number of its own and an awkward name."""

CHANGES: tuple[Change, ...] = (
    Draft.add_bare_requests,
    Draft.add_notifications,
    Draft.add_server_request,
    Draft.require_core_member,
    Draft.rename_core_type,
    Draft.name_definition,
    Draft.remove_notification,
    Draft.rename_method,
    Draft.retype_params,
    Draft.remove_content,
    Draft.change_values,
    Draft.require_member,
    Draft.add_undecided_union,
    Draft.add_loose_content,
    Draft.add_request,
    Draft.remove_request,
    Draft.add_content,
    Draft.add_member,
    Draft.retype_member,
    Draft.rename_definition,
    Draft.add_definitions,
)


def change_revision(name: str, changes: list[tuple[Change, str]]) -> Draft:
    """A known revision with some changes."""
    document = json.loads((schema.entry(name).folder / "schema.json").read_text())
    definitions = document.get("$defs") or document["definitions"]
    draft = Draft(json.loads(json.dumps(definitions).replace("#/definitions/", "#/$defs/")))
    for at, (change, awkward) in enumerate(changes):
        change(draft, at, awkward)
    return draft


def save_draft(draft: Draft, folder: str | Path) -> Path:
    """A draft as a file."""
    path = Path(folder, "schema.json")
    path.write_text(json.dumps({"$defs": draft.definitions}))
    return path


def _message(method: str, params: Any, *, is_request: bool = True) -> dict[str, Any]:
    """A whole message of JSON-RPC."""
    members = {"jsonrpc": const("2.0"), "method": const(method), "params": params}
    if is_request:
        members["id"] = ref("RequestId")
    return obj(" ".join(sorted(members)), **members)


def plan_not_modified(draft: Draft) -> None:
    """Lists and resources have an entity tag, and a result says that it is still the same."""
    for stem in ("ListTools", "ReadResource"):
        draft.definitions[f"{stem}Result"]["properties"]["etag"] = TEXT
    for params in ("PaginatedRequestParams", "ReadResourceRequestParams"):
        draft.definitions[params]["properties"]["ifNoneMatch"] = TEXT
    draft.definitions["NotModifiedResult"] = obj("etag resultType", etag=TEXT, resultType=TEXT)
    draft.add_result("ListTools", "ListToolsResult", "NotModifiedResult")
    results = ("InputRequiredResult", "ReadResourceResult", "NotModifiedResult")
    draft.add_result("ReadResource", *results)


def plan_events(draft: Draft) -> None:
    """Servers list events, and clients subscribe to some of them by name."""
    meta = {"_meta": ref("RequestMetaObject")}
    of_lists = draft.definitions["ListPromptsResult"]["properties"]
    listed = {wire: node for wire, node in of_lists.items() if wire != "prompts"}
    items = {"type": "array", "items": ref("Event")}
    wanted = obj("_meta name", filter=TEXT, name=TEXT, **meta)
    sent = obj("name data", name=TEXT, data={})
    draft.definitions |= {
        "Event": obj("name", name=TEXT, description=TEXT),
        "ListEventsRequest": _message("events/list", ref("PaginatedRequestParams")),
        "ListEventsResult": obj("cacheScope events resultType ttlMs", events=items, **listed),
        "SubscribeEventRequest": _message("events/subscribe", wanted),
        "SubscribeEventResult": obj("resultType", resultType=TEXT),
        "EventNotification": _message("notifications/event", sent, is_request=False),
    }
    for stem in ("ListEvents", "SubscribeEvent"):
        draft.add_result(stem, f"{stem}Result")
        draft.add_to("ClientRequest", f"{stem}Request")
    draft.add_to("ServerNotification", "EventNotification")
    events = obj(listChanged={"type": "boolean"})
    draft.definitions["ServerCapabilities"]["properties"]["events"] = events


def plan_tool_output(draft: Draft) -> None:
    """The result of a tool is a list of outputs, in place of content and a structured value."""
    draft.definitions |= {
        "JsonOutput": obj("type value", type=const("json"), value={}),
        "ToolOutput": any_of("ContentBlock", "JsonOutput"),
    }
    result = draft.definitions["CallToolResult"]
    del result["properties"]["content"], result["properties"]["structuredContent"]
    result["properties"]["output"] = {"type": "array", "items": ref("ToolOutput")}
    result["required"] = ["output", "resultType"]


def plan_streamed_list(draft: Draft) -> None:
    """Resources are listed by notifications while the request is open, and not in pages."""
    draft.definitions["ListResourcesRequest"]["properties"]["params"] = ref("RequestParams")
    result = draft.definitions["ListResourcesResult"]
    del result["properties"]["resources"], result["properties"]["nextCursor"]
    result["required"].remove("resources")
    params = obj("resources", resources={"type": "array", "items": ref("Resource")})
    listed = _message("notifications/resources/listed", params, is_request=False)
    draft.definitions["ResourcesListedNotification"] = listed
    draft.add_to("ServerNotification", "ResourcesListedNotification")


PLANS: dict[str, Callable[[Draft], None]] = {
    "not modified": plan_not_modified,
    "events": plan_events,
    "tool output": plan_tool_output,
    "a streamed list": plan_streamed_list,
}
"""Changes that the specification plans, each as an edit of the newest revision."""


KINDS: dict[str, Any] = {
    "bounds of an integer": {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 5},
    "both lower bounds": {"type": "integer", "minimum": 1, "exclusiveMinimum": 0},
    "bounds of a number": {"type": "number", "exclusiveMinimum": 0.5, "maximum": 3},
    "multiples of a number": {"type": "number", "multipleOf": 0.5},
    "a text": {"type": "string", "pattern": "^a", "minLength": 2, "maxLength": 9},
    "a list": {"type": "array", "items": TEXT, "minItems": 1, "uniqueItems": True},
    "bounds in a list": {"type": "array", "items": {"type": "integer", "minimum": 3}},
    "a bounded number in a list": {"type": "array", "items": {"type": "number", "minimum": 3}},
    "a map": {"type": "object", "additionalProperties": COUNT, "minProperties": 1},
    "patterns of members": {"type": "object", "patternProperties": {"^x-": COUNT}},
    "names of members": {"type": "object", "propertyNames": {"pattern": "^a"}},
    "a closed object": {**obj("a", a=TEXT), "additionalProperties": False},
    "an open object": {**obj("a", a=TEXT), **OPEN},
    "typed extra members": {**obj("a", a=TEXT), "additionalProperties": COUNT},
    "few members": {**obj("a", a=TEXT), "maxProperties": 3},
    "a member that is only required": {**obj("a", a=TEXT), "required": ["a", "b"]},
    "a required member of a map": {"type": "object", "required": ["a"]},
    "true": {"const": True},
    "a float": {"const": 1.5},
    "a constant object": {"const": {"a": 1}},
    "a constant list": {"const": ["a"]},
    "true alone in an enum": {"enum": [True]},
    "both booleans": {"enum": [True, False]},
    "values of all kinds": {"enum": ["a", 1, 1.5, None, {"a": 1}, [2]]},
    "no type with members": {"properties": {"a": TEXT}, "required": ["a"]},
    "no type with items": {"items": TEXT},
    "no type with a bound": {"minLength": 3},
    "nothing": {"not": {}},
    "a tuple": {"type": "array", "prefixItems": [TEXT, COUNT], "items": False},
    "no items": {"type": "array", "items": False},
    "a condition": {"type": "string", "if": {"minLength": 2}, "then": {"pattern": "a"}},
    "one of": {"oneOf": [TEXT, COUNT]},
    "a union beside a bound": {"anyOf": [TEXT, COUNT], "minLength": 2},
    "an object beside a union": {**obj(a=TEXT), "anyOf": [obj(b=TEXT), obj(c=TEXT)]},
    "true and false in a union": {"anyOf": [TEXT, {"not": {}}]},
    "all of two objects": {"allOf": [obj("a", a=TEXT), {**obj(b=COUNT), "maxProperties": 2}]},
    "all of two with one member": {"allOf": [obj(a=TEXT), obj(a=COUNT)]},
    "all of a text": {"allOf": [TEXT, {"minLength": 3}]},
    "a default": {"type": "string", "default": "x"},
    "an unknown keyword": {"type": "string", "x-order": 3},
}
"""Schemas of members, by what they hold; some keywords are carried and others noted."""
REFERRING: dict[str, Any] = {
    "a reference": {"$ref": "Whole"},
    "members beside a reference": {"$ref": "Whole", "properties": {"more": TEXT}},
    "a demand beside a reference": {"$ref": "Whole", "required": ["name", "late"]},
    "a bound beside a reference": {"$ref": "Name", "maxLength": 3},
    "a type beside a reference": {"$ref": "Whole", "type": "object"},
    "all of one reference with a bound": {"allOf": [{"$ref": "Name"}], "minLength": 3},
    "an open object by reference": {"$ref": "Open"},
    "a list of open objects": {"type": "array", "items": {"$ref": "Open"}},
    "a union of itself": {"$ref": "Tree"},
}
REFERRED: dict[str, Any] = {
    "Whole": obj("name", name={"type": "string", "minLength": 1}, size=COUNT),
    "Name": {"type": "string", "minLength": 1},
    "Open": {**obj("a", a=COUNT), **OPEN},
    "Tree": {"anyOf": [TEXT, {"type": "array", "items": {"$ref": "Tree"}}]},
}
"""The definitions that they refer to."""


def with_kinds(name: str) -> dict[str, Any]:
    """The definitions of a revision, and each kind as a member, a definition and an item."""
    added: dict[str, Any] = {**REFERRED}
    for at, node in enumerate([*KINDS.values(), *REFERRING.values()]):
        added[f"Kind{at}"] = obj("value", value=node, other=node)
        added[f"Plain{at}"] = node
        added[f"List{at}"] = obj("values", values={"type": "array", "items": node})
    text = json.dumps(added)
    for target in REFERRED:
        text = text.replace(f'"$ref": "{target}"', f'"$ref": "#/$defs/{target}"')
    return {**change_revision(name, []).definitions, **json.loads(text)}
