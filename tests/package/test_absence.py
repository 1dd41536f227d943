"""Errors for names and options of features that a package lacks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from mcpgen_runtime.absence import attribute_error, import_error, keyword_error, missing_text


class Server:
    _absent: ClassVar[Mapping[str, str]] = {"mount": "mount", "tool.ui": "apps"}

    def __getattr__(self, name: str) -> Any:
        raise attribute_error(self, name, self._absent)


class MyServer(Server):
    pass


def test_an_absent_member_names_the_public_class() -> None:
    server = MyServer()
    assert not hasattr(server, "mount")
    with pytest.raises(AttributeError) as refused:
        server.mount(1)
    assert str(refused.value) == missing_text("Server.mount", "mount")
    with pytest.raises(AttributeError, match=r"^'MyServer' object has no attribute 'tool'$"):
        _ = server.tool


def test_an_absent_option_is_an_unexpected_keyword() -> None:
    error = keyword_error("server.tool", ["ui", "colour"], Server._absent)
    assert str(error) == (
        f"server.tool: {missing_text('ui=', 'apps')}; unexpected keyword argument 'colour'"
    )


def test_the_command_has_the_folder_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("pkg")
    package.__path__ = [str(Path.cwd() / "folder" / "pkg")]
    monkeypatch.setitem(sys.modules, "pkg", package)
    error = import_error("pkg", "ClientGroup", {"ClientGroup": "groups"})
    assert isinstance(error, ImportError)
    assert str(error) == (
        "ClientGroup comes with the feature groups, which this package was generated without:"
        " mcpgen update folder/pkg --features +groups"
    )
    assert "mcpgen_runtime --features" in missing_text("a", "b")
    assert isinstance(import_error("pkg", "nothing", {}), AttributeError)


def test_an_alternative_may_be_of_an_absent_feature() -> None:
    error = import_error("mcpgen_runtime", "AuthProvider", {"Protected": "auth"})
    assert str(error) == (
        "mcpgen_runtime has no AuthProvider: use Protected; "
        + missing_text("Protected", "auth", "mcpgen_runtime")
    )
