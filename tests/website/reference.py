"""The pages of the reference that list names of Python: which name is on which page."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from griffe import (
    Alias,
    Attribute,
    Class,
    Extensions,
    GriffeLoader,
    Module,
    Object,
    load_extensions,
)

from website.composed import Composed, objects_below, target_of
from website.markdown import table

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "mcpgen_runtime"
ROOT_OF_ERRORS = f"{PACKAGE}.errors.McpError"
BEFORE = ("Server", "Context", "Client", "ClientHandlers", "connect", "connect_sync", "McpError")
"""Names that come first on their page, in this order; the others follow by name."""


@dataclass(frozen=True)
class Page:
    """A page of the reference: its file, heading, guides, first paragraph, and whose names it has.

    It has those of its modules of the package and of all modules below them.
    """

    name: str
    title: str
    guides: tuple[str, ...]
    about: str
    modules: tuple[str, ...]

    @property
    def intro(self) -> str:
        """The first paragraph with links to the guides."""
        heads = {each: (ROOT / "docs" / f"{each}.md").read_text("utf-8") for each in self.guides}
        links = [f"[{text.splitlines()[0][2:]}](../{name}.md)" for name, text in heads.items()]
        begin = "The guide is" if len(links) == 1 else "The guides are"
        return f"{self.about} {begin} {' and '.join(links)}." if links else self.about


PAGES = (
    Page(
        *("server", "Server and Context", ("servers",)),
        "The class that you write a server with, and what each handler is given.",
        ("server.chosen", "server.server_session", "runtime.request_context"),
    ),
    Page(
        *("content", "Content and results", ()),
        "What tools, resources and prompts return, and what a client gets of them.",
        (
            *("models", "tool_results", "server.toolkit.content", "server.toolkit.completions"),
            *("apps", "skills"),
        ),
    ),
    Page(
        *("toolkit", "Tools of servers", ()),
        "Asking the client, middleware, dependencies, caching, tasks and logs.",
        ("server.toolkit", "runtime", "server"),
    ),
    Page(
        *("http", "HTTP", ("http",)),
        "Settings and limits of a server over HTTP; the options of `Server.asgi` are the attributes"
        " of `ServerHttpSettings`.",
        ("server.asgi", "server.request_head", "framing", "transports"),
    ),
    Page(
        *("shared", "Shared state", ("scaling",)),
        "State that several processes share.",
        (
            *("server.shared", "server.asgi.event_store", "server.asgi.used_ids"),
            *("server.toolkit.key_ring", "runtime.task_store"),
        ),
    ),
    Page(
        *("protected", "Protected servers", ("authorization-server",)),
        "Verifying access tokens.",
        ("server.auth",),
    ),
    Page(
        *("openapi", "OpenAPI", ("openapi",)),
        "A server from an OpenAPI document.",
        ("server.openapi",),
    ),
    Page(
        *("client", "Clients", ("clients", "agents")),
        "Connecting to servers and calling them.",
        ("client", "runtime.task_handle"),
    ),
    Page(
        *("sync", "Clients without an event loop", ()),
        "The same clients for programs that block. The guide is"
        " [Clients](../clients.md#without-an-event-loop).",
        ("client.sync", "client.sync_client", "client.sync_base"),
    ),
    Page(
        *("authorization", "Authorization of clients", ("authorization",)),
        "Getting and keeping access tokens.",
        ("client.auth", "auth", "transports.http.http_client"),
    ),
    Page(
        *("messages", "Messages and codec", ("types",)),
        "Values to JSON and back, messages, channels.",
        (
            *("_wire", "_structs", "_decoding", "messages", "channel", "facts", "foreign_text"),
            "revisions",
        ),
    ),
)
ERRORS = Page(
    *("errors", "Errors", ()),
    "Every error that a package raises. The class says who is to blame, the attributes hold the"
    " data.",
    (),
)
"""The page of all names of errors, whatever module defines them."""
TESTING = "testing"
"""A module that is imported by its name, and its page."""


@cache
def package() -> Module:
    """The package of all revisions, as read from its source."""
    return package_with(Extensions())


@cache
def completed_package() -> Module:
    """The same with the signatures and docstrings that the pages show."""
    return package_with(load_extensions(Composed))


def package_with(extensions: Extensions) -> Module:
    """The package as read with some extensions of griffe."""
    loader = GriffeLoader(search_paths=[ROOT / "generated", *sys.path], extensions=extensions)
    loader.load("msgspec")  # some names of the package are its classes
    loaded = loader.load(PACKAGE)
    loader.resolve_aliases(implicit=True, external=False)
    assert isinstance(loaded, Module)
    return loaded


def public_names() -> list[str]:
    """The names that the package exports, in the order of the alphabet."""
    return sorted(
        name
        for name, member in package().members.items()
        if isinstance(member, Alias) and member.target_path.startswith(f"{PACKAGE}.")
    )


def origin(name: str) -> str:
    """The path within the package of the object that a name stands for."""
    member = package().members[name]
    assert isinstance(member, Alias)
    return member.target_path.removeprefix(f"{PACKAGE}.")


def page_of(name: str) -> Page:
    """The page of a public name."""
    if name.endswith("Error"):
        return ERRORS
    words = origin(name).split(".")
    for length in range(len(words), 0, -1):
        module = ".".join(words[:length])
        for page in PAGES:
            if module in page.modules:
                return page
    raise LookupError(f"expected a page for the module of {name}, {origin(name)}; add it to PAGES")


def names_by_page() -> Mapping[Page, list[str]]:
    """The public names of each page, in the order in which it shows them."""
    names: defaultdict[Page, list[str]] = defaultdict(list)
    for name in public_names():
        names[page_of(name)].append(name)
    for listed in names.values():
        listed.sort(key=lambda name: (BEFORE.index(name) if name in BEFORE else len(BEFORE), name))
    return {page: names[page] for page in (*PAGES, ERRORS)}


def testing_names() -> list[str]:
    """The public names of the module for tests."""
    module = package().members[TESTING]
    return sorted(
        name
        for name, member in module.members.items()
        if isinstance(member, Object)
        and not isinstance(member, Module)
        and name[0] != "_"
        and (isinstance(member, Class) or member.has_docstring)
    )


def error_tree() -> str:
    """Every error of the package below its base, with the first sentence of its docstring."""
    exported = {target_of(package().members[name]).path: name for name in public_names()}
    errors: defaultdict[str, list[Class]] = defaultdict(list)
    for each in objects_below(package()):
        if isinstance(each, Class) and each.path != ROOT_OF_ERRORS:
            paths = [base.path for base in each.mro()]
            if ROOT_OF_ERRORS in paths:
                errors[paths[0]].append(each)

    def lines(error: Class, depth: int) -> Iterator[str]:
        name = exported.get(error.path)
        shown = f"[`{error.name}`](#{PACKAGE}.{name})" if name else f"`{error.name}`"
        summary = "" if error.docstring is None else error.docstring.value.partition("\n\n")[0]
        yield f"{'    ' * depth}- {shown}: {' '.join(summary.split())}\n"
        for below in sorted(errors[error.path], key=lambda each: each.name):
            yield from lines(below, depth + 1)

    root = package()[ROOT_OF_ERRORS.removeprefix(f"{PACKAGE}.")]
    return "".join(lines(root, 0))


def message_types() -> str:
    """The page of the types of messages: a table of members for each type, and what names mean."""
    sections = {}
    for name, member in package()["models"].members.items():
        if name.startswith("_") or isinstance(member, Alias):
            continue
        if isinstance(member, Class):
            about = "" if member.docstring is None else member.docstring.value
            rows = [
                (
                    *(f"`{each.name}`", f"`{each.annotation}`"),
                    *("yes" if each.value is None else "", doc_of(each)),
                )
                for each in member.members.values()
                if isinstance(each, Attribute) and not each.name.startswith("_")
            ]
            header = ("member", "type", "required", "meaning")
            sections[name] = f"{about}\n\n{table(header, rows) if rows else ''}"
        elif isinstance(member, Attribute) and str(member.annotation) == "TypeAlias":
            sections[name] = f"{doc_of(member)}\n\n```python\n{name} = {member.value}\n```\n\n"
    about = (
        "Every type of every revision in `models`: one class for each name, with the members of"
        " all revisions. A module of one revision, such as `r2025_06_18.models`, has the types and"
        " members of that revision. The guide is [Types only](../types.md)."
    )
    listed = "".join(f"## {name}\n\n{sections[name]}" for name in sorted(sections))
    return f"---\nrendered: true\n---\n\n# Types of messages\n\n{about}\n\n{listed}"


def doc_of(member: Attribute) -> str:
    """The docstring of an attribute."""
    return "" if member.docstring is None else member.docstring.value


def text(title: str, about: str, paths: Iterable[str]) -> str:
    """A page with a directive for each object."""
    directives = "".join(f"::: {path}\n\n" for path in paths)
    return f"---\nrendered: true\n---\n\n# {title}\n\n{about}\n\n{directives}"


def python_pages() -> dict[str, str]:
    """The pages of names, by file name."""
    pages = {
        f"{page.name}.md": text(page.title, page.intro, (f"{PACKAGE}.{name}" for name in names))
        for page, names in names_by_page().items()
    }
    errors = pages[f"{ERRORS.name}.md"]
    pages[f"{ERRORS.name}.md"] = errors.replace(ERRORS.about, f"{ERRORS.about}\n\n{error_tree()}")
    pages["types.md"] = message_types()
    about = "A client and a server in one process. The guide is [Testing](../testing.md)."
    paths = (f"{PACKAGE}.{TESTING}.{name}" for name in testing_names())
    return {**pages, f"{TESTING}.md": text("Testing", about, paths)}
