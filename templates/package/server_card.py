"""Server Cards: a server's identity and its remotes, for clients that have not connected yet.

A draft: SEP-2127 is final, but its format belongs to an experimental extension and may change.

    $schema, name, version, description    and perhaps title, websiteUrl, icons, repository
    remotes                                transport, URL, header fields, revisions

A card lists no tools, and clients cannot rely on it before they connect.

Source: experimental-ext-server-card/schema, docs/discovery.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ._wire import UNREADABLE

CARD_TYPE = "application/mcp-server-card+json"
"""The media type of a card."""

CARD_SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
"""The schema that a card names, in the only version of the format."""


class _Remote(msgspec.Struct):
    type: Literal["streamable-http", "sse"]
    url: Annotated[str, msgspec.Meta(pattern=r"^(https?://\S+|\{[a-zA-Z_][a-zA-Z0-9_]*\}\S*)$")]


class _Card(msgspec.Struct, rename={"schema": "$schema"}):
    schema: Annotated[str, msgspec.Meta(pattern=f"^{CARD_SCHEMA.replace('.', r'[.]')}$")]
    name: Annotated[
        str, msgspec.Meta(min_length=3, max_length=200, pattern=r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$")
    ]
    version: Annotated[str, msgspec.Meta(max_length=255)]
    description: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    title: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] | msgspec.UnsetType = (
        msgspec.UNSET
    )
    remotes: list[_Remote] | msgspec.UnsetType = msgspec.UNSET


def parse_card(data: bytes) -> dict[str, Any]:
    """The members of a card; those that clients need are checked.

    Raises:
        ValueError: Not JSON, or a member is missing or malformed; the text names it.
    """
    try:
        msgspec.json.decode(data, type=_Card)
        members: dict[str, Any] = msgspec.json.decode(data)
    except UNREADABLE as error:
        raise ValueError(f"expected a Server Card: {error}") from None
    return members
