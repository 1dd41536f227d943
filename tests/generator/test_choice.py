"""`--extra`, `--decoding` and `--mutability`: what becomes of members and of models."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.command_line import run
from generator.selections import LAST_WITH_SESSIONS, NEWEST, rendered, spec_of, write_package
from mcpgen.errors import UsageError
from mcpgen.model import choice
from mcpgen.names import DECODINGS, LIBRARIES, MUTABILITIES
from mcpgen.render import tree

BOTH = pytest.mark.parametrize("library", LIBRARIES)
EACH = pytest.mark.parametrize("decoding", DECODINGS)
TOOL = b'{"inputSchema":{"type":"object"},"name":"a","annotations":{"x":1},"category":"w"}'
TEXT = b'{"type":"text","text":"a","x":1}'

PackageOf = Callable[..., Any]


@pytest.fixture(scope="module")
def package_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageOf]:
    """A function that returns the package of words of `--extra`, with its module of types."""
    folder = tmp_path_factory.mktemp("extra")

    @cache
    def make(library: str, decoding: str, *words: str) -> Any:
        name = f"extra_{library}_{decoding}_{'_'.join(words).replace('=', '_')}"
        chosen = choice.selection(("types",), models=library, decoding=decoding, extra=words)
        files = tree.render_package([spec_of(LAST_WITH_SESSIONS)], name, chosen, form=dict)
        write_package(files, folder, name)
        package: Any = importlib.import_module(name)
        package.types = importlib.import_module(f"{name}.r2025_11_25.models")
        return package

    sys.path.insert(0, str(folder))
    yield make
    sys.path.remove(str(folder))


@BOTH
@EACH
def test_a_type_may_keep_them_where_others_drop_them(
    package_of: PackageOf, library: str, decoding: str
) -> None:
    package = package_of(library, decoding, "Tool=keep")
    kept = json.loads(TOOL) | {"annotations": {}}
    tool = package.decoder(package.types.Tool)(TOOL)
    assert json.loads(package.encode(tool)) == kept
    page = package.decoder(package.types.ListToolsResult)(b'{"tools":[%b],"y":1}' % TOOL)
    assert json.loads(package.encode(page)) == {"tools": [kept]}
    assert package.to_builtins(package.convert(json.loads(TOOL), package.types.Tool)) == kept


@BOTH
@EACH
def test_an_error_names_the_member_that_a_type_forbids(
    package_of: PackageOf, library: str, decoding: str
) -> None:
    package = package_of(library, decoding, "forbid", "Tool=ignore")
    error = "Object contains unknown field `x`"
    with pytest.raises(package.ValidationError, match=error):
        package.decoder(package.types.TextContent)(TEXT)
    with pytest.raises(package.ValidationError) as within:
        package.decoder(package.types.CallToolResult)(b'{"content":[%b]}' % TEXT)
    assert str(within.value) == f"{error} - at `$.content[0]`"
    plain = b'{"name":"a","inputSchema":{"type":"object"},"category":"w"}'
    assert package.decoder(package.types.Tool)(plain).extra == {}


def test_a_constructor_of_pydantic_refuses_what_its_type_forbids(package_of: PackageOf) -> None:
    package = package_of("pydantic", "lenient", "forbid", "Tool=ignore")
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        package.types.TextContent(text="a", x=1)


@pytest.mark.parametrize(
    ("words", "recorded"),
    [
        ((), ()),
        (("ignore",), ()),
        (("forbid", "Tool=keep", "Prompt=forbid"), ("forbid", "Tool=keep")),
        (("Tool=keep,Prompt=forbid",), ("Prompt=forbid", "Tool=keep")),
        (("Tool=keep", "Tool=ignore"), ()),
    ],
)
def test_the_fewest_words_are_recorded(words: tuple[str, ...], recorded: tuple[str, ...]) -> None:
    assert choice.selection(extra=words).extra == recorded


REFUSED: dict[str, dict[str, Any]] = {
    **{f"extra {word}": {"extra": [word]} for word in ("loose", "=keep", "tool=keep", "Tool=")},
    **{name: {name: "loose"} for name in ("decoding", "models", "mutability", "runtime")},
    **{name: {name: ["loose"]} for name in ("features", "parts", "transports")},
    "mutable models of msgspec": {"mutability": "mutable"},
    "a transport of types": {"parts": ["types", "protocol"], "transports": ["http"]},
    "a default feature of another part": {"parts": ["client"], "features": ["+serve"]},
}


def test_other_words_are_refused(snapshot: SnapshotAssertion) -> None:
    errors: dict[str, str] = {}
    for name, words in REFUSED.items():
        with pytest.raises(UsageError) as refused:
            choice.selection(**words)
        errors[name] = str(refused.value)
    assert errors == snapshot


def test_a_user_writes_the_fewest_words_for_features(snapshot: SnapshotAssertion) -> None:
    defaults = choice.default_features(("all",))
    lists = [
        *(("all", "-auth"), ("none", *defaults), ("none", *defaults, "auth")),
        *(("none", "auth"), ("none", "auth", *defaults[1:]), ("none",)),
    ]
    assert {" ".join(names): choice.short_words(names) for names in lists} == snapshot


def test_earlier_manifests_had_the_features_that_their_transports_can_have(
    snapshot: SnapshotAssertion,
) -> None:
    recorded = {
        f"{part} {transport} {words}": choice.recorded_features(
            [words], [part], [transport], has_sessions=True
        )
        for part in ("client", "server")
        for transport in ("stdio", "http", "http+sse")
        for words in ("auth", "-resume")
    }
    assert recorded == snapshot


@pytest.mark.parametrize("name", ["Nothing", "ContentBlock"])
def test_a_type_that_is_no_object_of_the_package_is_refused(name: str) -> None:
    chosen = choice.selection(("types",), extra=[f"{name}=keep"])
    with pytest.raises(UsageError, match=f"--extra: expected an object of the package, got {name}"):
        tree.render_package([spec_of(LAST_WITH_SESSIONS)], "pkg", chosen, form=dict)


def test_only_a_strict_package_has_definitions() -> None:
    lenient = rendered("types", "all", (NEWEST,))
    strict = rendered("types", "all", (NEWEST,), decoding="strict")
    folder = f"r{NEWEST.replace('-', '_')}"
    assert strict.keys() - lenient.keys() == {f"{folder}/definitions.py"}
    differing = {path for path in lenient if lenient[path] != strict[path]}
    assert differing == {"_decoding.py", f"{folder}/models.py"}
    assert not any("DEFINITIONS" in text for text in lenient.values())


WORDS = ("--revision", LAST_WITH_SESSIONS, "--parts", "types", "--models", "pydantic", "-q")


@pytest.mark.parametrize("mutability", MUTABILITIES)
def test_members_are_assigned_where_models_are_mutable(
    mutability: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"models_{mutability}"
    done = run(*WORDS, "--mutability", mutability, "-o", name, cwd=tmp_path)
    assert done.code == 0, done.err
    monkeypatch.syspath_prepend(tmp_path)
    package: Any = importlib.import_module(name)
    models: Any = importlib.import_module(f"{name}.r2025_11_25.models")
    for tool in (
        models.Tool(name="a", input_schema={"type": "object"}),
        package.decoder(models.Tool, extra=True)(
            b'{"name":"a","inputSchema":{"type":"object"},"more":1}'
        ),
    ):
        if mutability == "mutable":
            tool.title = "b"
            assert b'"title":"b"' in package.encode(tool)
        else:
            with pytest.raises(ValueError, match="Instance is frozen"):
                tool.title = "b"
    for module in [each for each in sys.modules if each.partition(".")[0] == name]:
        del sys.modules[module]
