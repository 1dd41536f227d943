"""Conversion of a server's requests to a client to another revision.

Parts that have another form in the receiver's revision are converted. All other parts are forwarded
unchanged, and the receiver validates them as without a proxy.

    elicitation    a titled choice                    enum and enumNames        renamed
                   a URL without an id                a new id
    sampling       a message of several blocks        a message for each block  degraded
                   a block of an unknown kind         a line of text            degraded
                   a reply of several blocks          one block of text         degraded

The last column is the outcome in the table of `mcpgen diff A B --bridge`.

Source: client/elicitation, client/sampling.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, get_args, get_origin

from .._wire import ValidationError, convert, is_many, is_object, structs_in, to_builtins
from ..client.application import ELICITATION, SAMPLING
from ..facts import Method
from ..server.toolkit.content import content_types, field_type
from ..server.toolkit.output_conversion import known_blocks

_Members: TypeAlias = Mapping[str, Any]


def question_for(row: Method, params: _Members) -> _Members:
    """Convert the params of a server's request to the receiver's revision.

    Args:
        row: The row of the request in the receiver's revision.
        params: The params as wire object.
    """
    change = _QUESTIONS.get(row.name)
    return params if change is None else change(row, params)


def reply_for(row: Method, result: _Members) -> _Members:
    """Convert the result of a server's request to the server's revision.

    Args:
        row: The row of the request in the server's revision.
        result: The result as wire object.
    """
    change = _REPLIES.get(row.name)
    return result if change is None else change(row, result)


def degraded_content(old: _Members, new: _Members) -> list[str]:
    """The places of content in params, or in a result, whose converted form says less.

    `content.type=audio` is a kind of block that the form lacks; `content[]` are several blocks that
    became several messages, or one block of text.
    """
    if new is old:
        return []
    before, after = _contents(old), _contents(new)
    if "messages" not in old:
        place = "content"
        if before and is_many(before[0]) and not is_many(after[0]):
            return [f"{place}[]"]
    else:
        place = "messages[].content"
    kinds = _kinds(before).keys() - _kinds(after).keys()
    places = [f"{place}.type={kind}" for kind in _kinds(before) if kind in kinds]
    has_fewer = sum(map(is_many, after)) < sum(map(is_many, before))
    return [*places, f"{place}[]"] if has_fewer else places


def _contents(wire: _Members) -> list[Any]:
    """The content of each message of params, or that of a result."""
    holders = wire.get("messages", [wire])
    return [each["content"] for each in holders if "content" in each]


def _kinds(contents: list[Any]) -> dict[str, None]:
    """The kinds of blocks, in order."""
    blocks = [block for each in contents for block in (each if is_many(each) else [each])]
    return dict.fromkeys(str(block.get("type")) for block in blocks if is_object(block))


def _fits(wire: Any, kind: Any) -> bool:
    try:
        convert(wire, kind)
    except ValidationError:
        return False
    return True


def _convert_elicitation(row: Method, params: _Members) -> _Members:
    schema = params.get("requestedSchema")
    if not is_object(schema):
        has_id = any(field_type(each, "elicitationId") for each in structs_in(row.params))
        if not has_id or "elicitationId" in params:
            return params
        return {**params, "elicitationId": secrets.token_urlsafe(16)}
    forms = [field_type(each, "requestedSchema") for each in structs_in(row.params)]
    form = next(each for each in forms if each is not None)
    properties = {name: _convert_field(field, form) for name, field in schema["properties"].items()}
    return {**params, "requestedSchema": {**schema, "properties": properties}}


def _convert_field(schema: _Members, form: Any) -> _Members:
    """The schema of a field; titled choices become `enumNames` if the revision requires it."""
    titled = schema.get("oneOf")
    if titled is None or _has_member(form, "oneOf", schema):
        return schema
    names = {
        "enum": [choice["const"] for choice in titled],
        "enumNames": [choice["title"] for choice in titled],
    }
    converted = {**{name: value for name, value in schema.items() if name != "oneOf"}, **names}
    return converted if _has_member(form, "enumNames", converted) else schema


def _has_member(form: Any, name: str, schema: _Members) -> bool:
    """Whether a field schema keeps a member when it is converted to a type of forms."""
    try:
        typed = convert({"type": "object", "properties": {"x": schema}}, form)
    except ValidationError:
        return False
    return name in to_builtins(typed)["properties"]["x"]


def _convert_sampling(row: Method, params: _Members) -> _Members:
    if _fits(params, row.params):
        return params
    messages: list[_Members] = []
    for struct in structs_in(row.params):
        for message in structs_in(field_type(struct, "messages")):
            kind = field_type(message, "content")
            messages = [
                {**each, "content": content}
                for each in params["messages"]
                for content in _convert_content(each["content"], kind)
            ]
    return {**params, "messages": messages}


def _convert_sampling_reply(row: Method, result: _Members) -> _Members:
    if _fits(result, row.result):
        return result
    kinds = [field_type(struct, "content") for struct in structs_in(row.result)]
    kind = next((each for each in kinds if each is not None), None)
    contents = _convert_content(result.get("content"), kind)
    if len(contents) > 1:
        lines = [block["text"] for block in known_blocks(contents, {"text": None})]
        contents = [{"type": "text", "text": "\n\n".join(lines)}]
    return {**result, "content": contents[0]} if contents else result


def _convert_content(content: Any, kind: Any) -> list[Any]:
    """Convert content to another type: to one part, or to one part for each block."""
    blocks = known_blocks(list(content) if is_many(content) else [content], content_types(kind))
    return [blocks] if is_many(content) and _admits_lists(kind) else blocks


def _admits_lists(kind: Any) -> bool:
    if hasattr(kind, "__value__"):  # a named alias
        return _admits_lists(kind.__value__)
    return get_origin(kind) is list or any(map(_admits_lists, get_args(kind)))


_QUESTIONS: Mapping[str, Callable[[Method, _Members], _Members]] = {
    ELICITATION: _convert_elicitation,
    SAMPLING: _convert_sampling,
}
_REPLIES: Mapping[str, Callable[[Method, _Members], _Members]] = {
    SAMPLING: _convert_sampling_reply,
}
