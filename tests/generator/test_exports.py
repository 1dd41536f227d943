"""Public names of packages: where they are, and old names that are still offered."""

from __future__ import annotations

import pytest

from mcpgen import schema
from mcpgen.model import exports
from mcpgen.model.exports import Export, RenamedExport
from mcpgen.model.parts import Selection, features
from mcpgen.schema import facts


@pytest.mark.parametrize(
    ("module", "folders", "home"),
    [
        (".server.server_session", ("r1",), ".r1.server"),
        (".server.server_session", ("r1", "r2"), ".server.server_session"),
        (".errors", ("r1",), ".errors"),
    ],
)
def test_the_session_of_one_revision_is_in_its_folder(
    module: str, folders: tuple[str, ...], home: str
) -> None:
    assert exports.home_of(module, folders) == home


def test_old_names_are_offered_where_their_new_ones_are() -> None:
    rows = [Export(".a", frozenset(), ("RequestContext", "Server"))]
    old = ("Exchange", "AnswerLostError", "Unknown")
    assert exports.renamed_exports(old, rows) == (RenamedExport("Exchange", "RequestContext"),)


@pytest.mark.parametrize(
    ("renames", "current", "expected"),
    [
        ({"A": "B"}, {"B"}, {"A": "B"}),
        ({"A": "B"}, {"A", "B"}, {}),
        ({"A": "B"}, {"C"}, {}),
        ({"A": "B", "B": "C"}, {"C"}, {"A": "C", "B": "C"}),
        ({"A": "B", "B": "C"}, {"B", "C"}, {"A": "B"}),
        ({"A": "B", "B": "A"}, {"C"}, {}),
        ({"Z": "C", "A": "C"}, {"C"}, {"A": "C", "Z": "C"}),
    ],
)
def test_old_names_of_types_lead_to_the_present_ones(
    renames: dict[str, str], current: set[str], expected: dict[str, str]
) -> None:
    rows = exports.renamed_types(renames, current)
    assert [(row.old, row.new) for row in rows] == [*expected.items()]


def test_names_are_read_from_the_text_of_a_module() -> None:
    text = "class A: ...\nB: TypeAlias = int\na.b: int = 1\nC = 1\ndef d(): ...\n"
    assert exports.type_names(text) == {"A", "B"}
    assert exports.type_names("class") == frozenset()
    table = "_NAMES = {'a': ('B', 'A'), 'b': 'C'}\n__all__ = ['D', 1]\nOTHER = ['E']\n"
    assert exports.public_names(table) == ("A", "B", "C", "D")


def test_entries_are_files_of_the_parts_of_a_package() -> None:
    newest = [facts.load(schema.latest().name)]
    types = features(Selection(("types",)), newest)
    assert {*exports.entries(types, ("r1",))} >= {"_wire.py", "r1/methods.py"}
    assert not [path for path in exports.entries(types, ("r1",)) if "client" in path]
    client = features(Selection(("client",)), newest)
    vendored = {*exports.entries(client, ("r1",), ("r1/paint",))}
    assert vendored >= {"r1/client.py", "r1/paint/client.py", "errors.py"}
    assert "r1/paint/server.py" not in vendored
    installed = features(Selection(("client",), runtime="installed"), newest)
    assert "errors.py" not in {*exports.entries(installed, ("r1",))}
