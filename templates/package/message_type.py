"""The type of classes of messages: what it means to call one of them.

A constant member, such as `type`, may be given, and a member may have its name on the wire:
`ImageContent(type="image", data="...", mimeType="image/png")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

__all__ = ["MessageType"]

_ABSENT = object()


def _own_members(struct: type[msgspec.Struct], members: Mapping[str, Any]) -> dict[str, Any]:
    """Members by their Python names, without constants of the class."""
    own, config = struct.__struct_fields__, struct.__struct_config__
    names = dict(zip(struct.__struct_encode_fields__, own, strict=True))
    tag = (config.tag_field, config.tag)
    return {
        name if name in own else names.get(name, name): value
        for name, value in members.items()
        if name in own or (getattr(struct, name, _ABSENT) != value and (name, value) != tag)
    }


if TYPE_CHECKING:
    from msgspec import StructMeta as MessageType
else:
    _create = msgspec.StructMeta.__call__

    class MessageType(msgspec.StructMeta):
        """The metaclass. Decoding does not pass through it."""

        def __call__(self, *args: Any, **members: Any) -> Any:
            """An object with these members.

            Raises:
                TypeError: The class has no such member, or requires another one.
            """
            try:
                return _create(self, *args, **members)
            except TypeError:
                own = _own_members(self, members)
                if own == members:
                    raise
            return _create(self, *args, **own)
