"""The device authorization flow: the user enters a short code on another device.

Source: RFC 8628.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import AuthorizationError, OAuthError
from .discovery import AuthorizationServer, FlowContext
from .records import Grant
from .registration import DEVICE_GRANT, ClientProfile, identify_client
from .steps import DeviceCode, Flow, Pause, ShowCode
from .token_requests import new_grant, post_form, request_token
from .tokens import read_success

_WHERE = "the device authorization endpoint"
_CODE_CHARACTERS = 64  # longest user code
_INTERVAL = 5.0  # default seconds between two requests, and the increment for `slow_down`
_LONGEST = 3600.0  # longest lifetime of a code, in seconds


def device_flow(
    context: FlowContext,
    profile: ClientProfile,
    server: AuthorizationServer,
    scopes: tuple[str, ...],
) -> Flow[Grant]:
    """The whole flow: show the user a code, and poll for the token until the user has authorized.

    Args:
        context: What all flows for the MCP server share.
        profile: The client.
        server: The authorization server.
        scopes: The scopes to request; empty to omit the parameter.

    Raises:
        OAuthError: The user or the authorization server refused, or the code expired.
        AuthorizationError: The authorization server has no device flow, or a response is malformed.
    """
    endpoint = server.endpoint("device_authorization_endpoint", context)
    server.endpoint("token_endpoint", context)  # fail before the client is registered
    client = yield from identify_client(context, profile, server, None, scopes)
    grant = new_grant(context, server, scopes, client)
    form = {"client_id": client.client_id}
    if scopes:
        form["scope"] = " ".join(scopes)
    if server.resource is not None:
        form["resource"] = server.resource
    response = yield from post_form(context, endpoint, form, client, grant.issuer, grant.methods)
    members = read_success(response, _WHERE)
    device_code = members.get("device_code")
    if not isinstance(device_code, str) or not device_code:
        raise AuthorizationError(f"{_WHERE}: expected a `device_code`")
    code = _device_code(members, context)
    form = {"grant_type": DEVICE_GRANT, "device_code": device_code}
    interval = _seconds(members.get("interval"), _INTERVAL)
    until = context.now() + code.expires_in
    yield ShowCode(code)
    while True:
        yield Pause(interval)
        if context.now() >= until:
            raise AuthorizationError(
                f"the user did not authorize the device within {code.expires_in:g} s"
            )
        try:
            return (yield from request_token(context, grant, form, client))
        except OAuthError as error:
            if error.code == "slow_down":
                interval += _INTERVAL
            elif error.code != "authorization_pending":
                raise


def _device_code(members: Mapping[str, Any], context: FlowContext) -> DeviceCode:
    """The members of a response to show the user.

    Raises:
        AuthorizationError: The code is not short printable ASCII, or a URL is not allowed.
    """
    code = members.get("user_code")
    if not isinstance(code, str) or not 0 < len(code) <= _CODE_CHARACTERS:
        raise AuthorizationError(f"{_WHERE}: expected a `user_code`")
    if not code.isascii() or not code.isprintable():
        raise AuthorizationError(f"{_WHERE}: expected a `user_code` of printable ASCII")
    complete = members.get("verification_uri_complete")
    return DeviceCode(
        code,
        context.addresses.check(members.get("verification_uri"), "`verification_uri`"),
        (
            None
            if complete is None
            else context.addresses.check(complete, "`verification_uri_complete`")
        ),
        _seconds(members.get("expires_in"), _LONGEST),
    )


def _seconds(value: object, default: float) -> float:
    """A number of seconds, at most `_LONGEST`; the default unless the value is a number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return default
    return min(float(value), _LONGEST)
