"""Challenges of `WWW-Authenticate`, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen_runtime.auth.challenges import (
    Challenge,
    format_challenge,
    format_challenges,
    parse_challenges,
)
from requirements import EVERY_REVISION, requirement

URL = "https://h/.well-known/oauth-protected-resource/mcp"


@requirement("auth-server-metadata.www-authenticate-parsed", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("header", "challenges"),
    [
        ("", []),
        ("Bearer", [("Bearer", {})]),
        ("Bearer ,", [("Bearer", {})]),
        (f'Bearer resource_metadata="{URL}"', [("Bearer", {"resource_metadata": URL})]),
        (f"bearer resource_metadata={URL}", [("bearer", {"resource_metadata": URL})]),
        (
            'Bearer  scope = "a b" ,\r\n  ERROR=invalid_token',
            [("Bearer", {"scope": "a b", "error": "invalid_token"})],
        ),
        (
            r'Bearer error_description="no, \"really\", not", error="x"',
            [("Bearer", {"error_description": 'no, "really", not', "error": "x"})],
        ),
        (
            'Negotiate, Basic realm="r, s", DPoP algs="ES256 PS256", Bearer scope="x"',
            [
                ("Negotiate", {}),
                ("Basic", {"realm": "r, s"}),
                ("DPoP", {"algs": "ES256 PS256"}),
                ("Bearer", {"scope": "x"}),
            ],
        ),
        ('Bearer scope="first", scope="second"', [("Bearer", {"scope": "first"})]),
        ('realm="of nobody", Bearer a=1', [("Bearer", {"a": "1"})]),
        ('Bearer a=1, <<< b, c="open', [("Bearer", {"a": "1", "c": ""})]),
        ('Bearer a="open, b=1', [("Bearer", {"a": ""})]),
        ("Bearer a=1 b=2", [("Bearer", {"a": "1", "b": "2"})]),
    ],
)
def test_challenges_are_read_in_the_forms_that_servers_write(
    header: str, challenges: list[tuple[str, dict[str, str]]]
) -> None:
    parsed = parse_challenges(header)
    assert [(each.scheme, dict(each.parameters)) for each in parsed] == challenges


@given(st.text(max_size=200))
def test_any_header_can_be_read(header: str) -> None:
    for challenge in parse_challenges(header):
        assert challenge.scheme


_VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30)


@requirement("auth-resource-server.challenge-quoting", revisions=EVERY_REVISION)
@given(st.lists(st.dictionaries(st.sampled_from(["realm", "scope", "error"]), _VALUES), max_size=3))
def test_formatted_challenges_parse_to_the_same_challenges(rows: list[dict[str, str]]) -> None:
    challenges = tuple(Challenge("Bearer", row) for row in rows)
    assert parse_challenges(format_challenges(challenges)) == challenges


@requirement("auth-resource-server.challenge-quoting", revisions=EVERY_REVISION)
def test_a_challenge_is_written_with_quotes() -> None:
    challenge = Challenge("Bearer", {"error": "insufficient_scope", "scope": 'a"b\\c'})
    assert format_challenge(challenge) == ('Bearer error="insufficient_scope", scope="a\\"b\\\\c"')
    assert format_challenge(Challenge("Negotiate", token68="YWJj")) == "Negotiate YWJj"


@requirement("auth-resource-server.challenge-quoting", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    "challenge",
    [
        Challenge("Bea rer"),
        Challenge("Bearer", {"sc ope": "a"}),
        Challenge("Bearer", {"scope": "a\r\nSet-Cookie: b"}),
        Challenge("Bearer", {"scope": "\xe9"}),
    ],
)
def test_challenges_that_no_header_can_hold_are_refused(challenge: Challenge) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        format_challenge(challenge)
    assert "Cookie" not in str(caught.value)


@requirement("auth-server-metadata.www-authenticate-parsed", revisions=EVERY_REVISION)
def test_a_challenge_may_have_a_token_and_its_scheme_any_case() -> None:
    first, second = parse_challenges("Negotiate YWJj+/==, bearer realm=x")
    assert (first.token68, first.parameters) == ("YWJj+/==", {})
    assert (second.token68, second.parameters) == (None, {"realm": "x"})
    assert second.is_scheme("Bearer", "DPoP")
    assert not first.is_scheme("Bearer", "DPoP")
