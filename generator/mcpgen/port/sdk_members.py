"""Members and keywords of other SDKs that a port understands, from `sdk_members.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mcpgen.errors import FactsError
from mcpgen.toml_records import convert, read_toml

FILE = Path(__file__).with_name("sdk_members.toml")


@dataclass(frozen=True)
class Options:
    """Keywords of the class of servers.

    Attributes:
        same: Those that mean the same here, with the feature `compatibility`.
        ignored: Those that change nothing that a client sees, so they go.
    """

    same: tuple[str, ...]
    ignored: tuple[str, ...]


@dataclass(frozen=True)
class SessionCall:
    """The method of contexts that takes the place of one of sessions.

    Attributes:
        method: The method of contexts.
        parameters: The parameters of the method of sessions, in order.
    """

    method: str
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class Members:
    """Members of objects of another SDK.

    Attributes:
        server: Members of servers that mean the same here.
        context: Members of contexts that mean the same here.
        logs: Methods of contexts that send a log message.
        loggers: Classes of middleware that log requests.
        applications: Methods of servers that make an ASGI application.
        overridden: Methods that a subclass may have, and that the package does not call.
        opening: The method of client sessions that opens them; `connect` does it.
        pages: Methods of client sessions whose results are those of one request.
        media: Methods of images and audio that nothing takes the place of.
    """

    server: tuple[str, ...]
    context: tuple[str, ...]
    logs: tuple[str, ...]
    loggers: tuple[str, ...]
    applications: tuple[str, ...]
    overridden: tuple[str, ...]
    opening: str
    pages: tuple[str, ...]
    media: tuple[str, ...]


@dataclass(frozen=True)
class SdkMembers:
    """The members and the keywords.

    Attributes:
        requests: Requests by the decorators of the low-level server.
        runs: Transports by the methods that run a server over one.
        session_notifications: Notifications by the methods of sessions.
        wire_names: Names here by the attributes that have the name on the wire.
        messages: Roles by the classes of messages of prompts.
        message_members: Names here by the members of the message in middleware of the official
            SDK 2.
        log_options: Parameters of `log_requests` by those of middleware that logs requests.
        options: Keywords of the class of servers.
        items: Keywords of decorators that mean the same here, or have another name.
        session_calls: Methods of contexts by those of sessions.
        members: Members of servers and of contexts.
    """

    requests: Mapping[str, str]
    runs: Mapping[str, str]
    session_notifications: Mapping[str, str]
    wire_names: Mapping[str, str]
    messages: Mapping[str, str]
    message_members: Mapping[str, str]
    log_options: Mapping[str, str]
    options: Options
    items: Mapping[str, tuple[str, ...]]
    session_calls: Mapping[str, SessionCall]
    members: Members

    def request_of_keyword(self, keyword: str) -> str | None:
        """The request that a keyword of the low-level server handles, such as `on_call_tool`."""
        return self.requests.get(keyword.removeprefix("on_")) if keyword[:3] == "on_" else None


@cache
def sdk_members() -> SdkMembers:
    """The members, read from the file once."""
    table, place = read_toml(FILE, FactsError)
    return convert(table, SdkMembers, place)
