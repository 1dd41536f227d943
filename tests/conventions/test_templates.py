"""Rules for templates: literals and docstrings from one place, names, nothing in quotes."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from jinja2 import Environment, nodes

from conventions.sources import GENERATOR, TEMPLATES, relative_name, text_of

pytestmark = pytest.mark.lengthy

NAMES = {
    *("argument", "argument.name", "argument.type"),
    *("method.name", "method.parameters", "method.python_name", "method.returns"),
    *("alias.name", "alias.type", "class.name", "member.default", "member.name", "member.type"),
    *("call.answer", "call.params", "call.python_name", "call.return_type"),
    *("class_name", "base", "base_class", "check.name", "constraint", "tag.name", "variant.type"),
    *("field.annotated or field.type_hint", "field.field", "field.name", "field.type_hint"),
    *("field.represented_default", "fields[0].type_hint"),
    *("fields[0].annotated or fields[0].type_hint", "part.type_hint"),
    *("folder", "export.module", "kind.name", "kind.type", "method.type", "name", "type.name"),
    *("module", "package.requires.package", "package.sole.folder", "runtime", "runtime_package"),
    *("package.name", "revision.folder", "revision.lifecycle", "extension.module"),
    *("revision.roles.client_capabilities", "revision.roles.implementation"),
    *("revision.roles.meta", "revision.roles.server_capabilities"),
    *("row.constant", "row.new", "row.old", "row.params", "row.result"),
    "project.module",
    *("argument.annotated", "argument.default", "argument.parameter", "field.default"),
    *("field.type", "field.value", "member", "mirror.abc_imports", "mirror.calls_class"),
    "mirror.example.handler_return_type",
    *("mirror.example.method", "mirror.example_words", "mirror.msgspec_imports"),
    *("mirror.calls_msgspec_imports", "mirror.calls_typing_imports"),
    *("mirror.protocol", "mirror.typing_imports", "prompt.method", "resource.method"),
    *("resource.number", "prompt.number", "tool.arguments", "tool.checks"),
    *("tool.handler_arguments", "tool.handler_output", "tool.method", "tool.number"),
    *("tool.output", "tool.result", "tool.return_type"),
}
"""Expressions for names and types: made by the generator, never text of a schema."""

DOCSTRINGS = {
    *("call.doc", "call.handler_doc", "doc", "members.get(field.name)", "tag.doc"),
    *("alias.doc", "class.doc", "member.doc", "method.doc"),
    *("field.doc", "mirror.calls_doc", "mirror.doc", "prompt.doc", "resource.doc", "tool.doc"),
}
"""Expressions for docstrings, quotes included, as `docstrings.docstring` makes them."""

PROJECT_FILES = TEMPLATES / "project"
PROJECT_VALUES = {
    *("project.dev_requirements", "project.http_requirements", "project.install_mcpgen"),
    *("project.mirror", "project.module", "project.namespace", "project.features"),
    *("project.name", "project.requirements", "project.revisions", "project.side"),
    *("project.schemas_dir", "project.transports"),
}
"""Values allowed in files of a project other than Python: checked names, and TOML literals.

