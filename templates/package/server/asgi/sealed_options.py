"""The settings and options of sessions that any process serves; see `sealed_sessions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypedDict

from .settings import HttpSettings

if TYPE_CHECKING:
    from ..serving import Service

SessionPlace: TypeAlias = Literal["process", "sealed"]
"""Where sessions are kept: in the process that opened them, or sealed in their ids."""

_PLACES = ("process", "sealed")


class SealedOptions(TypedDict, total=False):
    """The attributes of `SealedSettings`, as keyword arguments."""

    sessions: SessionPlace


@dataclass(frozen=True)
class SealedSettings(HttpSettings):
    """Where sessions are kept.

    Attributes:
        sessions: Each in the process that opened it, or `sealed` in their ids, so that any process
            can serve them; features that need one process are refused.

    Raises:
        ValueError: Another value, or sealed sessions together with `stateless` or `sse_path`.
    """

    sessions: SessionPlace = "process"

    def __post_init__(self) -> None:
        if self.sessions == "sealed":
            if self.stream_path:
                text = "HTTP+SSE has sessions only, each in one process; expected no sse_path"
                raise ValueError(f"sessions='sealed': {text}")
            if self.stateless:
                text = "a stateless server has none; expected one of both"
                raise ValueError(f"sessions='sealed': {text}")
        if self.sessions not in _PLACES:
            raise ValueError(f"sessions: expected one of {_PLACES}, got {self.sessions!r}")
        super().__post_init__()

    def checked_for(self, service: Service) -> Self:
        """See `HttpSettings`."""
        if self.sessions == "sealed":
            from .sealed_sessions import session_cipher  # few servers seal sessions

            session_cipher(service, self.limits)
        return super().checked_for(service)

    def endpoint_type(self, kind: type[Any]) -> type[Any]:
        """See `HttpSettings`."""
        if self.sessions == "sealed":
            from .sealed_sessions import SealedEndpoint  # few servers seal sessions

            if issubclass(SealedEndpoint, kind):
                return SealedEndpoint
        return super().endpoint_type(kind)
