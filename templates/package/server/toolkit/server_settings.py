"""The settings of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .client_features.request_state import RequestStateSigner
from .custom_handlers import LowLevelHandlers
from .item_scopes import ForbiddenItems
from .registry import Cacheable, CacheHint


class ProcessLimit(msgspec.Struct, frozen=True):
    """What a feature lacks where several processes serve together.

    Attributes:
        text: The limit, on one line.
        is_refused: Whether several processes can't serve at all then.
    """

    text: str
    is_refused: bool = False


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one server.

    Attributes:
        info: Name, version and further members of `Implementation`, as wire object.
        instructions: How to use the server, for the model.
        page_size: Most items of a page; `None` for all.
        list_changed: Whether changes of lists are announced.
        subscribe: Whether clients may subscribe to resources.
        logging: Whether log messages are sent.
        coerce: Whether texts in arguments of tools are converted to the types of the parameters.
        show_errors: Whether results contain the text of unexpected exceptions of tools.
        capabilities: Capabilities to declare beyond those of registered features.
        low_level_handlers: Handlers that replace those of the toolkit.
        signer: Signs and verifies request states.
        cache: The cache hint of each list.
        validation_seconds: Time limit for validating a value against a user-defined JSON Schema.
        forbidden_items: Whether items whose scopes a principal lacks are listed.

    Raises:
        ValueError: The name is empty, or a limit is not positive.
    """

    info: Mapping[str, Any]
    instructions: str | None
    page_size: int | None
    list_changed: bool
    subscribe: bool
    logging: bool
    coerce: bool
    show_errors: bool
    capabilities: Mapping[str, Any]
    low_level_handlers: LowLevelHandlers
    signer: RequestStateSigner
    cache: Mapping[Cacheable, CacheHint]
    validation_seconds: float
    forbidden_items: ForbiddenItems = "listed"

    def __post_init__(self) -> None:
        if not self.info["name"]:
            raise ValueError("name: expected a server's name, got an empty string")
        if self.page_size is not None and self.page_size < 1:
            raise ValueError(f"page_size: expected at least 1, got {self.page_size}")
        if not self.validation_seconds > 0:
            raise ValueError(
                f"validation_seconds: expected more than 0, got {self.validation_seconds}"
            )
