"""`connect`: its options, and the kinds of targets.

A kind of target has a module of its own, which packages with its transport or feature have. The
kinds of a package are listed in `chosen`, as are the options that they add to `connect`.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict, TypeGuard, TypeVar

from ..facts import Revisions
from ..runtime.peer import CONCURRENT_REQUESTS, check_concurrent_requests
from .application import ClientApplication, Handlers
from .base import ClientBase
from .client_settings import Caching, ClientLimits, ClientSettings, Identity, Timeouts
from .opening import Servable, Target, in_memory, open_session

Session = TypeVar("Session")

AnyTarget: TypeAlias = Target | Mapping[str, Any]
"""A target, or a configuration of servers."""


SCRIPTS: Mapping[str, str] = {".js": "node", ".mjs": "node", ".py": sys.executable}
"""The programs that run scripts, by file name suffix."""


def is_config_path(target: Target | Mapping[str, Any]) -> TypeGuard[PathLike[str]]:
    """Whether a target is the path of a configuration: any path without the suffix of a script."""
    return isinstance(target, PathLike) and Path(target).suffix not in SCRIPTS


class ClientOptions(TypedDict, total=False):
    """Options of `connect` for any target.

    Attributes:
        name: The client's name, which the server sees.
        version: The client's version.
        title: The client's name for display.
        info: Further members of the client's `Implementation`, as wire object.
        capabilities: Capabilities to declare besides those that the handlers imply, as wire object.
        timeouts: Timeouts, and pauses before retries.
        limits: Bounds on the work and the storage that the server can cause.
        extra: Whether objects of results keep members that the revision does not define, as
            attribute `extra` by wire name. An object that is sent again includes them.
        max_concurrent_requests: Most handlers that run at a time. At the limit, no message is read
            until a handler has ended; while the client itself waits for responses, further
            requests of the server are refused.
    """

    name: str
    version: str
    title: str | None
    info: Mapping[str, Any] | None
    capabilities: Mapping[str, Any] | None
    timeouts: Timeouts
    limits: ClientLimits
    extra: bool
    max_concurrent_requests: int


class SessionOpening(AbstractAsyncContextManager[Session]):
    """The context manager that `connect` returns: opens on entry, closes on exit.

    Args:
        call: The function that returned it, for the error of an `await`.
        manager: Opens and closes.
    """

    def __init__(self, call: str, manager: AbstractAsyncContextManager[Session]) -> None:
        self._call = call
        self._manager = manager

    async def __aenter__(self) -> Session:
        return await self._manager.__aenter__()

    async def __aexit__(self, *details: Any) -> bool | None:
        return await self._manager.__aexit__(*details)

    if not TYPE_CHECKING:  # type checkers refuse an `await` themselves

        def __await__(self):
            call = self._call
            raise TypeError(
                f"{call}: expected `async with {call}(...) as ...:`, which closes the session at "
                f"its end, got `await {call}(...)`"
            )


class TargetKind(NamedTuple):
    """A kind of target.

    Attributes:
        expected: The targets of the kind, in words.
        takes: Whether a value is a target of the kind.
        open: Opens a session with a target.
        options: The options of `connect` that belong to the kind.
    """

    expected: str
    takes: Callable[[Any], bool]
    open: Callable[[Opening, Any], AbstractAsyncContextManager[Any]]
    options: frozenset[str]


class Connecting(NamedTuple):
    """The additions of features and transports to `connect`.

    Attributes:
        application: The class of a client's application.
        kinds: The kinds of targets besides servers in this process and channels.
        options: All options.
        absent: Options of features that were not chosen, as `connect.KEYWORD`, each with its
            feature.
    """

    application: type[ClientApplication]
    kinds: tuple[TargetKind, ...]
    options: frozenset[str]
    absent: Mapping[str, str]


@dataclass(frozen=True)
class Opening:
    """A call of `connect`.

    Attributes:
        call: The name of the function, for errors.
        package: The name of the package's folder of clients.
        client_class: The class of the client.
        revisions: The revisions to offer.
        handlers: Handlers of the server's messages; `None` for none.
        options: The options.
        chosen: The additions of the package to `connect`.
        target: The target; `None` before `open`.
        server: The name of the server in a configuration; empty for others.
    """

    call: str
    package: str
    client_class: type[ClientBase]
    revisions: Revisions
    handlers: Handlers | None
    options: Mapping[str, Any]
    chosen: Connecting
    target: object = None
    server: str = ""

    def open(self, target: AnyTarget) -> AbstractAsyncContextManager[Any]:
        """The context manager that opens a session with a target.

        Raises:
            TypeError: The package has no such target or option, the option is not for the target,
                or a handler has a wrong name or other parameters.
        """
        unknown = self.options.keys() - self.chosen.options
        if unknown:
            from ..absence import keyword_error  # for the error only

            raise keyword_error(self.call, sorted(unknown), self.chosen.absent)
        kind = next((each for each in self.chosen.kinds if each.takes(target)), None)
        if kind is None and isinstance(target, str | bytes | PathLike | Sequence | Mapping):
            raise self._target_error(target)
        self._check_options(kind)
        if self.handlers is not None:
            from .handler_checks import check_handlers  # many clients have no handlers

            check_handlers(self.handlers)
        return SessionOpening(self.call, replace(self, target=target)._open(kind, target))

    def application(self) -> ClientApplication:
        """An application for one session, with the handlers and the settings."""
        own = self.options
        more: Mapping[str, Any] = own.get("info") or {}
        info: dict[str, Any] = {"name": own["name"], "version": own.get("version", "0"), **more}
        if own.get("title") is not None:
            info["title"] = own["title"]
        cache = own.get("cache", True)
        settings = ClientSettings(
            own.get("timeouts", Timeouts()),
            own.get("limits", ClientLimits()),
            cache if isinstance(cache, Caching) else Caching() if cache else None,
            own.get("extra", False),
            own.get("max_concurrent_requests", CONCURRENT_REQUESTS),
            own,
            self.target,
            self.server,
        )
        identity = Identity(info, own.get("capabilities") or {})
        return self.chosen.application(self.handlers, identity, settings)

    @asynccontextmanager
    async def _open(self, kind: TargetKind | None, target: Any) -> AsyncGenerator[Any, None]:
        check_concurrent_requests(self.options.get("max_concurrent_requests", CONCURRENT_REQUESTS))
        if kind is not None:
            opening = kind.open(self, target)
        else:
            channel = in_memory(target) if isinstance(target, Servable) else nullcontext(target)
            application = self.application()
            opening = open_session(self.client_class, target, channel, self.revisions, application)
        async with opening as client:
            yield client

    def _check_options(self, kind: TargetKind | None) -> None:
        own = frozenset[str]() if kind is None else kind.options
        for other in self.chosen.kinds:
            given = sorted((other.options - own) & self.options.keys())
            wrong = [name for name in given if self.options[name] not in (None, False)]
            if wrong:
                raise TypeError(f"{self.call}: {', '.join(wrong)}: only for {other.expected}")

    def _target_error(self, target: AnyTarget) -> TypeError:
        feature = self.chosen.absent.get("connect.inputs")
        is_path = isinstance(target, PathLike) and is_config_path(target)
        if feature is not None and (is_path or isinstance(target, Mapping)):
            from ..absence import missing_text  # for the error only

            root = self.package.rpartition(".")[0]
            return TypeError(missing_text("a configuration of servers", feature, root))
        from ..command_masking import masked_command  # its patterns take long to compile

        shown = f"the {type(target).__name__} {masked_command(str(target).split())!r}"
        expected = "; ".join(
            (*(kind.expected for kind in self.chosen.kinds), "a server, or a channel")
        )
        return TypeError(f"{self.call}: expected {expected}; got {shown}")
