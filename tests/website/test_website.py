"""The site: names of the reference, classes made of features, dead links."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from griffe import Class, Function, GriffeLoader, Module, load_extensions

import mcpgen_runtime
from website import built, reference, tables
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
    assert tables.table(("a", "b"), [("x | y", "two\nlines")]).splitlines()[2:] == [
        "| x \\| y | two lines |",
        "",
    ]


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
