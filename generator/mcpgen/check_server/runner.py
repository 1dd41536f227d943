"""Runs the table of checks against a server, in each revision that the server speaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from mcpgen import schema
from mcpgen.check_server import (
    call_checks,
    feature_checks,
    http_checks,
    jsonrpc_checks,
    lifecycle_checks,
    record_checks,
)
from mcpgen.check_server.connections import Received, Transport
from mcpgen.check_server.outcomes import BrokenRuleError, NotApplicableError, Outcome
from mcpgen.check_server.session import (
    Server,
    ServerSilentError,
    Session,
    names_version,
    open_session,
)
from mcpgen.check_server.table import Check
from mcpgen.errors import ServerError, UsageError, safe_text
from mcpgen.explain.revision import Revision, revision
from mcpgen.json_types import Json, is_object
from mcpgen.project.live_server import Target

CHECKS: tuple[Check, ...] = tuple(
    check
    for module in (
        lifecycle_checks,
        jsonrpc_checks,
        feature_checks,
        call_checks,
        http_checks,
        record_checks,
    )
    for check in module.TABLE.checks.values()
)
"""Every check, in the order of execution; checks of the record come last."""

_ATTEMPTS = 2
"""Failures in a row to open a session, after which a revision is given up."""


@dataclass(frozen=True)
class RunOptions:
    """The options of a run: the server, and the checks to make.

    Attributes:
        target: The server.
        revisions: The revisions to try; all if there are none.
        rules: Ids and areas of rules; all if there are none.
        timeout: Seconds for each answer.
        call_tools: Whether to call tools that are not declared read-only.
    """

    target: Target
    revisions: tuple[str, ...]
    rules: tuple[str, ...]
    timeout: float
    call_tools: bool


@dataclass(frozen=True)
class Findings:
    """The findings of all checks.

    Attributes:
        target: The server, in the words of the user.
        name: The server's name for itself; empty if it has none.
        transport: The transport of the messages.
        revisions: The revisions that the server speaks, of those that were tried.
        outcomes: One for each check and revision, in order.
        lost: The reason why checks of a revision were given up, by revision.
    """

    target: str
    name: str
    transport: Transport
    revisions: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    lost: dict[str, str]


def select_checks(rules: Sequence[str]) -> tuple[Check, ...]:
    """The checks of rules by their ids and areas; all checks if none are given.

    Raises:
        UsageError: There is no check for a rule.
    """
    areas = {check.rule.area for check in CHECKS}
    for name in rules:
        if name not in areas and name not in {check.id for check in CHECKS}:
            known = "see mcpgen check-server --list-rules"
            raise UsageError(f"expected a rule or an area of rules, got {safe_text(name)}: {known}")
    return tuple(check for check in CHECKS if not rules or {check.id, check.rule.area} & set(rules))


def run(
    options: RunOptions,
    progress: Callable[[str], object],
    progress_of_rule: Callable[[str], object],
) -> Findings:
    """Check a server.

    Args:
        options: The options of the run.
        progress: Called with a text as each revision begins.
        progress_of_rule: Called with a text as each rule is checked.

    Raises:
        ServerError: The server does not start or answer, or speaks none of the revisions.
        UsageError: A rule or a revision does not exist.
    """
    checks = select_checks(options.rules)
    names = options.revisions or tuple(row.name for row in schema.revisions())
    revisions = sorted((revision(name) for name in names), key=lambda each: each.version)

    async def check_all() -> Findings:
        results: list[Findings] = []
        async with anyio.create_task_group() as tasks:
            server = Server(options.target, tasks, options.timeout, call_tools=options.call_tools)
            results.append(
                await Run(server, checks, progress, progress_of_rule).findings(revisions)
            )
            tasks.cancel_scope.cancel()
        return results[0]

    try:
        return anyio.run(check_all)
    except BaseException as error:  # a task group wraps what its tasks raise
        raise _only(error) from None


def _only(error: BaseException) -> BaseException:
    """The error, or the first one that a task group wraps."""
    inner: Sequence[BaseException] = getattr(error, "exceptions", ())
    return _only(inner[0]) if inner else error


class Run:
    """One run over a server.

    Args:
        server: The server.
        checks: The checks.
        progress: Called with a text as each revision begins.
        progress_of_rule: Called with a text as each rule is checked.
    """

    def __init__(
        self,
        server: Server,
        checks: Sequence[Check],
        progress: Callable[[str], object],
        progress_of_rule: Callable[[str], object],
    ) -> None:
        self._server = server
        self._checks = checks
        self._progress = progress
        self._progress_of_rule = progress_of_rule
        self._lost: dict[str, str] = {}

    async def findings(self, revisions: Sequence[Revision]) -> Findings:
        """Determine the revisions that the server speaks, and check each."""
        self._progress("asking which revisions the server speaks")
        names = {each.name for each in revisions}
        others = [revision(row.name) for row in schema.revisions() if row.name not in names]
        if not any(check.compares for each in revisions for check in self._applicable(each)):
            others = []
        refusals: list[str] = []
        for each in sorted((*revisions, *others), key=lambda each: each.version):
            refused = await self._refuses(each)
            refusals += [refused] if refused and each.name in names else []
        spoken = tuple(each for each in self._server.spoken if each.name in names)
        if not spoken:
            shown = self._server.target.shown
            tried = ", ".join(each.name for each in revisions)
            expected = f"a server that speaks one of {tried}"
            raise ServerError(f"{shown}: expected {expected}, got {safe_text(refusals[-1], 400)}")
        outcomes: list[Outcome] = []
        name = ""
        for each in spoken:
            self._progress(f"checking {each.name} over {self._server.transport}")
            own, name = await self._revision(each, name)
            outcomes += own
        return Findings(
            self._server.target.shown,
            name,
            self._server.transport,
            tuple(each.name for each in spoken),
            tuple(outcomes),
            self._lost,
        )

    async def _refuses(self, each: Revision) -> str:
        """The reason why the server does not speak a revision; empty, and recorded, if it does."""
        connection = await self._server.connect()
        try:
            session = Session(self._server, each, connection, [])
            await session.open()
        except ServerSilentError as error:
            return str(error)
        finally:
            await connection.close()
        result: Json = session.opening.result
        if not is_object(result):
            return session.opening.text
        if session.has_handshake:
            answered: Json = result.get("protocolVersion")
            self._server.initialized[each.version] = answered
            if answered != each.version:
                return f"the version {answered} in place of {each.version}"
        elif not names_version(result, each.version):
            return f"a result of server/discover without {each.version}: {session.opening.text}"
        self._server.spoken.append(each)
        return ""

    async def _revision(self, each: Revision, name: str) -> tuple[list[Outcome], str]:
        """The outcomes of a revision, and the server's name for itself."""
        records: list[list[Received]] = []
        outcomes: list[Outcome] = []
        session: Session | None = None
        lost = ""
        try:
            checks = [*self._applicable(each)]
            for number, check in enumerate(checks, start=1):
                self._progress_of_rule(f"{each.name}: {number}/{len(checks)} {check.id}")
                if lost and check.id not in record_checks.TABLE.checks:
                    continue
                if not lost and (session is None or session.connection.end):
                    session, lost = await self._reopen(each, records, session)
                    name = name or (_name(session) if session is not None else "")
                if session is None:
                    break
                try:
                    outcomes.append(await _outcome(check, session))
                except ServerSilentError as error:
                    actual, expected = f"silence: {error}", "an answer"
                    outcomes.append(Outcome(check.rule, each.name, "broken", expected, actual))
                    lost = f"the server answers no longer: {error}"
        finally:
            if session is not None:
                await session.connection.close()
        if lost:
            self._lost[each.name] = lost
        return outcomes, name

    def _applicable(self, each: Revision) -> Iterable[Check]:
        transport = self._server.transport
        for check in self._checks:
            if transport in check.transports and each.version in check.rule.revisions:
                yield check

    async def _reopen(
        self, each: Revision, records: list[list[Received]], old: Session | None
    ) -> tuple[Session | None, str]:
        """Open a session in place of an ended one; return it, or `None` with the reason."""
        if old is not None:
            await old.connection.close()
        error: Exception | None = None
        for _ in range(_ATTEMPTS):
            try:
                return await open_session(self._server, each, records), ""
            except (ServerError, ServerSilentError) as failure:
                error = failure
        return None, f"no session can be opened any longer: {error}"


async def _outcome(check: Check, session: Session) -> Outcome:
    """Run one check."""
    rule, name = check.rule, session.revision.name
    try:
        await check.run(session)
    except BrokenRuleError as broken:
        return Outcome(rule, name, "broken", safe_text(broken.expected, 400), _line(broken.actual))
    except NotApplicableError as reason:
        return Outcome(rule, name, "not applicable", why=safe_text(str(reason), 400))
    except ServerError as error:
        return Outcome(rule, name, "broken", "a session", _line(str(error)))
    return Outcome(rule, name, "passed")


def _line(text: str) -> str:
    return safe_text(" ".join(text.split()), 400)


def _name(session: Session) -> str:
    """The server's name for itself, with its version; empty if it has none."""
    result: Json = session.opening.result
    meta: Json = result.get("_meta")
    key = session.revision.protocol.facts.meta.server_info
    info: Json = result.get("serverInfo") or (meta.get(str(key)) if is_object(meta) else None)
    if not is_object(info):
        return ""
    words: list[Any] = [info.get("name"), info.get("version")]
    return safe_text(" ".join(word for word in words if isinstance(word, str)), 80)
