"""The device authorization flow: the user authorizes on another device, by a short code.

Source: RFC 8628.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import AuthorizationError, OAuthError
from .discovery import Discovered, Surroundings
from .records import Grant
from .registration import DEVICE_GRANT, ClientProfile, identified
from .steps import DeviceCode, Flow, Pause, ShowCode
from .token_requests import granted, posted
from .tokens import read_success

_WHERE = "the device authorization endpoint"
_CODE_CHARACTERS = 64  # of a code that a person types
_INTERVAL = 5.0  # seconds between two requests, where the server names none; also what is added
_LONGEST = 3600.0  # seconds that a code is waited for at most


def device_authorized(
    around: Surroundings, profile: ClientProfile, server: Discovered, scopes: tuple[str, ...]
) -> Flow[Grant]:
    """The whole flow: show the user a code, and ask for the token until the user has agreed.

    Args:
        around: The MCP server, the address rules and the clock.
        profile: The client.
        server: The authorization server.
        scopes: The scopes to ask for; empty to leave them out.

    Raises:
        OAuthError: The user or the authorization server refused, or the code expired.
        AuthorizationError: The authorization server has no device flow, or a response is malformed.
    """
    issuer = server.issuer
    endpoint = server.endpoint("device_authorization_endpoint", around)
    token_endpoint = server.endpoint("token_endpoint", around)
    client = yield from identified(around, profile, server, None)
    methods = issuer.texts("token_endpoint_auth_methods_supported")
    grant = Grant(
        issuer.issuer,
        None,
        token_endpoint,
        methods,
        client.client_id,
        client.client_secret,
        client.method,
        server.resource,
        scopes,
    )
    form = {"client_id": client.client_id}
    if scopes:
        form["scope"] = " ".join(scopes)
    if server.resource is not None:
        form["resource"] = server.resource
    response = yield from posted(around, endpoint, form, client, issuer.issuer, methods)
    members = read_success(response, _WHERE)
    device_code = members.get("device_code")
    if not isinstance(device_code, str) or not device_code:
        raise AuthorizationError(f"{_WHERE}: expected a `device_code`")
    code = _shown(members, around)
    form = {"grant_type": DEVICE_GRANT, "device_code": device_code}
    interval = _seconds(members.get("interval"), _INTERVAL)
    until = around.now() + code.expires_in
    yield ShowCode(code)
    while True:
        yield Pause(interval)
        if around.now() >= until:
            raise AuthorizationError(
                f"the user did not authorize the device within {code.expires_in:g} s"
            )
        try:
            return (yield from granted(around, grant, form, client))
        except OAuthError as error:
            if error.code == "slow_down":
                interval += _INTERVAL
            elif error.code != "authorization_pending":
                raise


def _shown(members: Mapping[str, Any], around: Surroundings) -> DeviceCode:
    """The part of a response that the user is shown, checked: the server may not be trusted.

    Raises:
        AuthorizationError: The code is not printable ASCII, or a URL may not be opened.
    """
    code = members.get("user_code")
    if not isinstance(code, str) or not 0 < len(code) <= _CODE_CHARACTERS:
        raise AuthorizationError(f"{_WHERE}: expected a `user_code`")
    if not code.isascii() or not code.isprintable():
        raise AuthorizationError(f"{_WHERE}: expected a `user_code` that can be typed")
    complete = members.get("verification_uri_complete")
    return DeviceCode(
        code,
        around.addresses.check(members.get("verification_uri"), "`verification_uri`"),
        (
            None
            if complete is None
            else around.addresses.check(complete, "`verification_uri_complete`")
        ),
        _seconds(members.get("expires_in"), _LONGEST),
    )


def _seconds(value: object, default: float) -> float:
    """Seconds in a response, of at most `_LONGEST`; the default for anything but a number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return default
    return min(float(value), _LONGEST)
