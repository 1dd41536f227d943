"""Silent calls through nginx and HAProxy, made side by side: each test looks at how one ended."""

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
SCENARIOS = [
    Scenario(proxy, route, revision, "answered", SILENCE[route.seconds])
    for proxy, route in ROUTES
    for revision in EACH
]
SCENARIOS += [
    # What reaches the proxy is a closed connection, which HAProxy sees once it has to write to it.
    Scenario(proxy, route, revision, "cancelled", 3 * KEEP_ALIVE)
    for proxy, route in ROUTES
    for revision in EACH
    if route.seconds is None
]
SCENARIOS += [
    Scenario(proxy, route, PER_REQUEST[-1], "streamed", 3 * KEEP_ALIVE)
    for proxy, route in ROUTES
    if route.seconds is None
]
SCENARIOS += [
    Scenario(proxy, Route("refused", "auto", seconds=SHORT), PER_REQUEST[-1], "refused", SHORT)
    for proxy in ("nginx", "haproxy")
]


class Run:
    """All scenarios, run."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.servers: dict[str, HttpProcess] = {
            answers: stack.enter_context(http_process(answers=answers, **how))
            for answers, how in SERVERS.items()
        }
        ports = {answers: server.port for answers, server in self.servers.items()}
        self.proxies: dict[str, Proxy] = {}
        for name, run in (("nginx", nginx), ("haproxy", haproxy)):
            routes = {each.route.name: each.route for each in SCENARIOS if each.proxy == name}
            self.proxies[name] = stack.enter_context(run(folder, [*routes.values()], ports))
        self.outcomes: dict[str, Outcome] = anyio.run(
            partial(run_all, SCENARIOS, self.proxies, self.servers)
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


IN_VAIN = ("timed out", " sH", " sD", " cD")
"""Marks of timeouts in the logs of nginx and HAProxy."""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.key)
def test_a_call_silent_for_longer_than_the_proxy_waits_ends_as_it_should(
    scenario: Scenario, run: Run
) -> None:
    expected = {"answered": scenario.key, "refused": "504"}.get(scenario.ending, scenario.ending)
    assert run.value(scenario) == expected
    if scenario.ending == "answered":  # nobody had to ask again
        assert run.servers[scenario.route.server].said(f"working {scenario.key}") == 1
    lines = run.proxies[scenario.proxy].lines(scenario.route)
    waited = [line for line in lines if any(mark in line for mark in IN_VAIN)]
    assert bool(waited) is (scenario.ending == "refused"), waited
