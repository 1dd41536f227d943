"""The public names of a package: the module of each, and the parts that export it.

The search for the modules of a part begins with the modules here and the entry files.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from mcpgen.literals import WIDTH
from mcpgen.model import runtime
from mcpgen.model.parts import Features


@dataclass(frozen=True)
class Export:
    """Names of one module.

    Attributes:
        module: The module, relative to the package, such as `.server.chosen`.
        parts: The parts that export the names; a package with any of them exports them.
        names: The names, sorted.
    """

    module: str
    parts: frozenset[str]
    names: tuple[str, ...]


def _export(module: str, parts: str, *names: str) -> Export:
    return Export(module, frozenset(parts.split()), names)


_NAMES_WIDTH = WIDTH - 12  # of a line of a table, besides indentation, quotes and commas
_SESSION = ".server.server_session"

_UNSET = (_export("._wire", "types", "UNSET", "UnsetType"),)

EXPORTS = (
    _export("._decoding", "types", "convert", "decoder"),
    _export("._wire", "types", "DecodeError", "EncodingError", "ValidationError", "encode"),
    _export("._wire", "types", "replace", "to_builtins"),
    _export(".messages", "types", "ErrorResponse", "MessageError", "Notification", "Request"),
    _export(".messages", "types", "Response"),
    _export(".apps", "apps", "Csp"),
    _export(".apps", "apps+client", "ToolUi", "UI_EXTENSION", "UiResource", "ui_of"),
    _export(".skills", "skills+client", "Skill", "SkillResource"),
    _export(".framing.http_hosts", "client+http", "AddressRules"),
    _export(".auth.flows", "auth+client", "IdentityProvider"),
    _export(".auth.jwt_signing", "auth+client", "PrivateKey"),
    _export(".auth.registration", "auth+client", "client_metadata_document"),
    _export(".auth.steps", "auth+client", "DeviceCode"),
    _export(".auth.token_endpoint", "auth+client", "OAuthError"),
    _export(".channel", "protocol", "Channel", "OutgoingMessage"),
    _export(".client.async_client", "client", "Client", "ClientHandlers", "connect"),
    _export(".transports.http.http_client", "client+http", "Bearer"),
    _export(".client.auth.interactions", "auth+client", "Device", "Loopback", "Paste", "Redirect"),
    _export(
        ".client.auth.machine_auth",
        "auth+client",
        "ClientCredentials",
        "EnterpriseManaged",
        "WorkloadIdentity",
    ),
    _export(".client.auth.oauth", "auth+client", "OAuth", "PendingAuthorization"),
    _export(".client.auth.stores", "auth+client", "FileStore", "MemoryStore", "Store"),
    _export(".client.callbacks", "callbacks", "Callback", "LogMessage", "StartedCall"),
    _export(".client.group", "groups", "ClientGroup"),
    _export(".client.host", "groups", "DeclaredTools", "safe_icons"),
    _export(
        ".client.listen",
        "subscriptions",
        "Change",
        "ListeningAgain",
        "NotificationFilter",
        "PromptsChanged",
        "ResourcesChanged",
        "ResourceUpdated",
        "ToolsChanged",
    ),
    _export(
        ".client.client_middleware",
        "middleware+client",
        "ClientNext",
        "ClientRequest",
    ),
    _export(".runtime.task_handle", "tasks+client tasks+mutual+server", "TaskHandle", "TaskUpdate"),
    _export(".client.sync_base", "tasks+sync", "SyncTaskHandle"),
    _export(".client.client_settings", "client", "Caching", "ClientLimits", "Timeouts"),
    _export(".client.served_tasks", "tasks+mutual+client", "ClientTasks"),
    _export(".client.restart", "restart", "Restart"),
    _export(".client.lock.server_lock", "lock", "LockDifference", "LockMismatchError"),
    _export(".client.lock.lock_file", "lock", "LockError", "LockFileError"),
    _export(".client.server_document", "groups", "ConfigInput"),
    _export(".client.server_document", "cards+client groups", "ServerDocument"),
    _export(".client.card_reader", "cards+client", "read_server_card"),
    _export(".client.sync", "sync", "SyncStartedCall"),
    _export(".client.sync_client", "sync", "SyncClient", "SyncClientHandlers", "connect_sync"),
    _export(".client.sync_client", "groups+sync", "SyncClientGroup"),
    _export(
        ".errors",
        "protocol",
        "AbsentMethodError",
        "AuthorizationError",
        "ResponseLostError",
        "ConnectFailedError",
        "ConnectionClosedError",
        "HttpStatusError",
        "InvalidParamsError",
        "LocalProtocolError",
        "McpError",
        "MethodNotFoundError",
        "MissingCapabilityError",
        "MissingExtraError",
        "ProtocolError",
        "RemoteError",
        "RemoteProtocolError",
        "RequestCancelledError",
        "RequestTimeoutError",
        "ResourceNotFoundError",
        "RevisionError",
        "ServerStartError",
        "SessionLostError",
        "ToolError",
        "TransportError",
    ),
    _export(".errors", "client", "ToolFailedError", "ToolResultError"),
    _export(".protocol.client_connection", "connection", "ClientConnection"),
    _export(".protocol.server_connection", "connection", "ServerConnection"),
    _export(".tool_results", "client", "Hints", "hints_of"),
    _export(".foreign_text", "client server", "safe_url"),
    _export(".revisions", "protocol", "REVISIONS"),
    _export(
        ".runtime.observability",
        "telemetry",
        "log_requests",
        "measure_application",
        "measure_requests",
        "trace_requests",
    ),
    _export(".runtime.time_limits", "client+http", "HttpTimeouts"),
    _export(".runtime.request_context", "server", "Principal"),
    _export(".runtime.request_context", "client server", "RequestContext"),
    _export(
        ".server.asgi.event_store",
        "resume",
        "EventStore",
        "MemoryEventStore",
        "StoredEvent",
        "StoredEvents",
    ),
    _export(".server.request_head", "server+http", "RequestHead"),
    _export(".server.asgi.routes", "routes", "RouteRequest", "RouteResponse"),
    _export(".server.asgi.settings", "server+http", "Limits"),
    _export(".server.asgi.chosen_http", "server+http", "ServerHttpSettings"),
    _export(".server.auth.authenticator", "auth+server", "ProtectedResourceMetadata"),
    _export(".server.auth.dpop_validation", "auth+server", "DpopValidation"),
    _export(".server.auth.introspection", "auth+server", "Introspection"),
    _export(".server.auth.jwt_verifier", "auth+server", "JwtVerifier"),
    _export(".server.auth.protected", "auth+server", "Protected"),
    _export(
        ".server.auth.verifiers",
        "auth+server",
        "AnyOf",
        "InvalidTokenError",
        "StaticTokens",
        "TokenVerifier",
        "TrustedIssuers",
    ),
    _export(".server.openapi.http_operation", "openapi", "HttpClient", "ClientResponse"),
    _export(".server.openapi.openapi_server", "openapi", "OpenApiWarning"),
    _export(".server.openapi.route_maps", "openapi", "HTTPRoute", "MCPType", "RouteMap"),
    _export(_SESSION, "methods", "ServerSession"),
    _export(
        ".server.toolkit.client_features.elicitation",
        "elicitation",
        "Accepted",
        "Cancelled",
        "Declined",
        "titles",
    ),
    _export(
        ".server.toolkit.client_features.input_required",
        "elicitation",
        "InputRequired",
        "URLElicitation",
        "URLElicitationRequiredError",
    ),
    _export(
        ".server.toolkit.client_features.sampling_and_roots",
        "elicitation",
        "ModelPreferences",
        "Root",
        "Sampled",
        "SamplingMessage",
        "ToolUse",
        "ToolUseResult",
    ),
    _export(".server.toolkit.dependencies", "dependencies", "Depends"),
    _export(".server.toolkit.file_inputs", "files", "FileInput"),
    _export(".server.toolkit.completions", "completions", "Completion"),
    _export(
        ".server.toolkit.content",
        "server",
        "Annotations",
        "Audio",
        "Contents",
        "EmbeddedResource",
        "File",
        "Icon",
        "Image",
        "Message",
        "ResourceLink",
        "Text",
        "ToolAnnotations",
        "ToolResult",
    ),
    _export(".server.chosen", "server", "Context", "Server"),
    _export(".server.toolkit.key_ring", "scaling", "KeyRing", "MemoryKeyRing"),
    _export(
        ".server.shared.bus",
        "shared",
        "Bus",
        "Changes",
        "MemoryBus",
        "SharedStateError",
        "SharedStateFullError",
    ),
    _export(
        ".server.shared.session_store",
        "shared",
        "MemorySessionStore",
        "SessionRecord",
        "SessionStore",
    ),
    _export(".server.shared.state", "shared", "SharedState"),
    _export(".server.asgi.used_ids", "shared", "MemoryUsedIds", "UsedIds"),
    _export(
        ".server.toolkit.middleware",
        "middleware+server",
        "Middleware",
        "MiddlewareRequest",
        "Next",
        "limit_rate",
    ),
    _export(
        ".server.toolkit.result_middleware",
        "middleware+server",
        "cache_results",
        "limit_results",
    ),
    _export(".server.toolkit.tool_discovery", "discovery", "ToolSearch"),
    _export(".server.toolkit.cache_hints", "cache_hints", "CacheHint"),
    _export(".server.toolkit.resources", "resources", "AnyPath"),
    _export(
        ".runtime.task_store",
        "tasks+server",
        "MemoryTaskStore",
        "TaskPage",
        "TaskRecord",
        "TaskStore",
    ),
    _export(".server.toolkit.tasks", "tasks+server", "Tasks"),
)

_MESSAGE_TYPES = frozenset(
    {
        *("AudioContent", "BlobResourceContents", "CallToolResult", "GetPromptResult"),
        *("ImageContent", "Prompt", "PromptArgument", "PromptMessage", "ReadResourceResult"),
        *("Resource", "ResourceTemplate", "TextContent", "TextResourceContents", "Tool"),
    }
)
"""Types that programs name often, and other SDKs export too."""

_ENTRIES = (
    ("types", "py.typed"),
    ("several", "models.py"),
    ("protocol", "revisions.py"),
    ("peer", "__main__.py"),
    ("peer", "absence.py"),
    ("migration", "sdk_names.py"),
    ("server", "models.py"),
    ("inspector", "inspector/page.html"),
    ("inspector", "inspector/sandbox.html"),
    ("testing", "testing.py"),
    ("proxy", "proxy/proxy_server.py"),
    ("runtime", "client/extension_client.py"),
    ("runtime", "runtime/extension_stubs.py"),
)
"""Entry files without public names, by the part that needs them."""

_REVISION_ENTRIES = (
    ("types", "methods.py"),
    ("client", "client.py"),
    ("methods", "server.py"),
)
"""Entry files in the folder of each revision, likewise: they are loaded by name."""

_EXTENSION_ENTRIES = (
    ("types", "__init__.py"),
    ("types", "methods.py"),
    ("client", "client.py"),
    ("sync", "client_sync.py"),
    ("server", "server.py"),
)
"""Entry files in the folder of each extension, likewise."""


RENAMED: Mapping[str, str] = {
    "AnswerLostError": "ResponseLostError",
    "Exchange": "RequestContext",
}
"""Public names of packages of earlier versions of mcpgen, with their new names."""


@dataclass(frozen=True)
class RenamedExport:
    """An old name that a package or a module still offers, with a warning.

    Attributes:
        old: The name of earlier packages.
        new: The new name.
    """

    old: str
    new: str


def renamed_exports(old_names: Iterable[str], rows: Iterable[Export]) -> tuple[RenamedExport, ...]:
    """The old names that a package can still offer, sorted: those whose new names it has."""
    current = {name for row in rows for name in row.names}
    return tuple(
        RenamedExport(old, RENAMED[old]) for old in sorted(old_names) if RENAMED.get(old) in current
    )


def renamed_types(renames: Mapping[str, str], current: Set[str]) -> tuple[RenamedExport, ...]:
    """Old names of types that a package can still offer, sorted.

    Args:
        renames: Old names with their new names, which may have been renamed again.
        current: The types of the package. The name of one of them is not an old name.
    """
    rows: list[RenamedExport] = []
    for old in sorted(renames.keys() - current):
        new, followed = renames[old], {old}
        while new not in current and new in renames and new not in followed:
            followed.add(new)
            new = renames[new]
        if new in current:
            rows.append(RenamedExport(old, new))
    return tuple(rows)


def type_names(module: str) -> frozenset[str]:
    """The classes and type aliases that a module defines; none if its text is not Python."""
    try:
        body = ast.parse(module).body
    except SyntaxError:
        return frozenset()
    classes = {node.name for node in body if isinstance(node, ast.ClassDef)}
    targets = (node.target for node in body if isinstance(node, ast.AnnAssign))
    return frozenset(classes.union(node.id for node in targets if isinstance(node, ast.Name)))


def public_names(module: str) -> tuple[str, ...]:
    """The public names of a package from the text of its root module, sorted.

    The text has them in a table by module, several in one string; in packages of earlier versions,
    in `__all__` or one in a string.
    """
    names: set[str] = set()
    for node in ast.parse(module).body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id="__all__" | "_NAMES")],
                value=ast.List(elts=items) | ast.Dict(values=items),
            ):
                constants = (each for item in items for each in ast.walk(item))
                values = (each.value for each in constants if isinstance(each, ast.Constant))
                names.update(
                    name for value in values if isinstance(value, str) for name in value.split()
                )
            case _:
                pass
    return tuple(sorted(names))


def lines_of(key: str, names: Iterable[str]) -> tuple[str, ...]:
    """Names in lines for the row of a table, with spaces between them, also at ends of lines.

    Args:
        key: The key of the row; the names are on its line if there is space for them.
        names: The names.
    """
    text = " ".join(names)
    if len(key) + len(text) <= _NAMES_WIDTH:
        return (text,)
    lines = textwrap.wrap(text, min(_NAMES_WIDTH, len(text) - 1))
    return (*(f"{line} " for line in lines[:-1]), *lines[-1:])


def imports_of(module: str, names: Iterable[str]) -> list[list[str]]:
    """The names of imports from a module that re-export them, as many as fit a line each."""
    lines: list[list[str]] = []
    width = WIDTH
    for name in names:
        width += len(f", {name} as {name}")
        if width > WIDTH:
            lines.append([])
            width = len(f"from {module} import {name} as {name}")
        lines[-1].append(name)
    return lines


def exports_of(features: Features, *, unset: bool) -> tuple[Export, ...]:
    """The exports of a package; `unset` if null is a value of optional members."""
    rows = (*_UNSET, *EXPORTS) if unset else EXPORTS
    parts = features.parts
    return tuple(row for row in rows if row.parts & parts)


def home_of(module: str, folders: Sequence[str]) -> str:
    """The module of public names in a vendored package: that of its only revision, if it has one.

    Args:
        module: The module in a package of several revisions.
        folders: The folder of each revision.
    """
    return f".{folders[0]}.server" if module == _SESSION and len(folders) == 1 else module


def missing_names(features: Features) -> dict[str, str]:
    """Public names of available features that a package does not have, each with its feature."""
    absent = [feature.name for feature in features.absent]
    parts = features.parts_of({*features.chosen, *absent})
    rows = ((part, row) for row in EXPORTS for part in sorted(row.parts & parts))
    lacking = ((each, row) for part, row in rows for each in part.split("+") if each in absent)
    names = {name: each for each, row in lacking for name in row.names}
    present = {name for row in exports_of(features, unset=True) for name in row.names}
    return {name: names[name] for name in sorted(names.keys() - present)}


def exported_types(
    features: Features, module: str, types: Iterable[str], rows: Iterable[Export]
) -> Export:
    """The message types that a package with a client or a server exports.

    Args:
        features: The contents of the package.
        module: The module of the types.
        types: The types of the package.
        rows: Its other public names, which take precedence.
    """
    shown = _MESSAGE_TYPES if features.parts & {"peer"} else frozenset[str]()
    taken = {name for row in rows for name in row.names}
    return Export(module, frozenset({"peer"}), tuple(sorted((shown & set(types)) - taken)))


def entries(
    features: Features, folders: tuple[str, ...], extensions: tuple[str, ...] = ()
) -> Iterator[str]:
    """Paths of the entry files of a package, from which imports lead to all other files.

    Args:
        features: The contents of the package.
        folders: The folder of each revision.
        extensions: The folder of each extension that has messages.
    """
    modules = (row.module for row in exports_of(features, unset=True))
    if features.installed:
        modules = (runtime.module_of(module, folders) for module in modules)
    else:
        modules = (home_of(module, folders) for module in modules)
    for module in modules:
        if module.startswith("."):
            yield module.removeprefix(".").replace(".", "/") + ".py"
    for part, path in _ENTRIES:
        if part in features.parts and (not features.installed or runtime.has_file(path)):
            yield path
    for part, path in _REVISION_ENTRIES:
        if part in features.parts:
            yield from (f"{folder}/{path}" for folder in folders)
    for part, path in _EXTENSION_ENTRIES:
        if part in features.parts:
            yield from (f"{folder}/{path}" for folder in extensions)
