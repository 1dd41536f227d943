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
from msgspec import UNSET, Meta, UnsetType

from ._wire import UNREADABLE

CARD_TYPE = "application/mcp-server-card+json"
"""The media type of a card."""

CARD_SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
"""The schema that a card names, in the only version of the format."""


class _Input(msgspec.Struct, rename="camel"):
    description: str | UnsetType = UNSET
    is_required: bool | UnsetType = UNSET
    is_secret: bool | UnsetType = UNSET
    format: str | UnsetType = UNSET
    default: str | UnsetType = UNSET
    placeholder: str | UnsetType = UNSET
    value: str | UnsetType = UNSET
    choices: list[str] | UnsetType = UNSET


class _Header(_Input, kw_only=True):
    name: str
    variables: dict[str, _Input] | UnsetType = UNSET


class _Remote(msgspec.Struct, rename="camel"):
    type: Literal["streamable-http", "sse"]
    url: Annotated[str, Meta(pattern=r"^(https?://\S+|\{[a-zA-Z_][a-zA-Z0-9_]*\}\S*)$")]
    headers: list[_Header] | UnsetType = UNSET
    variables: dict[str, _Input] | UnsetType = UNSET
    supported_protocol_versions: list[str] | UnsetType = UNSET


class _Icon(msgspec.Struct, rename="camel"):
    src: str
    mime_type: str | UnsetType = UNSET
    sizes: list[str] | UnsetType = UNSET
    theme: str | UnsetType = UNSET


class _Repository(msgspec.Struct):
    url: str
    source: str
    subfolder: str | UnsetType = UNSET
    id: str | UnsetType = UNSET


class _Card(
    msgspec.Struct, rename={"schema": "$schema", "website_url": "websiteUrl", "meta": "_meta"}
):
    schema: Annotated[str, Meta(pattern=f"^{CARD_SCHEMA.replace('.', r'[.]')}$")]
    name: Annotated[
        str, Meta(min_length=3, max_length=200, pattern=r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$")
    ]
    version: Annotated[str, Meta(max_length=255)]
    description: Annotated[str, Meta(min_length=1, max_length=100)]
    title: Annotated[str, Meta(min_length=1, max_length=100)] | UnsetType = UNSET
    website_url: str | UnsetType = UNSET
    repository: _Repository | UnsetType = UNSET
    icons: list[_Icon] | UnsetType = UNSET
    remotes: list[_Remote] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = UNSET


def parse_card(data: bytes) -> dict[str, Any]:
    """The members of a card that its schema has, at every level; others are dropped.

    Raises:
        ValueError: Not JSON, or a member is missing or malformed; the text names it.
    """
    try:
        card = msgspec.json.decode(data, type=_Card)
    except UNREADABLE as error:
        raise ValueError(f"expected a Server Card: {error}") from None
    members: dict[str, Any] = msgspec.to_builtins(card)
    return members
