"""Both SDKs for TypeScript as clients of our server over HTTP, as their scripts tell it."""

from __future__ import annotations

from typing import Any

import pytest

from interop.processes import results, table
from interop.revisions import (
    BATCHES,
    ELICITATION,
    HANDSHAKE,
    PAGES,
    RESUMING,
    STATELESS,
    STRUCTURED_OUTPUT,
)

pytestmark = pytest.mark.interop

V1, V2 = "client_v1.mjs", "client_v2.mjs"
VISITS = [
    *((V1, revision, "http") for revision in HANDSHAKE),
    *((V2, revision, "http") for revision in (*HANDSHAKE, STATELESS)),
    *(
        (script, revision, "sse")
        for script in (V1, V2)
        for revision in (HANDSHAKE[0], HANDSHAKE[-1])
    ),
]
SAME: dict[str, Any] = table("npm_clients")
"""Expected results in every revision, by step."""

AREAS = ("north", "=?base64?IMO8IA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?=", "=?base64??=")
"""How the second SDK writes the areas of `district` into a header field."""


@pytest.fixture(scope="module", params=VISITS, ids=" ".join)
def visit(request: pytest.FixtureRequest, url: str) -> dict[str, Any]:
    """Results of one client, by step, with its script, revision and transport."""
    script, revision, kind = request.param
    address = url if kind == "http" else url.replace("/mcp", "/sse")
    values = results(script, [address, revision, kind])
    return {"script": script, "revision": revision, "kind": kind, **values}


def test_the_revision_asked_for_is_the_one_agreed(visit: dict[str, Any]) -> None:
    assert visit["agreed"] == visit["revision"]


@pytest.mark.parametrize("step", SAME)
def test_a_client_finds_the_same_in_every_revision(visit: dict[str, Any], step: str) -> None:
    assert visit[step] == SAME[step]


def test_a_result_is_structured_where_the_revision_has_that(visit: dict[str, Any]) -> None:
    structured = {"structuredContent": {"result": 3}}
    assert visit["add"] == {
        "content": [{"type": "text", "text": "3"}],
        **(structured if visit["revision"] in STRUCTURED_OUTPUT else {}),
    }


def test_the_user_is_asked_where_the_revision_has_that(visit: dict[str, Any]) -> None:
    if visit["revision"] in ELICITATION:
        assert visit["elicitation"] == "booked for Ada (3)"
        assert visit["two elicitations"] == "booked for Ada (3), then Ada (3)"
        assert visit["plan"] == "Ada (3), <sun>, file:///maps"
    else:
        assert "elicitation" in visit["elicitation"]["error"]["message"]


def test_the_user_is_sent_to_a_page_where_the_revision_has_that(visit: dict[str, Any]) -> None:
    if visit["revision"] not in PAGES:
        assert "error" in visit["page"]
        return
    assert visit["page"] == "accept"
    assert visit["enter second"] == "welcome"
    if visit["revision"] == STATELESS:
        assert visit["enter first"] == "welcome"
    else:
        assert visit["pages"] == 1
        assert visit["enter first"]["error"]["code"] == -32042
        assert visit["enter first"]["error"]["kind"] == "UrlElicitationRequiredError"


def test_errors_arrive_with_code_and_data(visit: dict[str, Any]) -> None:
    refused = visit["refuse"]["error"]
    assert (refused["code"], refused["data"]) == (1050, {"retry": False})
    assert visit["unknown tool"]["error"]["code"] == -32602
    missing = visit["read unknown"]["error"]
    assert missing["code"] in (-32002, -32602)
    assert missing["data"] == {"uri": "city://nowhere"}


def test_a_batch_is_answered_where_the_revision_has_that(visit: dict[str, Any]) -> None:
    if (visit["script"], visit["revision"]) != (V1, BATCHES):
        pytest.skip("the revision has no batches, or the SDK does not")
    answers = visit["batch"]
    assert answers["batch-1"] == {}
    assert answers["batch-2"]["content"] == [{"type": "text", "text": "3"}]


def test_no_request_is_refused_but_one_after_the_end(visit: dict[str, Any]) -> None:
    """But for the stream of what was cancelled: the SDKs want it again, and there is no more.

    They may want it after they ended the session.
    """
    of_streams = [each for each in visit["requests"] if each["resumed"]]
    requests = [each for each in visit["requests"] if not each["resumed"]]
    assert {each["status"] for each in of_streams} <= {200, 400, 404}
    assert {each["status"] for each in requests} <= {200, 202, 204}
    assert requests
    if visit["kind"] == "http" and visit["revision"] != STATELESS:
        assert visit["after the end"] == 404
        assert requests[-1]["method"] == "DELETE"


def test_a_closed_stream_is_taken_up_where_the_revision_has_that(visit: dict[str, Any]) -> None:
    resumed = [each for each in visit["requests"] if each["resumed"] and each["status"] == 200]
    assert bool(resumed) == (visit["revision"] in RESUMING and visit["kind"] == "http")


def test_without_sessions_all_requests_are_posts_with_headers(
    visit: dict[str, Any],
) -> None:
    if visit["revision"] != STATELESS:
        pytest.skip("has sessions")
    requests = visit["requests"]
    assert {each["method"] for each in requests} == {"POST"}
    assert not any(each["session"] for each in requests)
    areas = [each["area"] for each in requests if each["area"] is not None]
    assert sorted(areas) == sorted(AREAS)
