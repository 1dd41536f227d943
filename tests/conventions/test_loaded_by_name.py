"""Modules that are loaded by name: no search for imports sees them, so each stands here."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from conventions.sources import ROOT, text_of

pytestmark = pytest.mark.lengthy

TEMPLATES = ROOT / "templates"
CALL = re.compile(r"\bimport_module\(([^,()]*(?:\([^)]*\))?[^,()]*)")

LIBRARIES = {
    "json_schema/keywords.py": ("referencing.jsonschema",),
    "json_schema/patterns.py": ("re2",),
    "json_schema/validation.py": (
        *("jsonschema", "jsonschema", "jsonschema", "jsonschema_specifications"),
        *("attrs", "referencing.exceptions", "referencing.jsonschema"),
    ),
    "runtime/task_scope.py": ("trio",),
    "yaml_text.py": ("yaml",),
    "server/openapi/http_operation.py": ("uritemplate",),
    "server/openapi/openapi_server.py": ("httpx2",),
    "server/toolkit/compatibility.py": ("pydantic_core",),
    "server/toolkit/compatible_arguments.py": ("pydantic",),
    "server/toolkit/function_handlers.py": ("jsonschema", "jsonschema.exceptions"),
    "server/toolkit/uri_templates.py": ("uritemplate",),
}
"""Libraries that a package can do without: a type checker need not find them."""

TABLES = {
    "absence.py": "for errors: names of other SDKs, in packages with `migration`, and types",
    "__init__.py.jinja": "the module of a public name, when the name is first used",
    "client/configuration.py": "the client of several servers, which few packages have",
    "client/async_client.py.jinja": "the client of the revision that `connect` names",
    "merged_models.py": "the models of each revision, as types are first used",
    "revisions.py.jinja": "the methods of a revision, when it is first negotiated",
    "server/commands/serve_command.py": "the module of the user that a command line names",
}
"""Modules by names from a table, each once."""


def test_modules_loaded_by_name_are_libraries_or_in_a_table() -> None:
    loaded: dict[str, Counter[str]] = {}
    for path in sorted((*TEMPLATES.rglob("*.py"), *TEMPLATES.rglob("*.jinja"))):
        calls = Counter(name.strip() for name in CALL.findall(text_of(path)))
        if calls:
            loaded[_place(path)] = calls
    expected = {place: Counter(f'"{name}"' for name in names) for place, names in LIBRARIES.items()}
    assert {place: calls for place, calls in loaded.items() if place not in TABLES} == expected
    assert {place: calls.total() for place, calls in loaded.items() if place in TABLES} == (
        dict.fromkeys(TABLES, 1)
    )


def _place(path: Path) -> str:
    return path.relative_to(TEMPLATES / "package").as_posix()
