"""The steps of authorization flows: requests of a flow to its driver.

A flow is a generator that yields steps and receives the result of each step. It does no I/O, so the
same flow runs on asyncio, on trio, and in tests that take the results from a table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar


@dataclass(frozen=True)
class Fetch:
    """Send an HTTP request. The result is a `Fetched`.

    Attributes:
        fields: Header fields.
        body: The body; it may contain secrets.
    """

    method: str
    url: str
    fields: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Fetched:
    """The response to a `Fetch`.

    Attributes:
        status: The status; redirects are not followed.
        fields: Header fields, by name in lower case.
        body: The whole body.
    """

    status: int
    fields: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class PrepareRedirect:
    """Prepare to receive the authorization response. The result is the redirect URI.

    Attributes:
        registered: The registered redirect URIs of the client, which are preferred.
    """

    registered: tuple[str, ...] = ()


@dataclass(frozen=True)
class Visit:
    """Send the user to a URL. The result is the redirect URI with the authorization response."""

    url: str = field(repr=False)


@dataclass(frozen=True)
class DeviceCode:
    """A code that the user enters on another device to authorize this one.

    Attributes:
        user_code: The code to enter.
        verification_uri: The URL to open on the other device.
        verification_uri_complete: A URL that contains the code, for example for a QR code; `None`
            if the server offers none.
        expires_in: Lifetime of the code, in seconds.
    """

    user_code: str = field(repr=False)
    verification_uri: str
    verification_uri_complete: str | None = field(default=None, repr=False)
    expires_in: float = 0.0


@dataclass(frozen=True)
class ShowCode:
    """Show the user a code. The result is `None`, without waiting for the user."""

    code: DeviceCode


@dataclass(frozen=True)
class Pause:
    """Wait. The result is `None`."""

    seconds: float


@dataclass(frozen=True)
class Call:
    """Call a function or a coroutine function of the application. The result is a string."""

    function: Callable[..., str | Awaitable[str]]
    arguments: tuple[Any, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Load:
    """Read a record from the store. The result is its bytes, or `None`."""

    key: str


@dataclass(frozen=True)
class Save:
    """Write a record to the store; `None` removes it. The result is `None`."""

    key: str
    record: bytes | None = field(repr=False)


Step: TypeAlias = Fetch | PrepareRedirect | Visit | ShowCode | Pause | Call | Load | Save

Result = TypeVar("Result")

Flow: TypeAlias = Generator[Step, Any, Result]
"""A flow with a result. The value sent for each step has the type that the step documents."""
