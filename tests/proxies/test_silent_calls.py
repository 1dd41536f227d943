"""Silent calls through nginx and HAProxy: they get their answer, and can be cancelled.

All calls are made side by side, once; each test looks at how one of them ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import anyio
import pytest

from kit.faults import EACH, Outcome
from kit.http_process import HttpProcess, http_process
from kit.wire import PER_REQUEST
from proxies.calls import Scenario, run_all
from proxies.programs import Proxy, Route, haproxy, nginx

pytestmark = [pytest.mark.proxies, pytest.mark.timeout(240)]

SERVERS = {"auto": {"h11": True}, "sse": {}}
"""How the servers answer, and what uvicorn has to speak HTTP with: h11, or httptools."""

SHORT = 20
"""Seconds for which proxies wait on routes with short limits."""

SILENCE = {SHORT: 35, None: 70}
"""Seconds for which calls are silent, by the limit of their route."""

KEEP_ALIVE = 15
"""Seconds of silence before a comment, which is the default."""

ROUTES = [
    (proxy, Route(f"{answers}-{version}-{limit}", answers, version, limit))
    for proxy, version in (("nginx", "1.0"), ("nginx", "1.1"), ("haproxy", "1.1"))
    for answers in SERVERS
    for limit in SILENCE
]
ANSWERED = [
    Scenario(proxy, route, revision, "answered", SILENCE[route.seconds])
    for proxy, route in ROUTES
    for revision in EACH
]
CANCELLED = [
    # What reaches the proxy is a closed connection, which HAProxy sees once it has to write to it.
    Scenario(proxy, route, revision, "cancelled", 3 * KEEP_ALIVE)
    for proxy, route in ROUTES
    for revision in EACH
    if route.seconds is None
]
STREAMED = [
    Scenario(proxy, route, PER_REQUEST[-1], "streamed", 3 * KEEP_ALIVE)
    for proxy, route in ROUTES
    if route.seconds is None
]
REFUSED = [
    Scenario(proxy, Route("refused", "auto", seconds=SHORT), PER_REQUEST[-1], "refused", SHORT)
    for proxy in ("nginx", "haproxy")
]


class Run:
    """All scenarios, run.

    Attributes:
        servers: The servers, by how they answer.
        proxies: The proxies, by name.
        outcomes: How each scenario ended, by key.
    """

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.servers: dict[str, HttpProcess] = {
            answers: stack.enter_context(http_process(answers=answers, **how))
            for answers, how in SERVERS.items()
        }
        ports = {answers: server.port for answers, server in self.servers.items()}
        self.proxies: dict[str, Proxy] = {}
        for name, run in (("nginx", nginx), ("haproxy", haproxy)):
            routes = [route for proxy, route in ROUTES if proxy == name]
            routes += [each.route for each in REFUSED if each.proxy == name]
            self.proxies[name] = stack.enter_context(run(folder, routes, ports))
        every = [*ANSWERED, *CANCELLED, *STREAMED, *REFUSED]
        self.outcomes: dict[str, Outcome] = anyio.run(
            partial(run_all, every, self.proxies, self.servers)
        )

    def value(self, scenario: Scenario) -> str:
        """How a scenario ended."""
        outcome = self.outcomes[scenario.key]
        if outcome.failure is not None:
            raise outcome.failure
        return str(outcome.value)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with ExitStack() as stack:
        yield Run(stack, tmp_path_factory.mktemp("proxies"))


def key_of(scenario: Scenario) -> str:
    return scenario.key


def name_of(part: str | Route) -> str:
    return part.name if isinstance(part, Route) else part


@pytest.mark.parametrize("scenario", ANSWERED, ids=key_of)
def test_a_call_silent_for_longer_than_the_proxy_waits_succeeds(
    scenario: Scenario, run: Run
) -> None:
    assert run.value(scenario) == scenario.key
    server = run.servers[scenario.route.server]
    assert server.said(f"working {scenario.key}") == 1  # nobody had to ask again


@pytest.mark.parametrize("scenario", CANCELLED, ids=key_of)
def test_a_silent_call_can_be_cancelled_through_a_proxy(scenario: Scenario, run: Run) -> None:
    assert run.value(scenario) == "cancelled"


@pytest.mark.parametrize("scenario", STREAMED, ids=key_of)
def test_no_proxy_holds_comments_back(scenario: Scenario, run: Run) -> None:
    assert run.value(scenario) == "streamed"


@pytest.mark.parametrize("scenario", REFUSED, ids=key_of)
def test_the_proxy_gives_up_where_the_answer_has_to_be_json(scenario: Scenario, run: Run) -> None:
    assert run.value(scenario) == "504"
    assert waits_in_vain(run.proxies[scenario.proxy], scenario.route)


@pytest.mark.parametrize(("proxy", "route"), ROUTES, ids=name_of)
def test_the_proxy_gives_up_on_no_other_route(proxy: str, route: Route, run: Run) -> None:
    assert waits_in_vain(run.proxies[proxy], route) == []


def waits_in_vain(proxy: Proxy, route: Route) -> list[str]:
    """Log lines of a proxy for timeouts on a route."""
    marks = ("timed out", " sH", " sD", " cD")  # of nginx; HAProxy logs termination states
    return [line for line in proxy.lines(route) if any(mark in line for mark in marks)]
