"""The name and the version that a program of the low level states apart from its server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst
from libcst.metadata import QualifiedNameProvider

from mcpgen.port.call_arguments import keyword_argument, keyword_of
from mcpgen.port.servers import Level, level_of, sdk_name


class OptionCollector(cst.CSTVisitor):
    """Collects what `InitializationOptions` say of the only low-level server of a module."""

    METADATA_DEPENDENCIES = (QualifiedNameProvider,)

    def __init__(self) -> None:
        super().__init__()
        self._servers = 0
        self._options: list[cst.Call] = []

    def visit_Call(self, node: cst.Call) -> None:
        name = sdk_name(self, node.func)
        self._servers += level_of(name) is Level.LOW
        if name is not None and name.endswith(".InitializationOptions"):
            self._options.append(node)

    def identity(self) -> Mapping[str, cst.BaseExpression]:
        """The name and the version of the server, where literals state these."""
        if self._servers != 1 or len(self._options) != 1:
            return {}
        stated = {keyword_of(each): each.value for each in self._options[0].args}
        return {
            name: value
            for name in ("name", "version")
            if isinstance(value := stated.get(f"server_{name}"), cst.SimpleString)
        }


def with_identity(
    arguments: Sequence[cst.Arg], identity: Mapping[str, cst.BaseExpression]
) -> list[cst.Arg]:
    """The arguments of a server with the name and the version that its options state."""
    made = list(arguments)
    if made and made[0].keyword is None and "name" in identity:
        made[0] = made[0].with_changes(value=identity["name"])
    is_versioned = len(made) > 1 and made[1].keyword is None
    is_versioned |= any(keyword_of(each) == "version" for each in made)
    if "version" in identity and not is_versioned:
        made.append(keyword_argument("version", identity["version"]))
    return made
