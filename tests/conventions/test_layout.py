"""Where tests lie."""

from __future__ import annotations

import pytest

from conventions.sources import TEMPLATES, TESTS

pytestmark = pytest.mark.lengthy

ROOMS = TEMPLATES / "package"
OF_PACKAGE = TESTS / "package"


def test_the_tests_of_a_package_have_the_rooms_of_the_package() -> None:
    rooms = {path.parent.relative_to(ROOMS) for path in ROOMS.rglob("*.py*")}
    rooms |= {path.parent.relative_to(ROOMS) for path in ROOMS.rglob("*.jinja")}
    tests = {path.parent.relative_to(OF_PACKAGE) for path in OF_PACKAGE.rglob("test_*.py")}
    assert tests == rooms | {(OF_PACKAGE / "limits").relative_to(OF_PACKAGE)}
