"""Changes that a server tells of, and filters that say which are told of.

Source: basic/patterns/subscriptions (2026-07-28), server/resources#subscriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from .response_cache import is_part

_FLAGS = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
_URIS = "resourceSubscriptions"


@dataclass(frozen=True)
class ToolsChanged:
    """The list of tools is another one now."""


@dataclass(frozen=True)
class PromptsChanged:
    """The list of prompts is another one now."""


@dataclass(frozen=True)
class ResourcesChanged:
    """The list of resources is another one now."""


@dataclass(frozen=True)
class ResourceUpdated:
    """A resource, or a part of one that was subscribed to, has other contents now."""

    uri: str


@dataclass(frozen=True)
class ListeningAgain:
    """The stream was lost and is open again: what changed meanwhile was told to nobody."""


Change: TypeAlias = (
    ToolsChanged | PromptsChanged | ResourcesChanged | ResourceUpdated | ListeningAgain
)
"""Something that a server tells of."""

_LISTS: Mapping[str, Change] = dict(
    zip(_FLAGS, (ToolsChanged(), PromptsChanged(), ResourcesChanged()), strict=True)
)


def change_of(member: str | None, params: Any) -> Change | None:
    """What a notification tells of; `None` if that is no change.

    Args:
        member: The member of a filter that asks for the notification.
        params: Its typed params.
    """
    if member is None:
        return None
    return ResourceUpdated(params.uri) if member == _URIS else _LISTS.get(member)


@dataclass(frozen=True)
class NotificationFilter:
    """Which changes are told of.

    Attributes:
        tools: Changes of the list of tools.
        prompts: Changes of the list of prompts.
        resources: Changes of the list of resources.
        uris: The resources whose updates are told of.
    """

    tools: bool = False
    prompts: bool = False
    resources: bool = False
    uris: tuple[str, ...] = ()

    def wire(self) -> dict[str, Any]:
        """The filter as wire object."""
        flags = (self.tools, self.prompts, self.resources)
        wire: dict[str, Any] = {name: True for name, on in zip(_FLAGS, flags, strict=True) if on}
        if self.uris:
            wire[_URIS] = list(self.uris)
        return wire

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> Self:
        """The filter of a wire object."""
        tools, prompts, resources = (wire.get(name) is True for name in _FLAGS)
        return cls(tools, prompts, resources, tuple(wire.get(_URIS) or ()))

    def lacking(self, wanted: NotificationFilter) -> list[str]:
        """What is wanted and not told of, by name or URI."""
        flags = [name for name in wanted.wire() if name != _URIS and name not in self.wire()]
        return [*flags, *(uri for uri in wanted.uris if uri not in self.uris)]

    def has(self, change: Change) -> bool:
        """Whether a change is told of; one of a part of a resource counts as one of that."""
        match change:
            case ToolsChanged():
                return self.tools
            case PromptsChanged():
                return self.prompts
            case ResourcesChanged():
                return self.resources
            case ResourceUpdated(uri=uri):
                return any(is_part(uri, whole) for whole in self.uris)
            case ListeningAgain():
                return True
