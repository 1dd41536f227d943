"""The site: names of the reference, classes made of features, dead links."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from griffe import Class, Docstring, Function, GriffeLoader, Module, load_extensions

import documents
import mcpgen_runtime
from mcpgen_runtime import models
from website import built, llms, markdown, reference
from website import composed as composed_classes
from website.composed import Composed

FEATURES = '''
    from typing import TypedDict, Unpack


    class DrainOptions(TypedDict, total=False):
        """Ends of connections.

        Attributes:
            drain: Seconds that open requests may take.
        """

        drain: float


    class Options(DrainOptions, total=False):
        """All options."""


    class Kernel:
        """A server.

        Args:
            name: Its name.
            options: See `Options`.
        """

        def __init__(self, name: str, **options: Unpack[Options]) -> None: ...

        def run(self, port: int, **options: Unpack[Options]) -> None:
            """Serve.

            Args:
                port: Where to listen.
                options: See `Options`.
            """

        def stop(self) -> None:
            """End all connections."""


    class Server(Kernel):
        """A server with features."""

        def stop(self) -> None:
            """See `Kernel.stop`."""


    class SyncServer:
        """A server that blocks."""

        def run(self, port: int) -> None: ...
'''


@pytest.fixture(scope="module")
def composed(tmp_path_factory: pytest.TempPathFactory) -> Module:
    """A module of features after the extension has completed it."""
    folder = tmp_path_factory.mktemp("composed")
    (folder / "features.py").write_text(dedent(FEATURES), "utf-8")
    loader = GriffeLoader(search_paths=[folder], extensions=load_extensions(Composed))
    module = loader.load("features")
    assert isinstance(module, Module)
    return module


def docstring_of(member: object) -> str:
    """The docstring of a class or function."""
    assert isinstance(member, Class | Function)
    assert member.docstring is not None
    return member.docstring.value


def test_a_class_explains_the_options_of_its_features(composed: Module) -> None:
    text = docstring_of(composed["Server"])
    assert text.startswith("A server with features.")
    assert "    name: Its name.\n    drain: Seconds that open requests may take.\n" in text
    assert "options:" not in text


def test_a_docstring_that_leads_to_another_is_replaced(composed: Module) -> None:
    assert docstring_of(composed["Server.stop"]) == "End all connections."


def test_options_are_parameters_by_keyword(composed: Module) -> None:
    run = composed["Kernel.run"]
    assert [each.name for each in run.parameters] == ["self", "port", "drain"]
    assert "drain: Seconds that open requests may take." in docstring_of(run)


def test_a_blocking_method_is_explained_like_its_counterpart(composed: Module) -> None:
    assert docstring_of(composed["SyncServer.run"]).startswith("Serve.")


def test_each_public_name_has_a_page_of_the_reference() -> None:
    listed = [name for names in reference.names_by_page().values() for name in names]
    assert sorted(listed) == sorted(dir(mcpgen_runtime))


def test_each_page_of_the_reference_has_names() -> None:
    assert [page.name for page, names in reference.names_by_page().items() if not names] == []


def test_a_row_of_a_table_stays_one_row() -> None:
    assert markdown.table(("a", "b"), [("x | y", "two\nlines")]).splitlines()[2:] == [
        "| x \\| y | two lines |",
        "",
    ]
    assert "| `int | None` |" in markdown.table(("a",), [("`int | None`",)])


def test_an_entry_may_explain_several_options() -> None:
    docstring = Docstring("A table.\n\nAttributes:\n    host, port: The address.\n")
    owner = Class("Options", docstring=docstring)
    assert composed_classes.section_of(owner, "Attributes") == {
        "host": "The address.",
        "port": "The address.",
    }


def test_each_parameter_of_a_function_or_class_is_explained() -> None:
    assert list(built.unexplained_parameters()) == []


def test_each_exception_below_the_root_is_in_the_tree_of_errors() -> None:
    tree = reference.error_tree()
    for name in (name for name in dir(mcpgen_runtime) if name.endswith("Error")):
        error = getattr(mcpgen_runtime, name)
        is_listed = f"- [`{name}`](#mcpgen_runtime.{name})" in tree
        assert is_listed == issubclass(error, mcpgen_runtime.McpError), name


def test_the_types_of_messages_are_all_on_one_page() -> None:
    page = reference.message_types()
    classes = (each for each in vars(models).values() if isinstance(each, type))
    names = {each.__name__ for each in classes if each.__module__ == models.__name__} - {"_Merged"}
    assert len(names) > 150
    assert {name for name in names if f"\n## {name}\n" not in page} == set()
    assert "| `input_schema` | `dict[str, Any]` | yes |" in page


def test_every_page_that_users_read_is_in_the_texts_for_programs(tmp_path: Path) -> None:
    pages = [
        page
        for part in llms.LISTED
        for each in documents.SETTINGS["nav"]
        for page in documents.pages_in(each.get(part, []))
    ]
    for page in pages:
        place = tmp_path / llms.markdown_of(page)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"# {page}\n", "utf-8")
    llms.write(tmp_path)
    listed = (tmp_path / "llms.txt").read_text("utf-8")
    assert [page for page in pages if llms.markdown_of(page) not in listed] == []
    assert "(https://mcpgen.example/docs/start/index.md): install, generate, serve" in listed
    full = (tmp_path / "llms-full.txt").read_text("utf-8")
    assert "# docs/servers.md\n" in full
    assert "# docs/reference/server.md\n" in full
    assert "# docs/reference/types.md\n" not in full


def write_page(folder: Path, text: str) -> None:
    """Write a page of a site with some text."""
    folder.mkdir(exist_ok=True)
    (folder / "index.html").write_text(f"<html><body>{text}</body></html>", "utf-8")


@pytest.mark.parametrize(
    ("link", "defects"),
    [
        ("../other/", []),
        ("../other/#there", []),
        ("https://elsewhere.example/#any", []),
        ("../gone/", ["page/index.html: expected a page at ../gone/"]),
        ("../other/#gone", ["page/index.html: expected an anchor at ../other/#gone"]),
        ("#gone", ["page/index.html: expected an anchor at #gone"]),
    ],
)
def test_a_dead_link_is_reported(tmp_path: Path, link: str, defects: list[str]) -> None:
    write_page(tmp_path / "page", f'<a href="{link}">')
    write_page(tmp_path / "other", '<h2 id="there">')
    assert list(built.dead_links(tmp_path)) == defects


def test_a_name_that_no_page_shows_is_reported(tmp_path: Path) -> None:
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    write_page(tmp_path / "docs" / "reference", '<h2 id="mcpgen_runtime.connect">')
    missing = list(built.missing_names(tmp_path))
    assert "reference: expected the name mcpgen_runtime.Server" in missing
    assert "reference: expected the parameter target of mcpgen_runtime.connect" in missing
