"""Documents: links lead somewhere, names exist and are public."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import importlib
import inspect
import json
import re
import tomllib
import typing
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from jinja2 import Environment

import documents
import mcpgen_runtime
from conventions.sources import ROOT
from documents import (
    LINK,
    SPAN,
    Block,
    Link,
    anchors_of,
    blocks_of,
    links,
    relative_name,
    tables_of,
)
from mcpgen_runtime import Client, ClientGroup, Context, RequestContext, Server, testing
from mcpgen_runtime.client.chosen import ConnectOptions
from mcpgen_runtime.server.asgi.chosen_http import ServerHttpOptions
from mcpgen_runtime.server.chosen import ServerOptions
from mcpgen_runtime.testing import Pair

pytestmark = [pytest.mark.processes, pytest.mark.lengthy]

CHARACTERS_OF_A_CHANGE = 600
INSIDES = {"docs/design.md", "docs/adding-a-revision.md", "docs/contributing.md"}
"""Documents for those who change mcpgen; they may name what is not public."""
PUBLIC_MODULE = re.compile(
    r"pkg(?:\.models|\.testing|\.r20\d\d_\d\d_\d\d(?:\.(?:models|methods|client|server))?)?"
)
"""Modules that the documents may import from."""
NOT_ON_THE_SITE = {"AGENTS.md"}
"""Documents that the navigation of the site leaves out."""
OTHERS = {"docs/coming-from.md", "docs/port.md"}
"""Documents whose tables have names of other packages in the first column."""
MODULES = {
    f"pkg.r{revision.replace('-', '_')}.{name}"
    for revision in mcpgen_runtime.REVISIONS
    for name in ("models", "methods", "client", "server")
} | {"pkg.models"}
OBJECTS: dict[str, tuple[Any, ...]] = {
    "client": (Client, ClientGroup),
    "ctx": (Context, RequestContext),
    "pair": (Pair,),
    "server": (Server,),
}
"""Classes of what the documents call by these names."""
NOT_OURS = {
    *("Accept", "Authorization", "Host", "Origin"),  # header fields
    "Connection",  # of the part `protocol`
    *("RecordStringString", "XResult", "XResultResponse"),  # stand for names of a schema
    *("XNotification", "XRequest"),  # likewise
    "TaskStore",  # of packages with the tasks extension
    *("ClientSession", "InitializationOptions"),  # of the official SDK, which a port changes
    *("Decimal", "Field", "Path", "SecretBytes", "SecretStr"),  # of the standard library, pydantic
    *("Ann", "Book", "Borrower", "Terminal"),  # of the project of the tutorial
}
PROXIES = {"caddyfile", "haproxy", "nginx"}
"""Of what is written for each of these, one block is tested by it."""

LANGUAGES = {"", "console", "jinja", "json", "python", "sh", "text", "toml", "typescript", "yaml"}
LANGUAGES |= {*PROXIES}
"""Those without a word are drawings."""
NAME = re.compile(r"(?P<head>[A-Z]\w*[a-z]\w*|client|ctx|pair|server|connect\w*)(?P<rest>[.(].*)?")


@pytest.mark.parametrize(
    "link", links(), ids=lambda link: f"{relative_name(link.document)}:{link.target}"
)
def test_a_link_leads_to_a_file_and_a_heading(link: Link) -> None:
    target, anchor = documents.target_of(link)
    rendered = target.is_relative_to(documents.ROOT / "docs" / "reference")  # `nox -s docs` checks
    assert rendered or target.is_file()
    assert not anchor or rendered or anchor in anchors_of(target)


def test_links_of_the_readme_lead_on_wherever_an_index_shows_it() -> None:
    targets = [link.target for link in links() if link.document == documents.README]
    assert [target for target in targets if "://" not in target] == []
    assert {f"{documents.SITE}docs/start/", f"{documents.FILES}LICENSE"} <= {*targets}


def test_the_index_leads_to_every_document() -> None:
    index = documents.ROOT / "docs" / "README.md"
    named = {link.target for link in links() if link.document == index}
    folder = documents.ROOT / "docs"
    pages = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.md")
        if path.parent != documents.CHANGES
    }
    assert pages - {"README.md"} <= named


def test_the_navigation_of_the_site_has_every_document() -> None:
    listed = documents.pages_in(documents.SETTINGS["nav"])
    pages = {relative_name(document) for document in documents.documents()} - NOT_ON_THE_SITE
    written = {page for page in listed if not page.startswith("docs/reference/")}
    assert written == pages | {"CHANGELOG.md"}
    assert len(listed) == len({*listed})


def test_the_site_names_the_version_of_the_project() -> None:
    project = tomllib.loads((documents.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"mcpgen {project['version']}," in documents.SETTINGS["copyright"]


CHANGE = re.compile(r"\+[a-z0-9]+(-[a-z0-9]+)*\.(added|changed|security|fixed)\.md")


@pytest.mark.parametrize("path", documents.changes(), ids=lambda path: str(path.name))
def test_a_change_has_a_name_that_fits_and_few_sentences(path: Path) -> None:
    assert CHANGE.fullmatch(path.name), "docs/contributing.md says how a file is named"
    text = path.read_text("utf-8")
    assert re.fullmatch(r"\S[^\n]*[.)]\n", text), "expected one line that ends with a full stop"
    assert len(text) <= CHARACTERS_OF_A_CHANGE
    for target in documents.LINK.findall(text):
        link = Link(documents.ROOT / "CHANGELOG.md", target)
        target_file, anchor = documents.target_of(link)
        assert target_file.is_file()
        assert not anchor or anchor in anchors_of(target_file)


def test_every_block_is_of_a_language_that_a_test_knows() -> None:
    assert [block.place for block in documents.blocks() if block.language not in LANGUAGES] == []


@pytest.mark.parametrize("name", documents.examples())
def test_a_named_file_occurs_once_and_has_the_syntax_of_its_name(name: str) -> None:
    (block,) = (each for each in documents.blocks() if (each.role, each.name) == ("example", name))
    match Path(name).suffix:
        case ".py":
            ast.parse(block.text)
        case ".json":
            json.loads(block.text)
        case ".ts":
            assert block.language == "typescript"  # generator/test_document_commands.py reads it
        case ".toml":
            tomllib.loads(block.text)
        case ".yml":
            yaml.safe_load(block.text)
        case ".jinja":
            Environment(autoescape=False).parse(block.text)
        case suffix:
            pytest.fail(f"no test reads {suffix}")


def test_the_figures_of_the_readme_are_those_of_the_table() -> None:
    figures = re.findall(r"(\d\S* [um]s)\b", documents.README.read_text("utf-8"))
    [row] = [
        row
        for row in documents.tables_of(documents.ROOT / "docs" / "figures.md")
        if row[0] == "real call over HTTP, 32 at once, 2025-11-25"
    ]
    assert figures == [row[1], row[2].partition(" (")[0]]


def test_the_sessions_of_the_readme_s_command_are_run_in_ci() -> None:
    assert "\nuvx nox\n" in documents.README.read_text("utf-8")
    options = (documents.ROOT / "noxfile.py").read_text("utf-8")
    sessions = re.search(r"nox\.options\.sessions = \[(.*)\]", options)
    assert sessions is not None
    words = re.search(r"sessions=\(([^)]*)\)", (documents.ROOT / ".ci" / "run").read_text("utf-8"))
    assert words is not None
    assert {name.strip('" ') for name in sessions[1].split(",")} <= {*words[1].split()}


def python_blocks() -> list[Block]:
    """The blocks of Python of all documents that users write, each as a file of its own."""
    return [
        block
        for block in documents.blocks()
        if block.language == "python" and block.role not in {"sample", *documents.STEPS}
    ]


@pytest.mark.parametrize("block", documents.samples(), ids=lambda block: block.place)
def test_a_sample_of_generated_code_is_in_the_package(block: Block) -> None:
    text = (Path(mcpgen_runtime.__file__).parent / block.name).read_text("utf-8")
    assert block.text in text


@pytest.mark.parametrize("block", python_blocks(), ids=lambda block: block.place)
def test_code_imports_public_names_alone(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text)):
        match node:
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] == "pkg":
                assert PUBLIC_MODULE.fullmatch(module)
                public = public_names(importlib.import_module(f"mcpgen_runtime{module[3:]}"))
                modules = {name.name for name in node.names if f"{module}.{name.name}" in MODULES}
                assert {name.name for name in node.names} <= public | modules


def public_names(module: ModuleType) -> set[str]:
    """The public names of a module."""
    return set(getattr(module, "__all__", ())) or {n for n in vars(module) if n[0] != "_"}


def spans() -> Iterator[tuple[str, str]]:
    """Code within the lines of the documents for users, each with its document."""
    for document in documents.documents():
        if relative_name(document) not in INSIDES:
            prose = documents.prose_of(document)
            if relative_name(document) in OTHERS:
                prose = re.sub(r"^\| .*? \|", "|", prose, flags=re.MULTILINE)
            for span in documents.SPAN.findall(prose):
                yield relative_name(document), span


def model_names() -> set[str]:
    """Every name that the messages of some revision have."""
    return {
        name
        for revision in mcpgen_runtime.REVISIONS
        for name in vars(
            importlib.import_module(f"mcpgen_runtime.r{revision.replace('-', '_')}.models")
        )
    }


KNOWN = (
    set(dir(mcpgen_runtime))
    | public_names(testing)
    | model_names()
    | set(dir(builtins))
    | set(dir(typing))
    | {"ServerHandlers", "TypedDict", "Struct", "Structs", "TypedDicts"}
    | {"Tasks", "MemoryTaskStore"}  # of packages with the extension
    | NOT_OURS
)


def unknown_in(span: str) -> str | None:
    """The name in a span that does not exist; `None` if all exist, or the span has no name."""
    match = NAME.fullmatch(span)
    is_file = span in documents.examples() or span.endswith(".json")
    if match is None or is_file or "-" in span.partition("(")[0]:
        return None
    head, rest = match["head"], match["rest"] or ""
    if head not in OBJECTS and head not in KNOWN:
        return head
    member = re.match(r"\.(\w+)", rest)
    exported = getattr(mcpgen_runtime, head) if head in dir(mcpgen_runtime) else None
    owners = OBJECTS.get(head) or (exported,)
    if member and owners[0] is not None and not any(has(each, member[1]) for each in owners):
        return f"{head}.{member[1]}"
    return None


def has(owner: Any, name: str) -> bool:
    """Whether objects of a class have a member."""
    return hasattr(owner, name) or name in getattr(owner, "__dataclass_fields__", {})


def test_documents_name_what_exists_and_is_public() -> None:
    named = [(document, span, unknown_in(span)) for document, span in spans()]
    assert [each for each in named if each[2]] == []
    assert len([span for _, span in spans() if NAME.fullmatch(span)]) > 50


CALLED: dict[str, Callable[..., Any]] = {
    "connect": mcpgen_runtime.connect,
    "connect_sync": mcpgen_runtime.connect_sync,
    "connected": testing.connected,
    "Server": Server,
    "Caching": mcpgen_runtime.Caching,
    "Timeouts": mcpgen_runtime.Timeouts,
    "server.asgi": Server.asgi,
    "server.run": Server.run,
    "client.listen": Client.listen,
    "client.call_tool": Client.call_tool,
}
OPTIONS = {field.name for field in dataclasses.fields(mcpgen_runtime.ServerHttpSettings)}
OPTIONS |= ServerOptions.__optional_keys__ | ConnectOptions.__optional_keys__
OPTIONS |= testing.PairOptions.__optional_keys__


def calls_in(source: str) -> Iterator[ast.Call]:
    """The calls in some text, if that is Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in CALLED:
            yield node


