"""Names of the package that two modules would share."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from conventions.sources import PACKAGE, python_files, tree_of

pytestmark = pytest.mark.lengthy

OF_REVISION = re.compile(r"r\d{4}_\d\d_\d\d")
MODULES = [
    path
    for path in python_files(PACKAGE)
    if not OF_REVISION.fullmatch(path.relative_to(PACKAGE).parts[0])
]
_MESSAGES = "that of `messages` has typed params, that of `protocol.jsonrpc` has JSON"
SHARED = {
    "Context": "that of the page `chosen` has the members of features; the kernel has its base",
    "Notification": _MESSAGES,
    "Request": _MESSAGES,
    "Response": "that of `messages` is a message of JSON-RPC, that of `routes` is one of HTTP",
}


def test_no_two_classes_of_the_package_share_a_name() -> None:
    classes = Counter(
        node.name
        for path in MODULES
        if path.name != "models.py"
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, number in classes.items() if number > 1} == set(SHARED)


def test_no_two_modules_of_the_package_share_a_name() -> None:
    names = Counter(path.stem for path in MODULES if path.stem not in ("__init__", "chosen"))
    assert [name for name, number in names.items() if number > 1] == []
