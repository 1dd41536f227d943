"""Secrets in messages are masked, the rest stays readable, and hostile texts cost little time."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mcpgen_runtime.runtime.masking import MASK, SEARCH_LIMIT, mask_members, mask_text, mask_value
from mcpgen_runtime.server.toolkit.argument_errors import secret_members, without_values

SECRET = "hunter2"


@pytest.mark.parametrize(
    "name",
    [
        *("authorization", "Authorization", "token", "accessToken", "refresh_token", "api_key"),
        *("apiKey", "X-API-Key", "password", "PASSWD", "client_secret", "Set-Cookie", "cookies"),
        *("credentials", "private_key", "passphrase", "secretKey", "privateKey", "access_key"),
        *("pwd", "userPwd", "DB_PWD", "jwt", "otp", "otpCode", "bearer", "passcode", "pass_code"),
        *("auth", "basicAuth", "auth_header", "sessionId", "Mcp-Session-Id", "session_key", "sid"),
        *("code_verifier", "client_assertion", "id_token", "tokenValue", "token_secret", "csrf"),
        *("encryptionKey", "signing_key", "AccountKey", "mnemonic", "GITHUB_TOKEN"),
    ],
)
@pytest.mark.parametrize("value", [SECRET, 7, [SECRET], {"inner": SECRET}])
def test_members_with_secret_names_are_masked(name: str, value: Any) -> None:
    assert mask_value({"params": [{name: value}]}) == {"params": [{name: MASK}]}


@pytest.mark.parametrize("name", ["tokens", "authTokens", "USER_TOKENS", "pin", "userPin", "PIN"])
@pytest.mark.parametrize("value", [SECRET, [SECRET], {"inner": SECRET}])
def test_members_that_often_count_are_masked_unless_numbers(name: str, value: Any) -> None:
    assert mask_value({name: value}) == {name: MASK}
    assert mask_value({name: 1234}) == {name: 1234}


@pytest.mark.parametrize(
    "value",
    [
        {"_meta": {"progressToken": 7}},
        {"_meta": {"progressToken": "p-7", "progress_token": "p-8"}},
        {"maxTokens": 100, "inputTokens": 5, "total_tokens": 1.5},
        {"token": None, "secret": True},
        {"nextCursor": "abc", "nextPageToken": "def", "n": [1, 1.5, None, True]},
        {"name": "colour", "value": "red"},
        {"name": 5, "value": "red"},
        {"properties": ["a"], "$defs": 1},
        {"text": 'password="" and password='},
        {"author": "me", "authority": "them", "spin": "up", "pinned": "no", "monkey": "see"},
        {
            "tokenizer": "gpt",
            "token_type": "word",
            "token_endpoint": "https://host/t",
            "keys": "ab",
        },
        {"inputSchema": {"properties": {"password": {"type": "string", "minLength": 8}}}},
        {"$defs": {"Token": {"type": "string"}}},
        {"arguments": [{"name": "password", "description": "of the user", "required": True}]},
        {"text": "bearer of bad news; a token of thanks: one"},
        {"text": "max_tokens: 100, inputTokens=5; a basic principle, token introspection, sk-8"},
        {"text": "http://host:8080/a@b and https://host/@scope/name and mailto:a@b.c"},
        {"data": "QUJDcGFzc3dvcmQ" * 1000 + "=="},
    ],
)
def test_a_value_without_secrets_is_unchanged(value: Any) -> None:
    assert mask_value(value) == value


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ({"properties": {"password": SECRET}}, {"properties": {"password": MASK}}),
        *(
            ([{label: "Authorization", "value": SECRET}], [{label: "Authorization", "value": MASK}])
            for label in ("name", "key")
        ),
        (["run", "--api-key", SECRET, "x", "--key"], ["run", "--api-key", MASK, "x", "--key"]),
        ([f"--{'x' * 88}-password", SECRET], [f"--{'x' * 88}-password", MASK]),
        *(
            ([option, SECRET], [option, SECRET])
            for option in (f"--{'x' * 89}-password", "--password=", "-password", "password")
        ),
    ],
)
def test_a_value_beside_a_secret_name_or_option_is_masked(value: Any, masked: Any) -> None:
    assert mask_value(value) == masked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abcdefgh123", f"Authorization: Bearer {MASK}"),
        ("Authorization: Basic dXNlcjpwYXNz", f"Authorization: Basic {MASK}"),
        ("Authorization: token hunter2", f"Authorization: token {MASK}"),
        ("Authorization: hunter2 hunter2\nHost: h", f"Authorization: {MASK}\nHost: h"),
        (
            'Authorization: Digest username="u", response="hunter2"\r\nHost: h',
            f"Authorization: Digest {MASK}\r\nHost: h",
        ),
        (
            "curl -H 'Authorization: Bearer x y' http://h/",
            "curl -H 'Authorization: {}' http://h/",
        ),
        ("send bearer eyJhbGciOi.J9-x_y~z= now", f"send bearer {MASK} now"),
        ("send Basic dXNlcjpwYXNz now", f"send Basic {MASK} now"),
        ('got Digest username="u", response="x"', f"got Digest {MASK}"),
        ("Cookie: a=b; sid=hunter2\nx", f"Cookie: {MASK}\nx"),
        ("Set-Cookie: a=b; sid=hunter2; Path=/", f"Set-Cookie: {MASK}"),
        ("http://h/?api_key=k1&x=2", f"http://h/?api_key={MASK}&x=2"),
        ("aws_secret_access_key = hunter2 # x", f"aws_secret_access_key = {MASK} # x"),
        ("DB_PASSWORD=hunter,2;x", f"DB_PASSWORD={MASK}"),
        ("Server=h;Password=hunter2;Database=d", f"Server=h;Password={MASK};Database=d"),
        ('password="a b \\" hunter2" x', f'password="{MASK}" x'),
        ("password='a b hunter2' x", f"password='{MASK}' x"),
        ('password="hunter2', f'password="{MASK}'),
        ('password="hunter2\\"" x', f'password="{MASK}" x'),
        ('secret={"a": [{}, 1], "b": "}"} x', f"secret={MASK} x"),
        ("password=7, tokens=7", f"password={MASK}, tokens=7"),
        ("passphrase: correct horse\nnext: x", f"passphrase: {MASK}\nnext: x"),
        ("login --password hunter2 --verbose", f"login --password {MASK} --verbose"),
        ("<password>hunter2</password><a>b</a>", f"<password>{MASK}</password><a>b</a>"),
        (f"<password>{'-' * 4096}<", f"<password>{MASK}<"),
        (f"<password>{'-' * 4096} end", f"<password>{MASK} end"),
        (f"<{'a' * 63}password>b</a>", f"<{'a' * 63}password>{MASK}</a>"),
        (f"<{'a' * 64}password>b</a>", f"<{'a' * 64}password>b</a>"),
        ('{"password": "hunter2", "x": 1}', f'{{"password": "{MASK}", "x": 1}}'),
        ("{'password': 'hunter2', 'x': 1}", f"{{'password': '{MASK}', 'x': 1}}"),
        ('{\\"token\\":\\"abc\\"}', f'{{\\"token\\":\\"{MASK}\\"}}'),
        ('{\\"token\\":\\"a\\\\\\"c\\"}', f'{{\\"token\\":\\"{MASK}\\"}}'),
        ('{"tokens": ["a]", "b"], "x": 1}', f'{{"tokens": {MASK}, "x": 1}}'),
        ('{"progressToken": "abc"}', '{"progressToken": "abc"}'),
        ("https://user:pa:ss@host/", f"https://user:{MASK}@host/"),
        ("postgres://user:p@hunter2@h/db", f"postgres://user:{MASK}@h/db"),
        ("redis://:hun/ter2@h:6379", f"redis://:{MASK}@h:6379"),
        ("https://0123456789abcdef0123@h/", f"https://{MASK}@h/"),
        ("it is eyJhbGciOiJI.eyJzdWIiOiIx.c2ln !", f"it is {MASK} !"),
        ("ghp_0123456789abcdef", MASK),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4\nMIIE\n-----END RSA PRIVATE KEY-----",
            f"-----BEGIN RSA PRIVATE KEY-----{MASK}-----END RSA PRIVATE KEY-----",
        ),
        ("\u0130\u0130 password=hunter2", f"\u0130\u0130 password={MASK}"),
    ],
)
def test_secrets_within_text_are_masked(text: str, expected: str) -> None:
    assert mask_value(text) == expected.replace("{}", f"Bearer {MASK}")


def test_masking_twice_is_the_same_as_masking_once() -> None:
    once = mask_text(f"Authorization: Bearer {SECRET} and password={SECRET}")
    assert mask_text(once) == once


def test_a_message_is_searched_and_shown_up_to_a_limit() -> None:
    text = "token: abc " * (SEARCH_LIMIT // 11) + "x" * 11
    first, second, plain = mask_value([text, text, "x" * len(text)])
    assert "abc" not in first
    assert first.endswith(f"... ({len(text)} characters)")
    assert second == f"... ({len(text)} characters)"
    assert plain == "x" * len(text)
    longest = "token: abc ".ljust(SEARCH_LIMIT, "x")
    assert mask_value(longest) == longest.replace("abc", MASK)


def test_a_text_that_assigns_nothing_does_not_count() -> None:
    words = "secret " * (SEARCH_LIMIT // 7 + 1)
    assert mask_value([words, "password=abc"]) == [words, f"password={MASK}"]


HOSTILE = [
    *("a=", "a", "=", ":", " ", "\\", '"', "-", "--", "<", "{", "://", "://a:", "://a:b@", "@"),
    *("secret", "secret_", "password=", 'password="', "password='x", 'password=\\"', "password=["),
    *('password={"', "<password>", "--password ", "--password --", "password=a,a", ",a", "; a b"),
    *("password " + " " * 20, "cookie: ", '"cookie: ', "'cookie: \n\"cookie:\n", "authorization: "),
    *("auth=basic ", "bearer ", "Bearer a", "Token aaaaaaaa ", "digest ", "digest a=", "eyJ"),
    *("eyJaaaaaaaa.", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "gh", "ghp_", "sk-", "AKIA"),
    *("tokens: 1 ", "pin=" + "1" * 50, "password=" + "\\" * 30, "token" * 3 + "\\" * 14),
]


@pytest.mark.parametrize("head", ["", 'password="', "password={", "://a:", "bearer "])
def test_every_text_takes_time_linear_in_its_length(head: str) -> None:
    size = 40_000
    slow: list[str] = []
    for piece in HOSTILE:
        started = time.process_time()
        mask_text(head + piece * (size // len(piece)))
        # About 1 us a character. A search that starts anew at each of them takes 100 times that.
        if time.process_time() - started > size * 20e-6:
            slow.append(piece)
    assert slow == []


SECRET_TEXT = {"type": "string", "writeOnly": True}


@pytest.mark.parametrize(
    "schema",
    [
        SECRET_TEXT,
        {"type": "string", "format": "password"},
        {"$ref": "#/$defs/Secret"},
        {"anyOf": [{"type": "null"}, SECRET_TEXT]},
        {"type": "array", "items": SECRET_TEXT},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/Secret"}},
        {"$ref": "#/$defs/Loop", "items": SECRET_TEXT},
    ],
)
def test_a_member_is_secret_if_its_schema_says_so_anywhere(schema: dict[str, Any]) -> None:
    definitions = {"Secret": SECRET_TEXT, "Loop": {"items": {"$ref": "#/$defs/Loop"}}}
    inner = {"properties": {"key": schema, "open": {"$ref": "#/$defs/Loop"}}}
    for whole in (inner, {"properties": {"deep": inner}}, {"anyOf": [{"type": "null"}, inner]}):
        assert secret_members({**whole, "$defs": definitions}) == {"key"}


@pytest.mark.parametrize("schema", [True, {"writeOnly": False}, {"format": "uri"}, {"$ref": "x"}])
def test_a_member_is_open_if_its_schema_says_nothing(schema: Any) -> None:
    assert secret_members({"properties": {"key": schema}}) == frozenset()


def test_secret_members_are_masked_at_any_depth() -> None:
    value = {"key": "a", "rest": [{"key": {"b": 1}, "name": "c"}, "key"]}
    masked = {"key": MASK, "rest": [{"key": MASK, "name": "c"}, "key"]}
    assert mask_members(value, {"key"}) == masked


def test_a_text_shows_no_secret_value_and_no_end_of_one() -> None:
    arguments = {"key": [{"a": "sk"}, 4711, True, None], "more": [{"key": "sk'-long"}], "name": "n"}
    text = "got 'sk' and 4711, True, None, \"sk'-long\" of 'n'"
    shown = f"got {MASK} and {MASK}, True, None, {MASK} of 'n'"
    assert without_values(text, arguments, {"key"}) == shown
    numbers = {"key": [47, 4711]}
    assert without_values("47 and 4711", numbers, {"key"}) == f"{MASK} and {MASK}"
