"""Names of the package that two modules would share."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from conventions.sources import PACKAGE, python_files, tree_of

pytestmark = pytest.mark.lengthy


def classes_of_the_package() -> Counter[str]:
    """How many modules of the package define a class, by its name; revisions count apart."""
    verbatim = [path for path in python_files(PACKAGE) if not revision_folder(path)]
    return Counter(
        node.name
        for path in verbatim
        if path.name != "models.py"
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


def revision_folder(path: Path) -> bool:
    """Whether a file belongs to one revision."""
    return re.fullmatch(r"r\d{4}_\d\d_\d\d", path.relative_to(PACKAGE).parts[0]) is not None


_MESSAGES = "that of `messages` has typed params, that of `protocol.jsonrpc` has JSON"
SHARED = {
    "Context": "that of the page `chosen` has the members of features; the kernel has its base",
    "Notification": _MESSAGES,
    "Request": _MESSAGES,
    "Response": "that of `messages` is a message of JSON-RPC, that of `routes` is one of HTTP",
}


def test_no_two_classes_of_the_package_share_a_name() -> None:
    assert {name for name, number in classes_of_the_package().items() if number > 1} == set(SHARED)


def test_no_two_modules_of_the_package_share_a_name() -> None:
    names = Counter(
        path.stem
        for path in python_files(PACKAGE)
        if path.name not in ("__init__.py", "chosen.py") and not revision_folder(path)
    )
    assert [name for name, number in names.items() if number > 1] == []