def test_calls_in_documents_use_keywords_that_exist() -> None:
    written = [(document, span) for document, span in spans()]
    written += [(block.place, block.text) for block in python_blocks()]
    wrong = []
    for place, source in written:
        for call in calls_in(source):
            function = CALLED[ast.unparse(call.func)]
            parameters = inspect.signature(function).parameters
            known = parameters.keys() | (OPTIONS if "options" in parameters else set())
            named = {str(keyword.arg) for keyword in call.keywords}
            wrong += [(place, name) for name in sorted(named - known)]
    assert wrong == []


def test_the_page_of_servers_explains_each_argument() -> None:
    parameters = inspect.signature(Server).parameters.keys() - {"options"}
    rows = documents.tables_of(documents.ROOT / "docs" / "servers.md")
    explained = {span for row in rows for span in documents.SPAN.findall(row[0])}
    assert (parameters | ServerOptions.__optional_keys__) - explained == set()


def test_each_setting_of_http_is_an_option_of_the_same_type() -> None:
    settings = {each.name: each.type for each in fields(mcpgen_runtime.ServerHttpSettings)}
    assert settings.pop("path") == "str"
    options = ServerHttpOptions.__annotations__
    assert {name: kind.__forward_arg__ for name, kind in options.items()} == settings


PAGE = ROOT / "docs" / "tier-audit.md"
ROWS = [row for row in tables_of(PAGE) if row[0].isdigit()]
"""Number, name, server and client of each feature."""


def test_every_feature_of_the_official_list_has_a_row_with_both_sides() -> None:
    assert [int(row[0]) for row in ROWS] == list(range(1, 49))
    one_side = [int(number) for number, _, *cells in ROWS if "none" in cells]
    assert one_side == list(range(37, 43))  # transports of the client, or of the server


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_a_feature_has_a_block_with_its_name(row: list[str]) -> None:
    for cell in row[2:]:
        if cell != "none":
            (target,), (code,) = LINK.findall(cell), SPAN.findall(cell)
            document = (PAGE.parent / target.partition("#")[0]).resolve()
            python = [each.text for each in blocks_of(document) if each.language == "python"]
            assert [text for text in python if code in text], cell
