"""Compares the example's `mcp.types` of version 1 with the official one, and runs the SDK's tests.

    python tests/interop/official_types.py FOLDER

`mcpgen render` writes the module from `examples/python-sdk-1/templates`. Each public name of the
official module has to be in it, with the same members, defaults, aliases, bases and JSON Schema.
Then it takes the place of the official one, and each test of the SDK that passes with the official
module has to pass with it. Prints the counts; exits 1 if a name differs or a test is lost. FOLDER
keeps the distribution and an environment.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import shutil
import subprocess
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
TEMPLATES = ROOT / "examples" / "python-sdk-1" / "templates"
RELEASE = "1.30.0"
REVISION = "2025-11-25"
PACKAGES = (
    f"mcp[cli,rich,ws]=={RELEASE}",
    *("dirty-equals", "inline-snapshot", "pytest", "pytest-examples", "requests", "trio"),
)
"""The SDK and what its tests import."""

REPLACED = Path("src") / "mcp" / "types.py"
IGNORED = ("tests/test_examples.py",)
"""Tests of the programs in its documentation."""

OURS = "rendered_types"
"""The name of the rendered module, where it is compared."""

TAKEN_OUT = ("description", "title")
"""Keys of a JSON Schema that no peer sees: text in the words of each."""


def main() -> int:
    """Render, compare, run both."""
    sys.path.append(f"{ROOT / 'tests'}")
    from interop import official_sdk as sdk  # `--compare` runs where no test is

    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    archive, python = sdk.distribution(folder, RELEASE), sdk.environment(folder, PACKAGES)
    own, rendered = (sdk.unpack(archive, folder / name) for name in ("own", "rendered"))
    words = ("render", "-q", f"{TEMPLATES}", "-o", f"{folder / 'out'}", "-r", REVISION, "--force")
    subprocess.run([sys.executable, "-m", "mcpgen", *words], check=True)
    module = folder / "out" / "types.py"
    compared = subprocess.run([f"{python}", __file__, "--compare", f"{module}"], check=False)
    shutil.copyfile(module, rendered / REPLACED)
    passing, lost = sdk.compare_runs(python, own, rendered, IGNORED)
    return 0 if passing and not lost and not compared.returncode else 1


def compare(path: str) -> int:
    """Compare a module with the `mcp.types` of this environment; prints each difference."""
    import mcp.types

    spec = importlib.util.spec_from_file_location(OURS, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[OURS] = module
    spec.loader.exec_module(module)
    ours, theirs = _public_names(module), _public_names(mcp.types)
    lines = [f"{name}: missing" for name in sorted(theirs.keys() - ours.keys())]
    lines += [f"{name}: only here" for name in sorted(ours.keys() - theirs.keys())]
    for name in sorted(ours.keys() & theirs.keys()):
        lines += [f"{name}: {line}" for line in _differences(ours[name], theirs[name])]
    members = sum(len(getattr(kind, "model_fields", ())) for kind in theirs.values())
    print(f"mcp.types {RELEASE}: {len(theirs)} names, {members} members, {len(lines)} differences")
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


def _public_names(module: Any) -> Mapping[str, Any]:
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and name.isidentifier() and not inspect.ismodule(value)
    }


def _differences(ours: Any, theirs: Any) -> Iterator[str]:
    """The differences of two values of the same name, as texts."""
    import pydantic

    if not (inspect.isclass(theirs) and issubclass(theirs, pydantic.BaseModel)):
        if _text(ours) != _text(theirs):
            yield f"{_text(ours)}, not {_text(theirs)}"
        return
    own, other = _members(ours), _members(theirs)
    for name in sorted(own.keys() | other.keys()):
        if own.get(name) != other.get(name):
            yield f"{name}: {own.get(name)}, not {other.get(name)}"
    for what in ("model_config", "__mro__"):
        if _text(getattr(ours, what)) != _text(getattr(theirs, what)):
            yield f"{what}: {getattr(ours, what)}, not {getattr(theirs, what)}"
    if attributes := _attributes(ours) ^ _attributes(theirs):
        yield f"attributes: {', '.join(sorted(attributes))}"
    bases = (pydantic.BaseModel, pydantic.RootModel)
    # A generic class has no JSON Schema of its own.
    if theirs not in bases and not theirs.__pydantic_generic_metadata__["parameters"]:
        for mode in ("validation", "serialization"):
            if _schema(ours, mode) != _schema(theirs, mode):
                yield f"JSON Schema of {mode}"


def _members(kind: Any) -> Mapping[str, Any]:
    """Alias, whether it is required, default and type of each member."""
    return {
        name: (field.alias, field.is_required(), repr(field.default), _text(field.annotation))
        for name, field in kind.model_fields.items()
    }


def _attributes(kind: Any) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def _text(value: Any) -> str:
    """A value as text without the name of its module; the order of a union does not count."""
    if isinstance(value, tuple):
        return f"({', '.join(_text(each) for each in value if 'RootModel[' not in repr(each))})"
    if isinstance(value, str) and value.isidentifier():
        value = getattr(sys.modules["mcp.types"], value, value)  # a forward reference
    origin, arguments = typing.get_origin(value), typing.get_args(value)
    if origin is None:
        return repr(value).replace("mcp.types.", "").replace(f"{OURS}.", "")
    texts = [str(each) if isinstance(each, list) else _text(each) for each in arguments]
    if origin in (typing.Union, types.UnionType, typing.Literal):
        texts, origin = sorted(texts), "Literal" if origin is typing.Literal else "Union"
    return f"{origin}[{', '.join(texts)}]"


def _schema(kind: Any, mode: Any) -> Any:
    return _stripped(kind.model_json_schema(mode=mode))


def _stripped(node: Any) -> Any:
    """A JSON Schema without text, with what has no order sorted."""
    if isinstance(node, list):
        return sorted((_stripped(each) for each in node), key=json.dumps)
    if not isinstance(node, dict):
        return node
    members = {key: _stripped(each) for key, each in sorted(node.items())}
    return {
        key: each
        for key, each in members.items()
        if key not in TAKEN_OUT or not isinstance(each, str)
    }


if __name__ == "__main__":
    sys.exit(compare(sys.argv[2]) if sys.argv[1] == "--compare" else main())
