"""An authorization in two halves, for applications whose user comes back in another request."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ...auth.challenges import parse_challenges
from ...auth.code_flow import CodeRequest
from ...auth.discovery import Surroundings, discovered, initial_scopes, with_offline_access
from ...auth.documents import canonical_resource
from ...auth.dpop import ProofKey
from ...auth.records import Grant, encoded_record, grant_key
from ...auth.steps import Fetch, Fetched, Flow
from ...errors import AuthorizationError
from ...framing.sse import MEDIA_TYPE
from ...revisions import REVISIONS
from .auth_fetcher import AuthFetcher
from .flow_driver import FlowDriver
from .token_authorizer import surroundings

if TYPE_CHECKING:
    from .oauth import OAuth


Result = TypeVar("Result")


class PendingAuthorization:
    """An authorization that waits for the user.

    Args:
        oauth: The way to a token.
        server: The URL of the MCP server.
        request: The first half.
    """

    def __init__(self, oauth: OAuth, server: str, request: CodeRequest) -> None:
        self._oauth = oauth
        self._server = server
        self._request: CodeRequest | None = request
        self.url = request.url
        """Where to send the user."""

    def __repr__(self) -> str:
        return "<PendingAuthorization>"

    def dumps(self) -> str:
        """The authorization as text, for `OAuth.pending`. It holds secrets: keep it on the server.

        Raises:
            AuthorizationError: It was finished.
        """
        if self._request is None:
            raise AuthorizationError("the authorization was finished")
        return msgspec.json.encode((self._server, self._request)).decode()

    @classmethod
    def loads(cls, oauth: OAuth, text: str) -> PendingAuthorization:
        """What `dumps` gave.

        Raises:
            ValueError: The text is something else.
        """
        try:
            server, request = msgspec.json.decode(text, type=tuple[str, CodeRequest])
        except msgspec.DecodeError:
            raise ValueError("expected the text of a pending authorization") from None
        return cls(oauth, server, request)

    async def finish(self, returned: str) -> None:
        """The second half: change the code for a token, and put it into the store.

        It may be called once: a return that was wrong ends the authorization.

        Args:
            returned: The URL that the user came back by.

        Raises:
            OAuthError: The user or the authorization server refused.
            AuthorizationError: The return is not one of this authorization, or it was finished.
        """
        request, self._request = self._request, None
        if request is None:
            raise AuthorizationError("the authorization was finished")
        settings = self._oauth.settings
        around = surroundings(self._server, REVISIONS, settings)
        around = _with_key(around, request.grant)
        grant = await _run(self._oauth, around, self._oauth.exchanged(around, request, returned))
        key = grant_key(canonical_resource(self._server))
        await settings.store.save(key, encoded_record(grant))


async def begin(oauth: OAuth, url: str) -> PendingAuthorization:
    """The first half; see `OAuth.begin`."""
    around = surroundings(url, REVISIONS, oauth.settings)
    if oauth.settings.proof_key:
        from ...auth.jwt_keys import PrivateKey

        key = oauth.settings.proof_key
        key = PrivateKey.generate() if isinstance(key, bool) else key
        around = replace(around, proofs=ProofKey(key, around.now))
    return PendingAuthorization(oauth, url, await _run(oauth, around, _first_half(oauth, around)))


def _first_half(oauth: OAuth, around: Surroundings) -> Flow[CodeRequest]:
    around.addresses.check_server(around.server_url)
    fields = {"Accept": MEDIA_TYPE}
    response: Fetched = yield Fetch("GET", around.server_url, fields)
    header = response.fields.get("www-authenticate", "") if response.status == 401 else ""
    challenges = [each for each in parse_challenges(header) if each.is_scheme("Bearer", "DPoP")]
    settings = oauth.settings
    server = yield from discovered(around, challenges, settings.issuer)
    scopes = initial_scopes(challenges, server, settings.scopes)
    return (yield from oauth.requested(around, server, with_offline_access(scopes, server)))


async def _run(oauth: OAuth, around: Surroundings, flow: Flow[Result]) -> Result:
    fetcher = AuthFetcher(around.addresses.permits)
    try:
        settings = oauth.settings
        return await FlowDriver(fetcher, settings.store, settings.interaction).run(flow)
    finally:
        await fetcher.close()


def _with_key(around: Surroundings, grant: Grant) -> Surroundings:
    if grant.proof_key is None:
        return around
    from ...auth.jwt_keys import PrivateKey

    key = PrivateKey(grant.proof_key, grant.algorithm)
    return replace(around, proofs=ProofKey(key, around.now))
