"""A method of a revision: its name, its types, and what decodes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec

from ._wire import Raw, decoder, members_of, structs_of

Role: TypeAlias = Literal["client", "server"]
"""The two ends of a connection."""

TTL = "ttlMs"
"""Wire name of the milliseconds for which a result may be used again."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Method:
    """One request or notification of a revision, in one direction.

    Attributes:
        name: The wire's name, such as `tools/call`.
        kind: Whether it is answered.
        sender: Who sends it. A method that both may send has a row for each.
        params: Type of its params, or `None` where the schema has none.
        params_required: Whether a message without params is malformed.
        result: Type of its result, to decode with; `None` for notifications.
        capability: Path of the capability it depends on, empty for none. For a request it is one
            of the receiver's, for a notification one of the sender's own.
        items: Python name of the list that the result of a list request holds, or `None`.
        python_name: Name of its handler and of its coroutine.
    """

    name: str
    kind: Literal["request", "notification"]
    sender: Role
    params: Any
    params_required: bool
    result: Any
    capability: tuple[str, ...] = ()
    items: str | None = None
    python_name: str

    @cached_property
    def wire_names(self) -> Mapping[str, str]:
        """Python name to wire name of each of its params."""
        if self.params is None:
            return {}
        return {field.name: field.encode_name for field in msgspec.structs.fields(self.params)}

    @cached_property
    def optional(self) -> frozenset[str]:
        """Python names of the params that are `None` where they are absent."""
        if self.params is None:
            return frozenset()
        fields = msgspec.structs.fields(self.params)
        return frozenset(field.name for field in fields if field.default is None)

    @cached_property
    def default_params(self) -> Mapping[str, Any]:
        """Required params, by wire name, that the connection fills in: `_meta`, or none."""
        if self.params is None:
            return {}
        fields = msgspec.structs.fields(self.params)
        return {"_meta": {}} if any(f.required and f.name == "meta" for f in fields) else {}

    @cached_property
    def decode_params(self) -> Callable[[bytes | Raw], Any]:
        """Decoder for the params."""
        return decoder(self.params)

    @cached_property
    def cacheable(self) -> bool:
        """Whether its result says for how long it may be used."""
        return TTL in members_of(self.result)

    @cached_property
    def result_structs(self) -> frozenset[type[msgspec.Struct]]:
        """The Structs that its result may be."""
        return structs_of(self.result)

    @cached_property
    def decode_result(self) -> Callable[[bytes | Raw], Any]:
        """Decoder for the result, by the letter of the schema.

        What a connection takes is decoded by `mending.result_decoder`, which is more lenient.
        """
        return decoder(self.result)
