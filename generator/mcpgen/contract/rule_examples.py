"""An example of each rule: a part of a contract before and after one change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcpgen import schema
from mcpgen.contract.compare import Change, compare
from mcpgen.contract.document import Contract
from mcpgen.json_types import Json, Node
from mcpgen.project.live_server import Surface
from mcpgen.project.server_lists import parse


@dataclass(frozen=True)
class Example:
    """A change of one part of a server.

    Attributes:
        place: The part; see `PLACES`.
        old: Its value before.
        new: Its value after.
    """

    place: str
    old: Json
    new: Json

    def changes(self) -> list[Change]:
        """The changes that a comparison reports."""
        return compare(_contract(self.place, self.old), _contract(self.place, self.new))


_Lists: TypeAlias = Callable[[Any], Node]

_OBJECT: Node = {"type": "object"}
_TEXT: Node = {"type": "string"}
_WHOLE: Node = {"type": "integer"}
_SIZES: Node = {"enum": ["s", "m", "l"]}
_ELSEWHERE: Node = {"$ref": "https://example.com/schema.json"}


def _tool(members: Node) -> Node:
    return {"tools": [{"name": "order", "inputSchema": _OBJECT, **members}]}


def _list_by(kind: str, key: str, more: Node) -> _Lists:
    """A function that makes a list of entries from their names."""
    return lambda names: {kind: [{**more, key: each} for each in names]}


PLACES: Mapping[str, tuple[str, _Lists]] = {
    "tools": ("names of the tools", _list_by("tools", "name", {"inputSchema": _OBJECT})),
    "tool": ("members of the tool `order`", _tool),
    "input": ("`inputSchema` of the tool `order`", lambda value: _tool({"inputSchema": value})),
    "output": (
        "`outputSchema` of the tool `order`",
        lambda value: _tool({} if value is None else {"outputSchema": value}),
    ),
    "resources": ("URIs of the resources", _list_by("resources", "uri", {"name": "x"})),
    "resource": (
        "members of the resource `shop://terms`",
        lambda members: {"resources": [{"uri": "shop://terms", "name": "terms", **members}]},
    ),
    "templates": (
        "URI templates of the resources",
        _list_by("resourceTemplates", "uriTemplate", {"name": "x"}),
    ),
    "prompts": ("names of the prompts", _list_by("prompts", "name", {})),
    "instructions": ("instructions", lambda text: {"tools": [], "instructions": text}),
    "capabilities": ("capabilities", lambda _: {"tools": []}),
    "revisions": ("revisions", lambda _: {"tools": []}),
}
"""The parts of a server that an example changes: in words, and the lists with a value there."""


def _contract(place: str, value: Json) -> Contract:
    _, lists = PLACES[place]
    capabilities: Any = value if place == "capabilities" else {}
    revisions: Any = value if place == "revisions" else [""]
    return Contract(
        "shop",
        tuple(
            Surface(each, "shop", capabilities, parse(lists(value), "shop")) for each in revisions
        ),
    )


def _object(properties: Node, *required: str, **more: Json) -> Node:
    listed: Node = {"required": [*required]} if required else {}
    return {**_OBJECT, "properties": properties, **listed, **more}


def _task(support: str) -> Node:
    return {"execution": {"taskSupport": support}}


def _newest() -> tuple[list[str], list[str]]:
    """The two newest revisions, newest first, and the older of them alone."""
    names = [row.name for row in schema.revisions()][:-3:-1]
    return names, names[1:]


def examples() -> dict[str, Example]:
    """The example of each rule by its id."""
    both, older = _newest()
    return {
        "TOOL_REMOVED": Example("tools", ["order", "refund"], ["order"]),
        "TOOL_RENAMED": Example("tools", ["order"], ["order_item"]),
        "TOOL_ADDED": Example("tools", ["order"], ["order", "refund"]),
        **_OF_ARGUMENTS,
        **_OF_RESULTS,
        "TASK_REQUIRED": Example("tool", _task("optional"), _task("required")),
        "TASK_REFUSED": Example("tool", _task("optional"), _task("forbidden")),
        "TASK_ALLOWED": Example("tool", _task("forbidden"), _task("optional")),
        "TITLE_CHANGED": Example("tool", {"title": "Order"}, {"title": "Buy"}),
        "DESCRIPTION_CHANGED": Example(
            "tool", {"description": "Orders an item."}, {"description": "Buys an item."}
        ),
        "ANNOTATION_CHANGED": Example(
            "tool", {"annotations": {"readOnlyHint": True}}, {"annotations": {}}
        ),
        "META_CHANGED": Example("tool", {"_meta": {}}, {"_meta": {"com.example/level": 1}}),
        "ICONS_CHANGED": Example("tool", {}, {"icons": [{"src": "https://example.com/a.png"}]}),
        "RESOURCE_REMOVED": Example("resources", ["shop://terms", "shop://news"], ["shop://terms"]),
        "RESOURCE_ADDED": Example("resources", ["shop://terms"], ["shop://terms", "shop://news"]),
        "RESOURCE_NAME_CHANGED": Example("resource", {"name": "terms"}, {"name": "rules"}),
        "RESOURCE_SIZE_CHANGED": Example("resource", {"size": 300}, {"size": 400}),
        "MIME_TYPE_CHANGED": Example(
            "resource", {"mimeType": "text/plain"}, {"mimeType": "text/html"}
        ),
        "TEMPLATE_REMOVED": Example("templates", ["shop://{item}"], []),
        "TEMPLATE_ADDED": Example("templates", [], ["shop://{item}"]),
        "PROMPT_REMOVED": Example("prompts", ["advise", "greet"], ["advise"]),
        "PROMPT_RENAMED": Example("prompts", ["advise"], ["advice"]),
        "PROMPT_ADDED": Example("prompts", ["advise"], ["advise", "greet"]),
        "INSTRUCTIONS_CHANGED": Example("instructions", "Order sparingly.", "Order freely."),
        "CAPABILITY_REMOVED": Example("capabilities", {"tools": {}, "logging": {}}, {"tools": {}}),
        "CAPABILITY_ADDED": Example(
            "capabilities", {"tools": {}}, {"tools": {"listChanged": True}}
        ),
        "EXTENSION_REMOVED": Example("capabilities", _extension({}), {"extensions": {}}),
        "EXTENSION_ADDED": Example("capabilities", {"extensions": {}}, _extension({})),
        "EXTENSION_CHANGED": Example(
            "capabilities", _extension({"level": 1}), _extension({"level": 2})
        ),
        "REVISION_REMOVED": Example("revisions", both, both[:1]),
        "REVISION_ADDED": Example("revisions", older, both),
    }


def _extension(settings: Node) -> Node:
    return {"extensions": {"com.example/gifts": settings}}


_OF_ARGUMENTS: Mapping[str, Example] = {
    "ARGUMENT_REMOVED": Example("input", _object({"size": _SIZES}), _object({})),
    "ARGUMENT_RENAMED": Example("input", _object({"count": _WHOLE}), _object({"counts": _WHOLE})),
    "ARGUMENT_ADDED": Example(
        "input", _object({"item": _TEXT}), _object({"item": _TEXT, "gift": {"type": "boolean"}})
    ),
    "ARGUMENT_ADDED_REQUIRED": Example("input", _object({}), _object({"item": _TEXT}, "item")),
    "ARGUMENT_MADE_REQUIRED": Example(
        "input", _object({"item": _TEXT}), _object({"item": _TEXT}, "item")
    ),
    "ARGUMENT_MADE_OPTIONAL": Example(
        "input", _object({"item": _TEXT}, "item"), _object({"item": _TEXT})
    ),
    "ARGUMENT_NARROWED": Example(
        "input", _object({"size": _SIZES}), _object({"size": {"enum": ["s", "m"]}})
    ),
    "ARGUMENT_WIDENED": Example(
        "input", _object({"size": _SIZES}), _object({"size": {"enum": ["s", "m", "l", "xl"]}})
    ),
    "ARGUMENT_UNDECIDED": Example(
        "input",
        _object({"code": {**_TEXT, "pattern": "^[ab]{40}$"}}),
        _object({"code": {**_TEXT, "pattern": "^[ba]{40}$"}}),
    ),
    "ARGUMENT_DEFAULT_CHANGED": Example(
        "input",
        _object({"count": {**_WHOLE, "default": 1}}),
        _object({"count": {**_WHOLE, "default": 2}}),
    ),
    "ARGUMENT_DESCRIPTION_CHANGED": Example(
        "input",
        _object({"item": {**_TEXT, "description": "Its name."}}),
        _object({"item": {**_TEXT, "description": "Its number."}}),
    ),
    "INPUT_NARROWED": Example(
        "input",
        _object({"item": _TEXT, "code": _TEXT}),
        _object(
            {"item": _TEXT, "code": _TEXT},
            anyOf=[{"required": ["item"]}, {"required": ["code"]}],
        ),
    ),
    "INPUT_UNDECIDED": Example("input", _object({}), _object({}, allOf=[_ELSEWHERE])),
}

_OF_RESULTS: Mapping[str, Example] = {
    "OUTPUT_ADDED": Example("output", None, _object({"price": _WHOLE})),
    "OUTPUT_REMOVED": Example("output", _object({"price": _WHOLE}), None),
    "OUTPUT_MEMBER_REMOVED": Example("output", _object({"note": _TEXT}), _object({})),
    "OUTPUT_MEMBER_ADDED": Example("output", _object({}), _object({"note": _TEXT})),
    "OUTPUT_MEMBER_MADE_OPTIONAL": Example(
        "output", _object({"price": _WHOLE}, "price"), _object({"price": _WHOLE})
    ),
    "OUTPUT_MEMBER_MADE_REQUIRED": Example(
        "output", _object({"price": _WHOLE}), _object({"price": _WHOLE}, "price")
    ),
    "OUTPUT_MEMBER_WIDENED": Example(
        "output", _object({"price": _WHOLE}), _object({"price": {"type": "number"}})
    ),
    "OUTPUT_MEMBER_NARROWED": Example(
        "output", _object({"price": _WHOLE}), _object({"price": {**_WHOLE, "minimum": 0}})
    ),
    "OUTPUT_WIDENED": Example("output", _object({}), {**_object({}), "type": ["object", "null"]}),
    "OUTPUT_UNDECIDED": Example("output", _object({"note": _TEXT}), _object({"note": _ELSEWHERE})),
}
