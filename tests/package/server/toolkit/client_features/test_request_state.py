"""State that travels through a client's hands: what is accepted, and what is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mcpgen_runtime import InvalidParamsError, Server
from mcpgen_runtime.errors import InternalError
from mcpgen_runtime.server.toolkit.client_features.input_required import RequestStateSigner
from mcpgen_runtime.server.toolkit.key_ring import ServerKeys
from requirements import EVERY_REVISION

KEY = bytes(16)
PAYLOAD = '{"state": "\u00e9\\n"}'.encode()


def signer(*keys: bytes, name: str = "s", seconds: float = 60.0) -> RequestStateSigner:
    return RequestStateSigner(name, ServerKeys(keys or (KEY,)), seconds)


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_signed_state_verifies_in_another_process(size: int) -> None:
    payload = (PAYLOAD * 100)[:size]
    assert signer().verify(signer().sign(payload, b"request"), b"request") == payload


@pytest.mark.requirement(
    "mrtr.state-integrity",
    "mrtr.state-reject-invalid",
    "mrtr.state-untrusted",
    revisions=EVERY_REVISION,
)
def test_no_character_of_a_state_can_be_changed() -> None:
    signed = signer().sign(PAYLOAD, b"request")
    changed = {signed + more for more in ("x", "-TAMPERED", " ", "=")}
    for at, character in enumerate(signed):
        changed.add(signed[:at] + signed[at + 1 :])
        for other in {"A", "B", "-", ".", chr(ord(character) ^ 1), "\u00e9"} - {character}:
            changed.add(signed[:at] + other + signed[at + 1 :])
    garbage = ["", ".", "x", "%%%", "\ud800.\ud800", "A" * 2**20, "e30.e30", "=.=", "a.b.c"]
    for text in (*changed, *garbage):
        with pytest.raises(InvalidParamsError, match="expected one that this server gave, unalt"):
            signer().verify(text, b"request")


@pytest.mark.requirement(
    "mrtr.state-bound-to-request", "mrtr.state-integrity", revisions=EVERY_REVISION
)
def test_a_state_is_for_one_request_of_one_server() -> None:
    signed = signer().sign(PAYLOAD, b"request")
    with pytest.raises(InvalidParamsError, match="not of another"):
        signer().verify(signed, b"other")
    with pytest.raises(InvalidParamsError, match="unaltered"):
        signer(name="other").verify(signed, b"request")
    signed = signer(name="s\nABCD").sign(PAYLOAD, b"request")  # a name that runs into the rest
    with pytest.raises(InvalidParamsError, match="unaltered"):
        signer(name="s").verify(f"ABCD\n{signed}", b"request")


@pytest.mark.requirement("mrtr.state-expiry", revisions=EVERY_REVISION)
def test_a_state_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    # states are dated by the time of day, which no setting replaces
    monkeypatch.setattr(time, "time", lambda: now)
    signed = signer(seconds=60).sign(PAYLOAD, b"request")
    now += 59
    assert signer(seconds=60).verify(signed, b"request") == PAYLOAD
    now += 1
    with pytest.raises(InvalidParamsError, match="expired"):
        signer(seconds=60).verify(signed, b"request")
    assert signer(seconds=0.5).verify(signer(seconds=0.5).sign(PAYLOAD, b""), b"") == PAYLOAD


def test_a_state_has_a_size_that_it_does_not_pass() -> None:
    longest = bytes(196_535)
    signed = signer().sign(longest, b"")
    assert len(signed) == 262_144
    assert signer().verify(signed, b"") == longest
    with pytest.raises(InternalError, match="takes 262146 characters, more than the 262144"):
        signer().sign(longest + b"x", b"")


@pytest.mark.parametrize(
    ("key", "seconds", "kind"),
    [
        (b"short", 60.0, ValueError),
        ([], 60.0, ValueError),
        (KEY, 0.0, ValueError),
        (KEY, float("nan"), ValueError),
        ("0123456789abcdef", 60.0, TypeError),
        (5, 60.0, TypeError),
        (KEY, "60", TypeError),
        ([KEY, 5], 60.0, TypeError),
    ],
)
def test_unusable_settings_are_refused(key: Any, seconds: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="expected"):
        Server("s", state_key=key, state_seconds=seconds)
