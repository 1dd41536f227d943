"""The device flow: a code for the user, and requests for the token until the user has agreed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import pytest

from kit.auth_answers import (
    AS_URL,
    ISSUER,
    METADATA,
    NEWEST,
    NOW,
    SERVER,
    TOKEN,
    World,
    around,
    discover_server,
    json_response,
    query_of,
)
from kit.http_server import Asked, Reply
from kit.rules import revisions_holding
from mcpgen_runtime import AuthorizationError, Device, DeviceCode, OAuth, OAuthError, connect
from mcpgen_runtime.auth.flows import device_flow
from mcpgen_runtime.auth.registration import DEVICE_GRANT, ClientProfile
from mcpgen_runtime.auth.steps import Fetched
from mcpgen_runtime.auth.token_endpoint import Grant
from package.client.auth.protected import Issuer, agreeing_user, run_protected_server
from package.tables import table

ENDPOINT = f"{ISSUER}/device"
CODES = table("device_codes")
CODE: dict[str, Any] = CODES["code"]
OVER_HTTP = revisions_holding("auth-server-metadata.prm-used-by-client")


def refusal(code: str) -> Fetched:
    return json_response({"error": code}, 400)


def world(*tokens: Fetched, **code: Any) -> World:
    """An authorization server with a device flow."""
    members = {name: value for name, value in {**CODE, **code}.items() if value is not None}
    answers = iter((*tokens, json_response(TOKEN)))
    made = World(
        {
            f"POST {ENDPOINT}": json_response(members),
            f"POST {ISSUER}/token": lambda _: next(answers),
        }
    )
    made.answers[f"GET {AS_URL}"] = json_response(
        {**METADATA, "device_authorization_endpoint": ENDPOINT}
    )
    return made


def authorize_device(
    world: World, profile: ClientProfile | None = None, now: Callable[[], float] | None = None
) -> Grant:
    """The grant at the end of the flow."""
    rules = around() if now is None else replace(around(), now=now)
    server = discover_server(world)
    return world.run(device_flow(rules, profile or ClientProfile("Agent"), server, ("a",)))


def test_a_user_who_agrees_at_last_gives_a_token() -> None:
    there = world(refusal("authorization_pending"), refusal("slow_down"))
    grant = authorize_device(there)
    assert grant.token is not None
    assert grant.token.value == "access-1"
    assert there.paused == [2, 2, 7]
    (code,) = there.codes
    assert "WDJB" not in repr(code)
    assert code == DeviceCode(
        "WDJB-MJHT", CODE["verification_uri"], CODE["verification_uri_complete"], 900
    )
    assert there.urls()[:2] == [f"POST {ISSUER}/register", f"POST {ENDPOINT}"]
    registered = json.loads(there.asked[0].body or b"")
    assert registered["grant_types"] == [DEVICE_GRANT, "refresh_token"]
    assert registered["redirect_uris"] == registered["response_types"] == []
    assert there.form(1) == {"client_id": "registered", "scope": "a", "resource": SERVER}
    form = there.form()
    assert form["grant_type"] == DEVICE_GRANT
    assert form["device_code"] == "secret-device-code"
    assert form["resource"] == SERVER
    there.answers[f"POST {ISSUER}/token"] = json_response(TOKEN)
    authorize_device(there)
    assert f"POST {ISSUER}/register" not in there.urls()  # the record is used again


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [
        (0, 1),
        (0.001, 1),
        (-1, 5),
        (10**9, 60),
        (59.5, 59.5),
        (10**400, 5),
        (None, 5),
        (True, 5),
        ("0", 5),
    ],
    ids=lambda value: str(value)[:10],
)
def test_a_server_chooses_the_interval_within_bounds(interval: object, seconds: float) -> None:
    there = world(refusal("authorization_pending"), interval=interval)
    authorize_device(there)
    assert there.paused == [seconds, seconds]


@pytest.mark.parametrize(
    "expires_in",
    [10**9, 10**400, -(10**400), -1, "900", None],
    ids=lambda value: str(value)[:10],
)
def test_a_code_lives_for_an_hour_at_most(expires_in: object) -> None:
    there = world(expires_in=expires_in)
    authorize_device(there)
    assert there.codes[0].expires_in == 3600


def test_a_code_that_has_expired_is_asked_for_no_longer() -> None:
    there = world(*[refusal("authorization_pending")] * 10, expires_in=5)

    def clock() -> Iterator[float]:
        yield from (NOW, NOW + 2, NOW + 4, NOW + 5)

    ticks = clock()
    with pytest.raises(AuthorizationError, match="within 5 s"):
        authorize_device(there, now=lambda: next(ticks))


@pytest.mark.parametrize("code", ["access_denied", "expired_token", "invalid_client"])
def test_a_refusal_is_an_error_with_its_code(code: str) -> None:
    with pytest.raises(OAuthError) as raised:
        authorize_device(world(refusal(code)))
    assert raised.value.code == code
    assert "secret-device-code" not in str(raised.value)


BAD: dict[str, dict[str, Any]] = CODES["unsafe"]


@pytest.mark.parametrize("case", BAD)
def test_unsafe_device_codes_and_urls_end_the_flow(case: str) -> None:
    there = world(**BAD[case])
    with pytest.raises(AuthorizationError):
        authorize_device(there)
    assert there.codes == []


@pytest.mark.parametrize("lacking", ["device_authorization_endpoint", "token_endpoint"])
def test_a_server_without_a_device_flow_is_named_and_registers_nobody(lacking: str) -> None:
    there = world()
    there.answers[f"GET {AS_URL}"] = json_response(
        {**METADATA, "device_authorization_endpoint": ENDPOINT, lacking: None}
    )
    with pytest.raises(AuthorizationError, match=lacking):
        authorize_device(there)
    assert there.asked == []


class DeviceIssuer(Issuer):
    """An authorization server whose user types the code at once."""

    def metadata(self) -> dict[str, Any]:
        return {**super().metadata(), "device_authorization_endpoint": f"{self.url}/device"}

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        if asked.target == "/device":
            form = dict(parse_qsl(asked.body.decode()))
            self.devices = {"device-1": frozenset(form.get("scope", "").split())}
            await reply.json(
                {
                    "device_code": "device-1",
                    "user_code": "ABCD",
                    "verification_uri": f"{self.url}/activate",
                    "expires_in": 60,
                    "interval": 0,
                }
            )
            return
        await super().__call__(asked, reply)

    def granted_scopes(self, form: dict[str, str]) -> frozenset[str] | None:
        if form["grant_type"] == DEVICE_GRANT:
            return self.devices.pop(form["device_code"], None)
        return super().granted_scopes(form)


@pytest.mark.parametrize("revision", OVER_HTTP)
async def test_a_client_without_a_browser_comes_to_a_token(revision: str) -> None:
    shown: list[DeviceCode] = []
    async with run_protected_server(revision, issuer=DeviceIssuer()) as (script, _):
        auth = OAuth("Agent", interaction=Device(shown.append))
        async with connect(script.url, auth=auth, revision=revision) as client:
            assert (await client.list_tools())[0].name == "echo"
        assert [code.user_code for code in shown] == ["ABCD"]
        assert script.issuer.visits == []


@pytest.mark.parametrize(
    ("scheme", "scopes"), [("Bearer", "a b"), ("DPoP", "a b"), ("Basic", None)]
)
async def test_the_first_half_requests_the_scopes_of_a_challenge(
    scheme: str, scopes: str | None
) -> None:
    async with run_protected_server(NEWEST) as (script, _):
        script.challenge = f'{scheme} scope="a b"'
        pending = await agreeing_user(script.issuer).begin(script.url)
        assert query_of(pending.url).get("scope") == scopes


async def test_the_two_halves_need_a_redirect(capsys: pytest.CaptureFixture[str]) -> None:
    async with run_protected_server(NEWEST) as (script, _):
        with pytest.raises(AuthorizationError, match="redirect URI"):
            await OAuth("Agent", interaction=Device()).begin(script.url)
    await Device().show(DeviceCode("ABCD", "https://a.example/activate"))
    assert capsys.readouterr().out == "Open https://a.example/activate and enter the code ABCD\n"
