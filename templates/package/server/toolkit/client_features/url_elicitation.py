"""URL mode elicitations: requests that need one first, and who is to hear that one is done.

What the user does on a web page happens outside the protocol, so it is the server's own code that
knows when it is done. The id leads back to the client that was asked, and to no other.

Source: client/elicitation#url-mode-elicitation-requests.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Collection

import msgspec

from ....errors import ProtocolError, TransportError
from ....foreign_text import safe_repr
from ....protocol.uris import WEB_SCHEMES
from ....runtime.pending_requests import PendingRequests
from ....runtime.request_context import RequestContext

COMPLETE = "notifications/elicitation/complete"
REQUIRED = -32042
LIMIT = 10_000
"""Most elicitations remembered; of more than that, the oldest are forgotten."""


class URLElicitation(msgspec.Struct, frozen=True):
    """A page that a user has to go to.

    Attributes:
        message: Why.
        url: Its address; it holds no secret.
        elicitation_id: Id in revisions that have one; made if `None`.
        schemes: Schemes that the address may have; most clients open http and https alone.
    """

    message: str
    url: str
    elicitation_id: str | None = None
    schemes: Collection[str] = WEB_SCHEMES


class URLElicitationRequiredError(ProtocolError):
    """A request can't be served before its user has been to web pages; it may be sent again then.

    Where results ask for input instead, a toolkit's server asks for it by its result.

    Attributes:
        elicitations: The pages, at least one.

    Source: client/elicitation#url-elicitation-required-error (2025-11-25).
    """

    default_code = REQUIRED

    def __init__(
        self,
        *elicitations: URLElicitation,
        message: str = "the user has to go to a web page first",
    ) -> None:
        if not elicitations:
            raise ValueError("expected a URL elicitation, got none")
        made = [each if each.elicitation_id else _identified(each) for each in elicitations]
        listed = [
            {
                "mode": "url",
                "message": each.message,
                "url": each.url,
                "elicitationId": each.elicitation_id,
            }
            for each in made
        ]
        super().__init__(message, data={"elicitations": listed})
        self.elicitations = tuple(made)


def _identified(elicitation: URLElicitation) -> URLElicitation:
    return msgspec.structs.replace(elicitation, elicitation_id=os.urandom(16).hex())


class Elicitations:
    """The URL mode elicitations of one server that may still be completed.

    A client that is gone is forgotten with its elicitations.
    """

    def __init__(self) -> None:
        self._asked: dict[str, tuple[weakref.ref[PendingRequests], str]] = {}

    def begin(self, exchange: RequestContext, url: str, identifier: str | None) -> str:
        """Remember who is asked; gives the id, a fresh one if there is none yet.

        Raises:
            ValueError: The id is that of another elicitation.
        """
        identifier = os.urandom(16).hex() if identifier is None else identifier
        asked, known_url = self._asked.pop(identifier, (None, url))
        if asked is not None and (asked() is not exchange.peer or known_url != url):
            self._asked[identifier] = (asked, known_url)
            raise ValueError(
                f"elicitation_id {safe_repr(identifier)} is that of another elicitation"
            )
        self._asked[identifier] = (weakref.ref(exchange.peer), url)
        if len(self._asked) > LIMIT:
            del self._asked[next(iter(self._asked))]
        return identifier

    async def complete(self, identifier: str) -> bool:
        """Tell the client that was asked that it is done; gives whether anyone was asked it."""
        asked, _ = self._asked.pop(identifier, (None, ""))
        peer = None if asked is None else asked()
        if peer is None:
            return False
        try:
            await peer.notify(COMPLETE, {"elicitationId": identifier})
        except TransportError:
            return False
        return True
