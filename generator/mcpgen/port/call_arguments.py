"""Arguments of calls: their keywords, new ones, and calls with other arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable

import libcst as cst

from mcpgen.port import alternatives
from mcpgen.port.sdk_members import sdk_members
from mcpgen.port.servers import dotted_name, sdk_name

_ROLES = sdk_members().messages


def keyword_of(argument: cst.Arg) -> str | None:
    return None if argument.keyword is None else argument.keyword.value


def changed_arguments(original: cst.Call, updated: cst.Call) -> Iterable[tuple[cst.Arg, cst.Arg]]:
    """The arguments of a call, each with what a change of what it contains made of it."""
    return zip(original.args, updated.args, strict=True)


def class_name(call: cst.Call) -> str:
    return dotted_name(call.func).rpartition(".")[2]


def keyword_argument(keyword: str, value: cst.BaseExpression) -> cst.Arg:
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(value, keyword=cst.Name(keyword), equal=equal)


def is_name(value: cst.BaseExpression, name: str) -> bool:
    return isinstance(value, cst.Name) and value.value == name


def negation_of(value: cst.BaseExpression) -> cst.BaseExpression:
    if is_name(value, "True"):
        return cst.Name("False")
    if is_name(value, "False"):
        return cst.Name("True")
    return cst.UnaryOperation(cst.Not(), value)


def uri_template(value: cst.BaseExpression) -> cst.BaseExpression:
    """A URI template with `{+path}` for the `{path*}` of FastMCP."""
    if not isinstance(value, cst.SimpleString) or "*}" not in value.value:
        return value
    return value.with_changes(value=re.sub(r"\{(\w+)\*\}", r"{+\1}", value.value))


def _without_comment(comma: cst.Comma) -> cst.Comma:
    space = comma.whitespace_after
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return comma
    line = cst.TrailingWhitespace(newline=space.first_line.newline)
    return comma.with_changes(whitespace_after=space.with_changes(first_line=line, empty_lines=()))


def with_arguments(call: cst.Call, arguments: Iterable[cst.Arg]) -> cst.Call:
    """A call with other arguments, with the whitespace of the first ones kept.

    Those by position come first, as Python wants it, although some became keywords.
    """
    made = sorted(arguments, key=lambda each: each.keyword is not None or each.star == "**")
    if not made:
        return call.with_changes(args=[], whitespace_before_args=cst.SimpleWhitespace(""))
    old = call.args
    separator = next((e.comma for e in old if isinstance(e.comma, cst.Comma)), None)
    ending = old[-1] if old else None
    if len(old) < 2 or separator is None:
        separator = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    separator = _without_comment(separator)
    for index, each in enumerate(made[:-1]):
        if not isinstance(each.comma, cst.Comma) or each is ending:
            made[index] = each.with_changes(
                comma=separator, whitespace_after_arg=cst.SimpleWhitespace("")
            )
    if ending is not None and made[-1] is not ending:
        made[-1] = made[-1].with_changes(
            comma=ending.comma, whitespace_after_arg=ending.whitespace_after_arg
        )
    return call.with_changes(args=made)


def message_arguments(name: str | None, call: cst.Call) -> list[cst.Arg] | None:
    """The arguments of `Message` for a message of a prompt; `None` if the call is another one.

    Args:
        name: The qualified name of the class, whose parameters are `content` and `role`.
        call: Its call.
    """
    if name is None:
        return None
    role = None if name.startswith("fastmcp") else _ROLES.get(name.rpartition(".")[2])
    if role is None and not alternatives.is_prompt_message(name):
        return None
    given: dict[str, cst.BaseExpression] = {}
    for keyword, each in zip(("content", "role", *[""] * len(call.args)), call.args, strict=False):
        given["" if each.star else keyword_of(each) or keyword] = each.value
    if "content" not in given or not given.keys() <= {"content", "role"}:
        return None
    first = given.get("role", cst.SimpleString('"user"'))
    return [
        cst.Arg(first if role is None else cst.SimpleString(f'"{role}"')),
        cst.Arg(given["content"]),
    ]


def has_known_options(call: cst.Call) -> bool:
    """Whether each argument of a call is a keyword that `run` and `asgi` have too."""
    return all(
        keyword_of(each) in ("path", "stateless_http") and not each.star for each in call.args
    )


def made_item(
    visitor: cst.MetadataDependent, original: cst.Call, updated: cst.Call
) -> tuple[cst.Call, cst.Call] | None:
    """The call that adds the function of `Tool.from_function(function, ...)` and the like."""
    if len(original.args) != 1 or not isinstance(original.args[0].value, cst.Call):
        return None
    maker = original.args[0].value
    name = sdk_name(visitor, maker.func)
    if name is None or not name.endswith(".from_function"):
        return None
    made = cst.ensure_type(updated.args[0].value, cst.Call)
    arguments = [
        each.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT)
        if keyword_of(each) == "fn"
        else each
        for each in made.args
    ]
    return maker, made.with_changes(func=updated.func, args=arguments)
