"""The Server Card that a server publishes beside its endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .custom_routes import CustomRoutes


class CardPublishing(CustomRoutes):
    """The method that publishes a card; a base of `Server`."""

    def publish_card(
        self,
        url: str,
        *,
        path: str = "/mcp/server-card",
        name: str | None = None,
        description: str | None = None,
        headers: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Publish a Server Card: what clients may know before they connect. A draft (SEP-2127).

            server = Server("com.example/weather", "1.0", description="Forecasts for cities")
            server.publish_card("https://weather.example/mcp")

        It has name, version, title, description, web page and icons of the server, its URL and its
        revisions over Streamable HTTP. Everybody may read it, without an access token and also from
        pages of other origins. It is made now: what changes later is not in it.

        Args:
            url: The endpoint as clients reach it, such as `https://weather.example/mcp`.
            path: The path of the card, below the mount point of the application. Clients expect
                the path of the endpoint with `/server-card`.
            name: The name, such as `com.example/weather`; by default that of the server.
            description: At most 100 characters; by default that of the server.
            headers: Header fields that clients have to send, in the form of the registry, such as
                `{"name": "X-Key", "isRequired": True, "isSecret": True}`.

        Raises:
            ValueError: A member has not the form that cards have, or the path is taken.
            RuntimeError: The server is being served already.
        """
        from ..asgi.card_route import CARD_METHODS, card_handler, card_of  # few servers have one

        described = {"name": name, "description": description}
        card = card_of(self._dispatcher.settings.info, self.revisions, url, headers, described)
        self.custom_route(path, CARD_METHODS, any_origin=True)(card_handler(card))
