"""Changes of the known revisions, as drafts make them, and schema files that have some of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from generator.schemas import COUNT, TEXT, const, obj, ref
from mcpgen import schema

NAMES = [row.name for row in schema.revisions()]
AWKWARD = (
    "class",
    "self",
    "x-note",
    "URL",
    "None",
    "_private",
    "a b",
    "2nd",
    "list",
    "meta",
    "extra",
    "keys",
    "UNSET",
    'a"b',
    "\U0001f600",
    "na\u00efve",
)


@dataclass
class Draft:
    """A schema that is changed, and what its package must have.

    Attributes:
        definitions: The definitions.
        methods: Wire names of messages that must be there, with the type of the result or `None`
            for any.
        gone: Wire names that must not be there.
        members: Members that must be there, by definition.
        facts: What a file of facts has to state.
        refused: A part of the error with which the draft is refused; empty if it generates.
    """

    definitions: dict[str, Any]
    methods: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    gone: set[str] = field(default_factory=set[str])
    members: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    facts: str = ""
    refused: str = ""

    def add_to(self, union: str, name: str) -> None:
        """Make a definition a member of a union, which may be a lone reference or lacking."""
        node = self.definitions.get(union, {"anyOf": []})
        self.definitions[union] = {"anyOf": [*node.get("anyOf", [node]), ref(name)]}


Change: TypeAlias = Callable[[Draft, int, str], None]
"""Changes a draft; gets a number of its own and an awkward name."""


def add_request(draft: Draft, at: int, awkward: str) -> None:
    params = obj(awkward, **{awkward: TEXT, "count": COUNT})
    request = obj("method params", method=const(f"tools/new{at}"), params=params)
    draft.definitions[f"New{at}Request"] = request
    draft.definitions[f"New{at}Result"] = obj("", **{awkward: TEXT})
    draft.add_to("ClientRequest", f"New{at}Request")
    draft.methods[f"tools/new{at}"] = f"New{at}Result"
    draft.members[f"New{at}Result"] = {awkward}


def add_request_without_result(draft: Draft, at: int, awkward: str) -> None:
    draft.definitions[f"Bare{at}Request"] = obj("method", method=const(f"bare{at}"))
    draft.add_to("ClientRequest", f"Bare{at}Request")
    draft.methods[f"bare{at}"] = "EmptyResult"


def add_notification(draft: Draft, at: int, awkward: str) -> None:
    node = obj("method", method=const(f"notifications/new{at}"), params=obj("", **{awkward: TEXT}))
    draft.definitions[f"New{at}Notification"] = node
    draft.add_to("ServerNotification", f"New{at}Notification")
    draft.methods[f"notifications/new{at}"] = None


def remove_request(draft: Draft, at: int, awkward: str) -> None:
    node = draft.definitions["ClientRequest"]
    kept = [one for one in node["anyOf"] if one != ref("CompleteRequest")]
    draft.definitions["ClientRequest"] = {"anyOf": kept}
    draft.gone.add("completion/complete")


def add_content(draft: Draft, at: int, awkward: str) -> None:
    name = f"Hologram{at}"
    node = obj("type data", type=const(f"hologram{at}"), data=TEXT, **{awkward: TEXT})
    draft.definitions[name] = node
    result = draft.definitions["CallToolResult"]["properties"]["content"]["items"]
    if "$ref" in result:
        result = draft.definitions[result["$ref"].rpartition("/")[2]]
    result["anyOf"].append(ref(name))
    draft.members[name] = {"type", "data", awkward}


def add_member(draft: Draft, at: int, awkward: str) -> None:
    draft.definitions["Tool"]["properties"][awkward] = {"type": ["string", "null"]}
    draft.members.setdefault("Tool", set()).add(awkward)


def add_value(draft: Draft, at: int, awkward: str) -> None:
    draft.definitions["LoggingLevel"]["enum"].append(f"{awkward}{at}")


def retype_member(draft: Draft, at: int, awkward: str) -> None:
    shape = [TEXT, COUNT, {"type": "array", "items": obj("", **{awkward: COUNT})}, {}][at % 4]
    draft.definitions["Implementation"]["properties"]["version"] = shape
    draft.members.setdefault("Implementation", set()).add("version")


def rename_definition(draft: Draft, at: int, awkward: str) -> None:
    text = json.dumps(draft.definitions)
    for old, new in ((f'"{end}Annotations"', f'"{end}Hints{at}"') for end in ("", "#/$defs/")):
        text = text.replace(old, new)
    draft.definitions = json.loads(text)


def add_untagged_union(draft: Draft, at: int, awkward: str) -> None:
    near = obj("near", near=TEXT, **{awkward: TEXT})
    either = {"anyOf": [near, obj("far", far=COUNT)]}
    draft.definitions[f"Place{at}"] = obj(where=either)
    draft.members[f"Place{at}"] = {"where"}


def add_composition(draft: Draft, at: int, awkward: str) -> None:
    whole = {"allOf": [ref("Implementation"), obj("", **{awkward: TEXT}), {"required": ["name"]}]}
    draft.definitions[f"Whole{at}"] = whole
    draft.members[f"Whole{at}"] = {"name", awkward}


def add_unspellable(draft: Draft, at: int, awkward: str) -> None:
    draft.definitions[f"{awkward}<x-{at}>"] = obj("", **{awkward: TEXT})
    draft.definitions[f"{awkward} x {at}"] = obj(other=ref(f"{awkward}<x-{at}>"))


def remove_notification(draft: Draft, at: int, awkward: str) -> None:
    node = draft.definitions["ServerNotification"]
    kept = [one for one in node["anyOf"] if one != ref("LoggingMessageNotification")]
    draft.definitions["ServerNotification"] = {"anyOf": kept}
    draft.gone.add("notifications/message")


def rename_method(draft: Draft, at: int, awkward: str) -> None:
    request = draft.definitions["GetPromptRequest"]
    request["properties"]["method"]["const"] = f"prompts/{at}/read"
    draft.methods[f"prompts/{at}/read"] = None
    draft.gone.add("prompts/get")


def retype_params(draft: Draft, at: int, awkward: str) -> None:
    params = draft.definitions["CompleteRequest"]["properties"]["params"]
    while "$ref" in params:
        params = draft.definitions[params["$ref"].rpartition("/")[2]]
    params["properties"][awkward] = {"anyOf": [TEXT, {"type": "array", "items": COUNT}]}
    params["required"] = [awkward]


def remove_content(draft: Draft, at: int, awkward: str) -> None:
    blocks = draft.definitions["CallToolResult"]["properties"]["content"]["items"]
    if "$ref" in blocks:
        blocks = draft.definitions[blocks["$ref"].rpartition("/")[2]]
    blocks["anyOf"].remove(ref("ImageContent"))


def remove_value(draft: Draft, at: int, awkward: str) -> None:
    draft.definitions["LoggingLevel"]["enum"].remove("emergency")


def require_member(draft: Draft, at: int, awkward: str) -> None:
    draft.definitions["Resource"]["required"].append("mimeType")


def add_undecided_union(draft: Draft, at: int, awkward: str) -> None:
    lists = [{"type": "array", "items": each} for each in (TEXT, COUNT)]
    maps = [{"type": "object", "additionalProperties": each} for each in (TEXT, COUNT)]
    loose = [obj("", **{awkward: TEXT}), obj(other=COUNT), TEXT]
    either = {"anyOf": (lists, maps, loose)[at % 3]}
    draft.definitions["Tool"]["properties"][f"odd{at}"] = either
    draft.members.setdefault("Tool", set()).add(f"odd{at}")


def add_loose_content(draft: Draft, at: int, awkward: str) -> None:
    result = draft.definitions["CallToolResult"]["properties"]["content"]["items"]
    if "$ref" in result:
        result = draft.definitions[result["$ref"].rpartition("/")[2]]
    result["anyOf"] += [obj("", **{awkward: TEXT}), obj("", **{f"{awkward}2": COUNT})]


def add_odd_request(draft: Draft, at: int, awkward: str) -> None:
    method = f'{awkward}"\U0001f389/{at}'
    request = obj("method", method=const(method), params=obj("", **{awkward: TEXT}))
    draft.definitions[f"Odd{at}Request"] = request
    draft.add_to("ClientRequest", f"Odd{at}Request")
    draft.methods[method] = "EmptyResult"


def add_client_notification(draft: Draft, at: int, awkward: str) -> None:
    node = obj("method", method=const(f"notifications/told{at}"), params=obj("", **{awkward: TEXT}))
    draft.definitions[f"Told{at}Notification"] = node
    draft.add_to("ClientNotification", f"Told{at}Notification")
    draft.methods[f"notifications/told{at}"] = None


def add_server_request(draft: Draft, at: int, awkward: str) -> None:
    if "ServerRequest" not in draft.definitions:  # without sessions a server sends no requests
        return
    request = obj("method params", method=const(f"ask{at}"), params=obj("", **{awkward: TEXT}))
    draft.definitions[f"Ask{at}Request"] = request
    draft.definitions[f"Ask{at}Result"] = obj(awkward, **{awkward: COUNT})
    draft.add_to("ServerRequest", f"Ask{at}Request")
    draft.methods[f"ask{at}"] = f"Ask{at}Result"


def require_core_member(draft: Draft, at: int, awkward: str) -> None:
    for owner in ("Tool", "Implementation"):
        draft.definitions[owner]["properties"][f"seal{at}"] = TEXT
        draft.definitions[owner]["required"].append(f"seal{at}")
        draft.members.setdefault(owner, set()).add(f"seal{at}")
    draft.facts += f'[defaults."*"]\nseal{at} = "red"\n'


def rename_core_type(draft: Draft, at: int, awkward: str) -> None:
    old = ("Implementation", "ListToolsResult", "CallToolRequest")[at % 3]
    text = json.dumps(draft.definitions)
    for start in ("", "#/$defs/"):
        text = text.replace(f'"{start}{old}"', f'"{start}Core{at}{old[-6:]}"')
    draft.definitions = json.loads(text)
    if old in draft.members:
        draft.members[f"Core{at}{old[-6:]}"] = draft.members.pop(old)


def rename_core_member(draft: Draft, at: int, awkward: str) -> None:
    text = json.dumps(draft.definitions["Tool"])
    draft.definitions["Tool"] = json.loads(text.replace('"inputSchema"', f'"schema{at}"'))
    draft.refused = "expected inputSchema"


def name_definition(draft: Draft, at: int, awkward: str) -> None:
    if awkward in draft.definitions:
        return
    draft.definitions[awkward] = obj(awkward, **{awkward: TEXT})
    draft.definitions["Tool"]["properties"][f"named{at}"] = ref(awkward)
    draft.members.setdefault("Tool", set()).add(f"named{at}")


CHANGES: tuple[Change, ...] = (
    add_odd_request,
    add_client_notification,
    add_server_request,
    require_core_member,
    rename_core_type,
    name_definition,
    remove_notification,
    rename_method,
    retype_params,
    remove_content,
    remove_value,
    require_member,
    add_undecided_union,
    add_loose_content,
    add_request,
    add_request_without_result,
    add_notification,
    remove_request,
    add_content,
    add_member,
    add_value,
    retype_member,
    rename_definition,
    add_untagged_union,
    add_composition,
    add_unspellable,
)


def change_revision(name: str, changes: list[tuple[Change, str]]) -> Draft:
    """A known revision with some changes."""
    return change_schema((schema.entry(name).folder / "schema.json").read_text(), changes)


def change_schema(text: str, changes: list[tuple[Change, str]]) -> Draft:
    """A schema with some changes."""
    document = json.loads(text)
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


def _revise(draft: Draft, **definitions: Any) -> None:
    draft.definitions |= definitions


def _add_result(draft: Draft, stem: str, *results: str) -> None:
    """Let a request have some results."""
    result: Any = {"anyOf": [ref(name) for name in results]} if len(results) > 1 else ref(*results)
    members = {"jsonrpc": const("2.0"), "id": ref("RequestId"), "result": result}
    draft.definitions[f"{stem}ResultResponse"] = obj("jsonrpc id result", **members)


def plan_not_modified(draft: Draft) -> None:
    """Lists and resources have an entity tag, and a result says that it is still the same."""
    for stem in ("ListTools", "ReadResource"):
        draft.definitions[f"{stem}Result"]["properties"]["etag"] = TEXT
    for params in ("PaginatedRequestParams", "ReadResourceRequestParams"):
        draft.definitions[params]["properties"]["ifNoneMatch"] = TEXT
    _revise(draft, NotModifiedResult=obj("etag resultType", etag=TEXT, resultType=TEXT))
    _add_result(draft, "ListTools", "ListToolsResult", "NotModifiedResult")
    results = ("InputRequiredResult", "ReadResourceResult", "NotModifiedResult")
    _add_result(draft, "ReadResource", *results)


def plan_events(draft: Draft) -> None:
    """Servers list events, and clients subscribe to some of them by name."""
    event = obj("name", name=TEXT, description=TEXT)
    sent = obj("name data", name=TEXT, data={})
    meta = {"_meta": ref("RequestMetaObject")}
    of_lists = draft.definitions["ListPromptsResult"]["properties"]
    listed = {wire: node for wire, node in of_lists.items() if wire != "prompts"}
    items = {"type": "array", "items": ref("Event")}
    _revise(
        draft,
        Event=event,
        ListEventsRequest=obj(
            "jsonrpc id method params",
            jsonrpc=const("2.0"),
            id=ref("RequestId"),
            method=const("events/list"),
            params=ref("PaginatedRequestParams"),
        ),
        ListEventsResult=obj("cacheScope events resultType ttlMs", events=items, **listed),
        SubscribeEventRequest=obj(
            "jsonrpc id method params",
            jsonrpc=const("2.0"),
            id=ref("RequestId"),
            method=const("events/subscribe"),
            params=obj("_meta name", filter=TEXT, name=TEXT, **meta),
        ),
        SubscribeEventResult=obj("resultType", resultType=TEXT),
        EventNotification=obj(
            "jsonrpc method params",
            jsonrpc=const("2.0"),
            method=const("notifications/event"),
            params=sent,
        ),
    )
    _add_result(draft, "ListEvents", "ListEventsResult")
    _add_result(draft, "SubscribeEvent", "SubscribeEventResult")
    for name in ("ListEventsRequest", "SubscribeEventRequest"):
        draft.add_to("ClientRequest", name)
    draft.add_to("ServerNotification", "EventNotification")
    draft.definitions["ServerCapabilities"]["properties"]["events"] = obj(
        listChanged={"type": "boolean"}
    )


def plan_tool_output(draft: Draft) -> None:
    """The result of a tool is a list of outputs, in place of content and a structured value."""
    _revise(
        draft,
        JsonOutput=obj("type value", type=const("json"), value={}),
        ToolOutput={"anyOf": [ref("ContentBlock"), ref("JsonOutput")]},
    )
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
    items = {"type": "array", "items": ref("Resource")}
    listed = obj(
        "jsonrpc method params",
        jsonrpc=const("2.0"),
        method=const("notifications/resources/listed"),
        params=obj("resources", resources=items),
    )
    _revise(draft, ResourcesListedNotification=listed)
    draft.add_to("ServerNotification", "ResourcesListedNotification")


PLANS: dict[str, Callable[[Draft], None]] = {
    "not modified": plan_not_modified,
    "events": plan_events,
    "tool output": plan_tool_output,
    "a streamed list": plan_streamed_list,
}
"""Changes that the specification plans, each as an edit of the newest revision."""
