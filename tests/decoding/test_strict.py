"""With `--decoding strict` a package decodes what the schema allows, and nothing else."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import GenericAlias
from typing import Any

import pytest

from decoding.test_agreement import CASES, EXAMPLES, REVISION, decodes, judge_values
from generator.selections import write_package
from mcpgen import names
from mcpgen.model import choice, schema_sources
from mcpgen.names import LIBRARIES
from mcpgen.package import build_request, pipeline
from mcpgen_runtime import REVISIONS

pytestmark = pytest.mark.lengthy

LIBRARY = pytest.mark.parametrize("library", LIBRARIES)

Strict = Callable[[str, str], Any]


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Strict]:
    """A function that returns the strict package of a library and a revision, made once."""
    folder = tmp_path_factory.mktemp("strict")

    @cache
    def package_of(library: str, revision: str) -> Any:
        name = f"strict_{library}_{names.folder(revision)}"
        selection = choice.selection(("types",), models=library, decoding="strict")
        request = build_request.BuildRequest(
            name, schema_sources.by_name((revision,)), selection=selection
        )
        write_package(pipeline.build(request, form=dict), folder, name)
        package: Any = importlib.import_module(name)
        package.types = importlib.import_module(f"{name}.{names.folder(revision)}.models")
        return package

    sys.path.insert(0, str(folder))
    yield package_of
    sys.path.remove(str(folder))


@pytest.mark.parametrize("library", LIBRARIES[:1])
@REVISION
def test_values_decode_as_the_schema_says(strict: Strict, library: str, revision: str) -> None:
    package, own = strict(library, revision), judge_values(revision)
    judges = {name: own.judge(own.definitions, name) for name in own.definitions}
    wrong = [
        (name, value)
        for name, value in own.cases(CASES // len(REVISIONS))
        if decodes(getattr(package.types, name), value, package) != judges[name](value)
    ]
    assert not wrong, f"{len(wrong)} differ, the first: {json.dumps(wrong[:3])}"


@LIBRARY
@pytest.mark.parametrize("row", EXAMPLES)
def test_no_row_of_the_table_is_a_difference(strict: Strict, library: str, row: str) -> None:
    name, value = EXAMPLES[row]["definition"], EXAMPLES[row]["value"]
    own = judge_values(EXAMPLES[row]["revision"])
    allowed = own.judge(own.definitions, name)(value)
    package = strict(library, EXAMPLES[row]["revision"])
    assert decodes(getattr(package.types, name), value, package) is allowed


REFUSED: list[tuple[str, str, str]] = [
    ("Tool", '{"name": "a", "inputSchema": {}}', "field `type` - at `$.inputSchema`"),
    ("Tool", '{"name":"a","title":null,"inputSchema":{"type":"object"}}', "`null` - at `$.title`"),
    ("CallToolResult", '{"content": [{"type": "text"}]}', "field `text` - at `$.content[0]`"),
    ("ContentBlock", '{"type": "smell"}', "'smell' - at `$.type`"),
    ("PingRequest", '{"jsonrpc": "2.0", "id": 1}', "missing required field `method`"),
    ("EmptyResult", '{"_meta": 1}', "Expected `object`, got `int` - at `$._meta`"),
    ("Annotations", '{"priority": 2}', "<= 1 - at `$.priority`"),
    ("JSONRPCNotification", '{"jsonrpc": "1.0", "method": "a"}', "'1.0' - at `$.jsonrpc`"),
    ("Tool", '{"name": "a"', ""),
    ("JSONRPCMessage", '{"jsonrpc": "2.0", "id": 1}', "missing required field"),
]
"""Values that are refused, with a part of the error."""


@LIBRARY
@pytest.mark.parametrize(("name", "text", "error"), REFUSED)
def test_an_error_names_what_is_wrong_and_its_place(
    strict: Strict, library: str, name: str, text: str, error: str
) -> None:
    package = strict(library, "2025-11-25")
    with pytest.raises(package.DecodeError) as caught:
        package.decoder(getattr(package.types, name))(text.encode())
    assert error in str(caught.value)


@LIBRARY
def test_types_around_models_are_checked_too(strict: Strict, library: str) -> None:
    package = strict(library, "2025-11-25")
    tool: Any = package.types.Tool
    valid = {"name": "a", "inputSchema": {"type": "object"}}
    wrong, typed = {**valid, "title": None}, package.convert(valid, tool)
    for kind, right, refused, expected in (
        (GenericAlias(list, tool), [valid], [wrong], [typed]),
        (GenericAlias(dict, (str, tool)), {"a": valid}, {"a": wrong}, {"a": typed}),
    ):
        assert package.convert(right, kind) == expected
        with pytest.raises(package.ValidationError, match=r"got `null` - at `\$.*title`"):
            package.convert(refused, kind)
    with pytest.raises(package.ValidationError, match="got `null`"):
        package.decoder(dict[str, str])(b'{"a": null}')


@LIBRARY
def test_params_and_results_of_methods_are_decoded_strictly(strict: Strict, library: str) -> None:
    package = strict(library, "2026-07-28")
    methods: Any = importlib.import_module(f"{package.__name__}.r2026_07_28.methods")
    with pytest.raises(package.ValidationError, match="missing required field `_meta`"):
        methods.CALL_TOOL.decode_params(b'{"name": "a"}')
    with pytest.raises(package.ValidationError, match="missing required field `resultType`"):
        methods.CALL_TOOL.decode_result(b'{"content": []}')
    result = methods.CALL_TOOL.decode_result(b'{"content": [], "resultType": "complete"}')
    assert isinstance(result, package.types.CallToolResult)
