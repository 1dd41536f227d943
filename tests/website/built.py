"""Checks of a built site: the names that the reference has to show; Zensical checks the links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from griffe import Attribute, Class, Function, ParameterKind

from website.composed import section_of, target_of
from website.reference import (
    PACKAGE,
    TESTING,
    completed_package,
    package,
    public_names,
    testing_names,
)

SELF_EXPLAINED = {
    *("DeclaredTools.tools", "HTTPRoute.description", "HTTPRoute.summary"),
    *("encode.value", "hints_of.tool", "to_builtins.value", "ui_of.tool"),
    *("Context.registries", "Context.round_trips", "ServerSession.context"),
    *("OAuth.profile", "OAuth.settings", "WorkloadIdentity.settings"),
    *("ClientCredentials.settings", "EnterpriseManaged.settings"),
}
"""Parameters and attributes whose name and type say enough, and those that the package alone uses.

The set may only shrink.
"""
UNNAMED = {ParameterKind.var_positional, ParameterKind.var_keyword}


@dataclass
class BuiltPage(HTMLParser):
    """A page as a browser gets it."""

    text: str
    anchors: set[str] = field(default_factory=set[str])
    words: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        """Read the text."""
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the id of an element."""
        self.anchors |= {value for name, value in attrs if value is not None and name == "id"}

    def handle_data(self, data: str) -> None:
        """Keep a piece of text."""
        self.words.add(data.strip())


def missing_names(site: Path) -> Iterator[str]:
    """The public names, members and parameters that no page of the reference shows."""
    files = sorted((site / "docs" / "reference").rglob("*.html"))
    pages = [BuiltPage(path.read_text("utf-8")) for path in files]
    names = [*public_names(), *(f"{TESTING}.{name}" for name in testing_names())]
    for name in names:
        anchor = f"{PACKAGE}.{name}"
        page = next((page for page in pages if anchor in page.anchors), None)
        if page is None:
            yield f"reference: expected the name {anchor}"
            continue
        for path, function in functions_of(name):
            if path not in page.anchors:
                yield f"reference: expected the method {path}; it has no docstring"
            for parameter in {*parameters_of(function)} - page.words:
                yield f"reference: expected the parameter {parameter} of {path}"
        for member in attributes_of(name):
            is_shown = f"{anchor}.{member}" in page.anchors or member in page.words
            if not is_shown and f"{name}.{member}" not in SELF_EXPLAINED:
                yield f"reference: expected the attribute {member} of {anchor}"


def unexplained_parameters() -> Iterator[str]:
    """The parameters of public functions and constructors that no docstring explains."""
    for name in public_names():
        target = target_of(completed_package()[name])
        if name.endswith("Error"):
            continue
        entries = section_of(target, "Args") if isinstance(target, Class | Function) else {}
        if isinstance(target, Class):
            attributes = {n for n, each in target.all_members.items() if each.has_docstring}
            entries |= section_of(target, "Attributes") | dict.fromkeys(attributes, "")
            constructor = target.all_members.get("__init__")
            target = target if constructor is None else target_of(constructor)
        if isinstance(target, Function):
            for parameter in parameters_of(target):
                if parameter not in entries and f"{name}.{parameter}" not in SELF_EXPLAINED:
                    yield f"reference: expected an explanation of {parameter} of {name}"


def functions_of(name: str) -> Iterator[tuple[str, Function]]:
    """A function, or the constructor and the public methods of a class, each with its anchor."""
    target = target_of(package()[name])
    path = f"{PACKAGE}.{name}"
    if isinstance(target, Function):
        yield path, target
    elif isinstance(target, Class):
        for function in target.all_members.values():
            if isinstance(function, Function) and function.name == "__init__":
                yield path, function
            elif isinstance(function, Function) and not function.name.startswith("_"):
                yield f"{path}.{function.name}", function


def attributes_of(name: str) -> Iterator[str]:
    """The public attributes of a class, properties among them; no constants of the class."""
    target = target_of(package()[name])
    for member, each in target.all_members.items() if isinstance(target, Class) else ():
        is_own = isinstance(target_of(each), Attribute) and "class-attribute" not in each.labels
        if is_own and not member.startswith("_"):
            yield member


def parameters_of(function: Function) -> Iterator[str]:
    """The parameters of a function that a caller names or has to give."""
    for parameter in function.parameters:
        if parameter.kind not in UNNAMED and parameter.name not in {"self", "cls"}:
            yield parameter.name
