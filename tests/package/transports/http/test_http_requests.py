"""HTTP requests of a client: which responses are followed or refused, and their default limits."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NoReturn

import anyio
import pytest

from mcpgen_runtime.errors import (
    ConnectFailedError,
    ConnectionClosedError,
    HttpStatusError,
    LocalProtocolError,
    ResponseLostError,
)
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.transports.http.http_client import (
    POSTED,
    Bearer,
    HttpRequests,
    Posts,
)
from mcpgen_runtime.transports.http.http_library import Response, TakePart
from package.client.simulation import (
    MemoryReply,
    Network,
    SimulatedResponse,
    VirtualClockLoop,
    simulate,
    use_network,
)
from package.http_server import Asked, Handler, Reply

pytestmark = pytest.mark.processes

URL = "https://mcp.example/a"


class StalledResponse(SimulatedResponse):
    """A response whose body never comes."""

    async def read(self, limit: int, silence: float, seconds: float) -> bytes:
        """See `Response.read`."""
        return await Response.read(self, limit, silence, seconds)

    async def each_part(self, take: TakePart) -> NoReturn:
        """See `Response.each_part`."""
        await anyio.sleep_forever()
        raise AssertionError("it ended")


def stalled(status: int = 200) -> StalledResponse:
    return StalledResponse(URL, status, {}, b"")


@pytest.fixture
def reach(monkeypatch: pytest.MonkeyPatch) -> Callable[[Handler], None]:
    """Let a handler answer all requests to the origin of `URL`."""

    def answer_by(handler: Handler) -> None:
        network = Network(Random(0), {"https://mcp.example": handler}, lambda asked: (0.0, 0.0))
        use_network(monkeypatch, network)

    return answer_by


def respond(status: int, **fields: str) -> Handler:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(status, b"", **fields)

    return handler


def refusal_of(**how: Any) -> HttpStatusError:
    """The error of a request that is refused."""

    async def main() -> None:
        await HttpRequests(**how).open("POST", URL, POSTED, b"{}")

    with pytest.raises(HttpStatusError) as caught:
        simulate("asyncio", 0, main)
    return caught.value


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({}, "made no progress for 60 s"),
        ({"silence": 700.0}, "took more than 600 s"),
        ({"silence": 600.0}, "took more than 600 s"),
        ({"silence": 3.0}, "made no progress for 3 s"),
        ({"silence": 3.0, "body_seconds": 2.5}, "took more than 2.5 s"),
    ],
)
def test_a_body_may_pause_a_minute_and_take_ten(limits: Any, reason: str) -> None:
    async def main() -> None:
        await HttpRequests(**limits).read(stalled())

    with pytest.raises(ResponseLostError) as caught:
        simulate("asyncio", 0, main)
    assert str(caught.value) == f"{URL}: the response body {reason}"


class LoopWithoutNetwork(VirtualClockLoop):
    """A loop that never connects."""

    async def sock_connect(self, sock: Any, address: Any) -> None:
        """Wait."""
        await anyio.sleep_forever()


@pytest.mark.parametrize(("limits", "seconds"), [({}, "10"), ({"connect_timeout": 2.5}, "2.5")])
def test_a_connection_has_ten_seconds(limits: Any, seconds: str) -> None:
    async def main() -> None:
        requests = HttpRequests(**limits)
        try:
            await requests.open("POST", "http://127.0.0.1:9/mcp", POSTED, b"{}")
        finally:
            await requests.close()

    with pytest.raises(ConnectFailedError, match=f": none within {seconds} s$"):
        anyio.run(main, backend_options={"loop_factory": LoopWithoutNetwork})


def test_the_body_of_a_refusal_has_five_seconds(reach: Callable[[Handler], None]) -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        assert isinstance(reply, MemoryReply)
        reply.response = stalled(500)

    async def main() -> float:
        with pytest.raises(HttpStatusError):
            await HttpRequests().open("POST", URL, POSTED, b"{}")
        return anyio.current_time()

    reach(handler)
    assert simulate("asyncio", 0, main) == pytest.approx(5)


@pytest.mark.parametrize("status", [200, 299])
def test_a_status_of_success_is_one(status: int, reach: Callable[[Handler], None]) -> None:
    async def main() -> int:
        return (await HttpRequests().open("POST", URL, POSTED, b"{}")).status

    reach(respond(status))
    assert simulate("asyncio", 0, main) == status


@pytest.mark.parametrize(
    ("status", "location", "shown"),
    [
        (199, "/b", ""),
        *((status, "/b?secret#c", " (a redirect to /b)") for status in (300, 301, 309, 399)),
        (307, "//u:p@other.example/b", " (a redirect to //other.example/b)"),
        (308, URL, f" (a redirect to {URL})"),
        (307, None, ""),
        (400, "/b", ""),
    ],
)
def test_only_some_redirects_are_followed_and_all_are_named(
    status: int, location: str | None, shown: str, reach: Callable[[Handler], None]
) -> None:
    reach(respond(status, **({} if location is None else {"Location": location})))
    words = str(refusal_of()).split()
    assert words == f"POST {URL} answered HTTP {status}{shown}".split()


@pytest.mark.parametrize(
    ("status", "targets"), [(307, ["/a", "/b", "/a", "/b"]), (308, ["/a", "/b", "/b"])]
)
def test_a_permanent_redirect_is_remembered(
    status: int, targets: list[str], reach: Callable[[Handler], None]
) -> None:
    asked_for: list[str] = []

    async def handler(asked: Asked, reply: Reply) -> None:
        asked_for.append(asked.target)
        if asked.target == "/a":
            await reply.whole(status, b"", Location="/b")
        else:
            await reply.whole(200)

    async def main() -> None:
        requests = HttpRequests()
        for _ in range(2):
            await requests.open("POST", URL, POSTED, b"{}")

    reach(handler)
    simulate("asyncio", 0, main)
    assert asked_for == targets


@pytest.mark.parametrize("redirects", [4, 5])
def test_four_redirects_are_followed(redirects: int, reach: Callable[[Handler], None]) -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        number = int(asked.target[2:] or 0)
        if number < redirects:
            await reply.whole(307, b"", Location=f"/a{number + 1}")
        else:
            await reply.whole(200)

    async def main() -> str:
        return (await HttpRequests().open("POST", URL, POSTED, b"{}")).url

    reach(handler)
    if redirects == 4:
        assert simulate("asyncio", 0, main) == f"{URL}4"
    else:
        with pytest.raises(ConnectFailedError, match=f"to {URL}5: more than 5 redirects$"):
            simulate("asyncio", 0, main)


@pytest.mark.parametrize(
    ("kind", "came"), [({}, "no content type"), ({"Content_Type": "a/b; c=d"}, "a/b")]
)
def test_an_unexpected_type_of_content_is_named(
    kind: dict[str, str], came: str, reach: Callable[[Handler], None]
) -> None:
    async def main() -> str:
        requests = HttpRequests()
        response = await requests.open("POST", URL, POSTED, b"{}")
        return str(await requests.unexpected_response(response, "text"))

    reach(respond(201, **kind))
    assert simulate("asyncio", 0, main) == f"{URL}: expected text, came HTTP 201, {came}"


@pytest.mark.parametrize(
    ("name", "value", "sent"),
    [("X-Own", "a b", True), ("X-Own", "a\nb", False), ("X Own", "a b", False), ("", "a", False)],
)
def test_a_field_of_the_user_has_a_name_and_a_value(
    name: str, value: str, sent: bool, reach: Callable[[Handler], None]
) -> None:
    fields: list[dict[str, str]] = []

    async def handler(asked: Asked, reply: Reply) -> None:
        fields.append(asked.fields)
        await reply.whole(200)

    async def make_fields() -> dict[str, str]:
        return {name: value}

    async def main() -> None:
        await HttpRequests(make_fields).open("POST", URL, {"Accept": "b"}, b"{}")

    reach(handler)
    if sent:
        simulate("asyncio", 0, main)
        assert fields == [{"accept": "b", name.lower(): value}]
    else:
        with pytest.raises(LocalProtocolError, match=r"^headers: a header field can't be sent$"):
            simulate("asyncio", 0, main)


CHALLENGES = ", ".join(f'A{n} realm="r", error_description="reason {n}"' for n in (1, 1, 2, 3))
REASONS = "the server's reason: reason 1"
SIGN_IN = "auth=OAuth('Name of the client') signs in, auth='...' sends a token"
WERE_REFUSED = "the credentials of auth= or headers= were refused"


@pytest.mark.parametrize(
    ("status", "challenges", "fields", "advice"),
    [
        (401, None, {}, SIGN_IN),
        (401, None, {"AUTHORIZATION": "x"}, WERE_REFUSED),
        (401, 'A error="b"', {}, f"the server's reason: b; {SIGN_IN}"),
        (401, CHALLENGES, {"X-Own": "x"}, f"{REASONS}; {SIGN_IN}"),
        (403, CHALLENGES, {}, REASONS),
        (403, 'A realm="r"', {"Authorization": "x"}, ""),
        (402, CHALLENGES, {}, ""),
    ],
)
def test_a_refusal_has_the_reasons_of_the_server_and_advice(
    status: int,
    challenges: str | None,
    fields: dict[str, str],
    advice: str,
    reach: Callable[[Handler], None],
) -> None:
    async def make_fields() -> dict[str, str]:
        return fields

    reach(respond(status, **({} if challenges is None else {"WWW_Authenticate": challenges})))
    text = str(refusal_of(headers=make_fields))
    assert text == f"POST {URL} answered HTTP {status}" + (f"; {advice}" if advice else "")


def test_a_reason_in_the_body_of_a_refusal_is_not_repeated(
    reach: Callable[[Handler], None],
) -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        challenge = 'A error_description="expired", B error="other"'
        await reply.whole(403, b"it is expired", WWW_Authenticate=challenge)

    reach(handler)
    assert str(refusal_of()).endswith(": it is expired; the server's reason: other")


@pytest.mark.parametrize(
    ("status", "attempts", "renewed"), [(401, 0, True), (401, 1, False), (403, 0, False)]
)
async def test_a_token_is_renewed_once_for_a_request(
    status: int, attempts: int, renewed: bool
) -> None:
    tokens = iter(["first", "second"])
    authorizer = Bearer(lambda: next(tokens)).authorizer(URL, REVISIONS)
    sent = await authorizer.fields("POST", URL)
    assert await authorizer.fields("POST", URL) == sent == {"Authorization": "Bearer first"}
    response = SimulatedResponse(URL, status, {}, b"")
    request = ("POST", URL, b"{}")
    assert await authorizer.wants_retry(response, sent, request, attempts) is renewed
    shown = "second" if renewed else "first"
    assert await authorizer.fields("POST", URL) == {"Authorization": f"Bearer {shown}"}
    assert await authorizer.fields("GET", f"{URL}/b") == {"Authorization": f"Bearer {shown}"}
    assert await authorizer.fields("GET", "https://other.example/a") == {}


@pytest.mark.parametrize(("method", "shown"), [("ping", "ping"), (None, "an answer")])
def test_a_post_that_is_not_accepted_in_time_is_lost(method: str | None, shown: str) -> None:
    async def main() -> None:
        with Posts().within(2.5, method, URL):
            await anyio.sleep_forever()

    with pytest.raises(ResponseLostError) as caught:
        simulate("asyncio", 0, main)
    assert str(caught.value) == f"{URL}: {shown} was not accepted within 2.5 s"


async def test_only_posts_under_way_are_cancelled() -> None:
    posts = Posts()
    with posts.within(5, "ping", URL):
        pass
    with pytest.raises(ConnectionClosedError), posts.within(5, "ping", URL):
        posts.cancel()
        await anyio.sleep_forever()
