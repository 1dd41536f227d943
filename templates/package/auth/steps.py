"""What a flow of authorization asks its driver to do.

A flow is a generator: it yields one of these steps, and is sent the answer. It does no I/O, so the
same flow serves asyncio, trio, and tests that answer from a table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar


@dataclass(frozen=True)
class Fetch:
    """Make an HTTP request; answered with `Fetched`.

    Attributes:
        fields: Header fields.
        body: The body; secrets may be in it.
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
        body: The body, whole.
    """

    status: int
    fields: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class PrepareRedirect:
    """Be ready to receive the user's return; answered with the redirect URI."""


@dataclass(frozen=True)
class Visit:
    """Send the user to a URL; answered with the URL that the user comes back by."""

    url: str = field(repr=False)


@dataclass(frozen=True)
class DeviceCode:
    """The code by which a user authorizes on another device.

    Attributes:
        user_code: The code to type.
        verification_uri: The URL to open there.
        verification_uri_complete: A URL that contains the code, such as for a QR code; `None` if
            the server has none.
        expires_in: Seconds for which the code is valid.
    """

    user_code: str = field(repr=False)
    verification_uri: str
    verification_uri_complete: str | None = field(default=None, repr=False)
    expires_in: float = 0.0


@dataclass(frozen=True)
class ShowCode:
    """Show the user a code; answered with `None`, at once."""

    code: DeviceCode


@dataclass(frozen=True)
class Pause:
    """Wait; answered with `None`."""

    seconds: float


@dataclass(frozen=True)
class Obtain:
    """Call a function of the user's code and await its result; answered with that, a string."""

    function: Callable[..., str | Awaitable[str]]
    arguments: tuple[Any, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Load:
    """Read a record from the store; answered with its bytes, or `None`."""

    key: str


@dataclass(frozen=True)
class Save:
    """Write a record to the store, or remove it; answered with `None`."""

    key: str
    record: bytes | None = field(repr=False)


Step: TypeAlias = Fetch | PrepareRedirect | Visit | ShowCode | Pause | Obtain | Load | Save

Result = TypeVar("Result")

Flow: TypeAlias = Generator[Step, Any, Result]
"""A flow that ends with a result. The answer to each step has the type that the step names."""
