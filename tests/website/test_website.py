"""The site: names of the reference, and classes made of features."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from griffe import GriffeLoader, Module, load_extensions

import documents
import mcpgen_runtime
from mcpgen_runtime import models
from website import built, llms, reference
from website.composed import Composed

FEATURES = '''
    from typing import TypedDict, Unpack


    class DrainOptions(TypedDict, total=False):
        """Ends of connections.

        Attributes:
            drain: Seconds that open requests may take.
        """

        drain: float


    class Options(DrainOptions, total=False): ...


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


def test_a_class_and_its_methods_are_explained_with_their_features(composed: Module) -> None:
    names = ("Server", "Server.stop", "SyncServer.run", "Kernel.run")
    texts = [each.value for name in names if (each := composed[name].docstring)]
    assert texts[0].startswith("A server with features.")
    drain = "    drain: Seconds that open requests may take.\n"
    assert f"    name: Its name.\n{drain}" in texts[0]
    assert "options:" not in texts[0]
    assert (texts[1], texts[2][:6]) == ("End all connections.", "Serve.")
    assert drain in texts[3]
    assert [each.name for each in composed["Kernel.run"].parameters] == ["self", "port", "drain"]


def test_each_public_name_has_a_page_of_the_reference() -> None:
    pages = reference.names_by_page()
    assert [page.name for page, names in pages.items() if not names] == []
    listed = [name for names in pages.values() for name in names]
    assert sorted(listed) == sorted(dir(mcpgen_runtime))


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


def test_a_name_that_no_page_shows_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "reference" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text('<html><body><h2 id="mcpgen_runtime.connect"></body></html>', "utf-8")
    missing = list(built.missing_names(tmp_path))
    assert "reference: expected the name mcpgen_runtime.Server" in missing
    assert "reference: expected the parameter target of mcpgen_runtime.connect" in missing
