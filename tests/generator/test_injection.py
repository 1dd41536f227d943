"""Foreign text in every place of a schema, of facts and of documentation: it stays text."""

from __future__ import annotations

import json
import sys
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from generator.spoiled import HARMLESS, Texts, build_files, canary, hostile, import_package, shape
from mcpgen.errors import safe_text

pytestmark = pytest.mark.processes


_numbers = count()
of_foreign_texts = settings(
    max_examples=5,
    phases=[Phase.explicit, Phase.generate],  # to shrink an example takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@cache
def harmless_shapes() -> dict[str, object]:
    """The nodes of each generated module when its texts mean nothing."""
    with TemporaryDirectory() as folder:
        files = build_files(HARMLESS, Path(folder), "harmless")
    return {path: shape(text) for path, text in files.items() if path.endswith(".py")}


def words(text: str) -> str:
    """A text without white space, and with one kind of quotes."""
    return "".join(text.replace('"', "'").split())


def submodule(package: ModuleType, name: str) -> Any:
    return sys.modules[f"{package.__name__}.{name}"]


def check_json(package: ModuleType, texts: Texts) -> None:
    """Messages come back as they were, others are refused; tables and docstrings hold the texts."""
    models, wire = submodule(package, "r2030_01_01.models"), submodule(package, "_wire")
    member, value = texts.members, texts.values
    whole = {
        member[0]: "x",
        member[1]: 0.5,
        member[2]: {"type": value[5]},
        member[3]: value[6],
        member[4]: value[7],
        member[5]: value[9],
        member[6]: ["x"],
        member[7]: {member[0]: value[13], "y": "x"},
        member[8]: {member[11]: "x"},
        member[9]: value[29],
    }
    decode = wire.decoder(models.Spoiled)
    assert json.loads(wire.encode(decode(json.dumps(whole).encode()))) == whole
    plain = json.loads(wire.encode(decode(json.dumps({member[0]: "x"}).encode())))
    assert plain == {member[0]: "x", member[9]: value[29]}
    shown = {1: safe_text(member[1]), 2: safe_text(member[2])}
    for at, wrong in ((1, 5), (2, {"type": "y"}), (3, "y"), (4, "y"), (5, "y"), (7, {}), (8, {})):
        with pytest.raises(wire.ValidationError) as raised:
            decode(json.dumps({**whole, member[at]: wrong}).encode())
        assert shown.get(at, "") in str(raised.value)
    assert get_args(models.Choice) == (value[10], value[11])
    first = {member[0]: value[12], "x": "x"}
    assert json.loads(wire.encode(wire.decoder(models.OneTag)(json.dumps(first).encode()))) == first
    revision = submodule(package, "r2030_01_01.methods").REVISION
    known = revision.facts
    assert set(revision.client_requests) == {"notes/list", texts.method}
    row = revision.client_requests[texts.method]
    assert (row.name, row.capability) == (texts.method, (value[28].replace(".", ""),))
    assert set(row.wire_names.values()) == set(texts.members[:2])
    assert (known.headers.session, known.headers.name) == (value[18], value[19])
    assert known.headers.param_prefix == value[20]
    assert known.http.fallback == (value[21], value[22])
    stated = known.method(texts.method)
    assert (stated.named_by, stated.invalidates) == (value[23], (value[23],))
    assert known.behaviour.listen == value[24]
    assert (known.meta.trace_keys, known.meta.log_level) == ((value[25], value[26]), value[27])
    assert words(models.Spoiled.__doc__) == words(value[0])
    assert words(models.OneShape.__doc__) == words(f"{value[30]} Source: {value[32]}.")
    client_class = submodule(package, "r2030_01_01.client").Client
    assert words(value[0]) in words(client_class.spoil.__doc__)


@pytest.fixture(scope="module", autouse=True)
def _built_once() -> None:
    """The harmless package is not built within an example."""
    harmless_shapes()


@of_foreign_texts
@example(HARMLESS)
@given(hostile)
def test_foreign_text_is_text_wherever_it_stands(texts: Texts) -> None:
    package = f"spoiled_{next(_numbers)}"
    with TemporaryDirectory() as folder:
        files = build_files(texts, Path(folder), package)
        for path, expected in harmless_shapes().items():
            assert shape(files[path]) == expected, path
            if path.startswith("r2030") or path in ("client/async_client.py", "models.py"):
                assert files[path].isascii(), path
        with import_package(files, Path(folder), package) as module:
            check_json(module, texts)
            assert canary() == []