`mcpgen.literals.checked` looks at each when it is written.
"""

IMPORTS = "_imports."
"""Part of the expressions for what a module imports."""


@dataclass
class Page:
    """A template read from top to bottom: in which string or comment a value would stand."""

    open: str = ""
    faults: list[str] = field(default_factory=list[str])

    def text(self, text: str) -> None:
        """Follow quotes and comments through the text between expressions."""
        at = 0
        while at < len(text):
            at += self._step(text, at)

    def _step(self, text: str, at: int) -> int:
        quotes = self.open.lstrip("fFrRbB")
        if self.open == "#":
            self.open = "" if text[at] == "\n" else "#"
        elif quotes:
            if text[at] == "\\":
                return 2
            if text.startswith(quotes, at):
                self.open = ""
                return len(quotes)
        elif text[at] in "'\"":
            width = 3 if text.startswith(text[at] * 3, at) else 1
            prefix = text[:at][len(text[:at].rstrip("fFrRbB")) :]
            self.open = prefix + text[at] * width
            return width
        elif text[at] == "#":
            self.open = "#"
        return 1

    def value(self, node: nodes.Expr) -> None:
        """Judge an expression by where it stands and what it is."""
        source = format_expression(node)
        if self.open:
            self.faults.append(f"{source} in {self.open}")
        elif not is_literal(node) and source not in NAMES | DOCSTRINGS and IMPORTS not in source:
            self.faults.append(f"{source} without the filter `literal`")


def is_literal(node: nodes.Expr) -> bool:
    """Whether an expression goes through the function that writes literals."""
    match node:
        case nodes.Filter(name="literal") | nodes.Call(node=nodes.Name(name="literal")):
            return True
    return False


def format_expression(node: nodes.Node | None) -> str:
    """An expression as it stands in the template, near enough to tell it by."""
    match node:
        case nodes.Name(name=name):
            return name
        case nodes.Getattr(node=inner, attr=attr):
            return f"{format_expression(inner)}.{attr}"
        case nodes.Getitem(node=inner, arg=arg):
            return f"{format_expression(inner)}[{format_expression(arg)}]"
        case nodes.Call(node=inner, args=args):
            return f"{format_expression(inner)}({', '.join(map(format_expression, args))})"
        case nodes.Const(value=value):
            return repr(value)
        case nodes.Or(left=left, right=right):
            return f"{format_expression(left)} or {format_expression(right)}"
        case nodes.Filter(node=inner, name=name):
            return f"{format_expression(inner)} | {name}"
        case _:
            return str(node)


def read(body: list[nodes.Node], page: Page) -> None:
    """Follow the parts of a template in the order in which they stand."""
    for node in body:
        match node:
            case nodes.Output(nodes=parts):
                for part in parts:
                    if isinstance(part, nodes.TemplateData):
                        page.text(part.data)
                    else:
                        page.value(part)
            case nodes.FilterBlock(filter=nodes.Filter(name="docstring")):
                page.faults += [f"a docstring in {page.open}"] if page.open else []
            case nodes.For(body=inner, else_=other):
                read([*inner, *other], page)
            case nodes.If(body=inner, elif_=others, else_=other):
                read([*inner, *others, *other], page)
            case nodes.Include() | nodes.Assign():
                pass
            case _:
                page.faults.append(f"{type(node).__name__}, which no template needs")


def faults(source: str) -> list[str]:
    """Values that a template writes in a place where they are not allowed."""
    page = Page()
    read(Environment(autoescape=False).parse(source).body, page)
    return [*page.faults, *([f"{page.open} left open"] if page.open not in ("", "#") else [])]


MODELS = sorted((TEMPLATES / "models").rglob("*.jinja2"))
"""Templates that datamodel-code-generator renders, in an environment of its own."""


@pytest.mark.parametrize("path", MODELS, ids=relative_name)
def test_a_template_of_models_looks_names_up_by_get(path: Path) -> None:
    """By a name that is not known before, Jinja gives an attribute too."""
    lookups = Environment(autoescape=False).parse(text_of(path)).find_all(nodes.Getitem)
    computed = [node for node in lookups if not isinstance(node.arg, nodes.Const)]
    assert [format_expression(node) for node in computed] == []


def test_the_environments_of_the_generator_are_sandboxed() -> None:
    names = {
        alias.name
        for path in sorted(GENERATOR.rglob("*.py"))
        for node in ast.walk(ast.parse(text_of(path)))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "jinja2"
        for alias in node.names
    }
    assert {name for name in names if name.endswith("Environment")} == {
        "ImmutableSandboxedEnvironment"
    }


def is_text(path: Path) -> bool:
    """Whether a template is for a file of a project that is no Python."""
    return path.is_relative_to(PROJECT_FILES) and not path.name.endswith(".py.jinja")


EVERY = sorted(TEMPLATES.rglob("*.jinja*"))


@pytest.mark.parametrize("path", [path for path in EVERY if is_text(path)], ids=relative_name)
def test_a_text_of_a_project_holds_checked_values_alone(path: Path) -> None:
    tree = Environment(autoescape=False).parse(text_of(path))
    outputs = [part for output in tree.find_all(nodes.Output) for part in output.nodes]
    values = {
        format_expression(part) for part in outputs if not isinstance(part, nodes.TemplateData)
    }
    assert values - PROJECT_VALUES == set()


@pytest.mark.parametrize("path", [path for path in EVERY if not is_text(path)], ids=relative_name)
def test_a_template_writes_values_as_literals_and_quotes_nothing(path: Path) -> None:
    assert faults(text_of(path)) == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('name="{{ row.name }}"', 'row.name in "'),
        ('"""{{ call.doc }}"""', 'call.doc in """'),
        ('f"{{ literal(check.message) }}"', "in f"),
        ("x = 1  # {{ row.name }}", "row.name in #"),
        ("name={{ row.name }}", "row.name without the filter `literal`"),
        ('"{% filter docstring %}x{% endfilter %}"', 'a docstring in "'),
        ("{% macro m() %}{% endmacro %}", "Macro, which no template needs"),
    ],
)
def test_a_value_in_quotes_or_without_the_filter_is_found(source: str, fault: str) -> None:
    assert fault in faults(source)[0]


@pytest.mark.parametrize(
    "source",
    [
        "name={{ row.name | literal }}",
        "{% filter docstring %}About {{ revision.name }}.{% endfilter %}",
        'x = "a \\" b"\n# it\'s\n{{ row.constant }} = 1',
        "'''a'b'''{{ call.doc }}",
    ],
)
def test_literals_docstrings_and_names_are_no_fault(source: str) -> None:
    assert faults(source) == []
