"""The parts and features of a package: the choices of a user, and their results.

A part includes those before it: `types` < `protocol` < `client`, `server`. A feature is part of a
client or a server only if it was chosen. The modules of a choice follow from its public names and
the imports of their modules; see `closure`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mcpgen.errors import UsageError
from mcpgen.model.runtime import RUNTIMES, Runtime, check_form
from mcpgen.names import LIBRARIES, Library

if TYPE_CHECKING:  # a mere check of a package need not load it
    from mcpgen.schema.revision_facts import Facts

PARTS = ("types", "protocol", "client", "server")
TRANSPORTS = ("stdio", "http", "http+sse")
ALL = "all"
NONE = "none"
USED = "used"
"""Words of `--features` that stand for several; `used` for what a program uses."""


_PEERS = ("client", "server")

_TASKS = "a revision or an extension with tasks"
"""The requirement of tasks, besides a client or a server."""
_TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
_UI_EXTENSION = "io.modelcontextprotocol/ui"
_SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
_ANY_EXTENSION = "*"
_MUTUAL_CLIENT = frozenset({"tasks+mutual+client"})


@dataclass(frozen=True)
class Base:
    """A class of a plain module that is a base of a class in a page `chosen.py`.

    Attributes:
        of: The class of the page: `Server`, `Context`, `ServerOptions` or `ToolOptions` of
            servers; `Client`, `ClientGroup`, `Application` or `ConnectOptions` of clients.
        place: The module and the class, within the package.
        needs: Parts that it needs besides the feature; see `Features.parts`.
    """

    of: str
    place: str
    needs: frozenset[str] = frozenset()

    @property
    def module(self) -> str:
        """The module, within the package."""
        return self.place.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.place.rpartition(".")[2]


@dataclass(frozen=True)
class Feature:
    """An optional ability of a client or a server.

    Attributes:
        name: Its word of `--features`.
        parts: The requirements besides a client or a server: `client`, `server`,
            `http`, `stdio`, or tasks in a revision or an extension.
        brings: Features that it includes.
        server_members: Members of `Server` that it adds.
        client_members: Members of open clients that it adds.
        context_members: Members of `Context` that it adds.
        extensions: Extensions that include it; `*` stands for any.
        is_rendered: Whether its modules are rendered; an installed runtime has all other features.
        is_default: Whether packages have it unless it is removed.
        bases: Classes that it adds to the bases of the classes of servers and clients.
        options: Keywords that it adds, as `FUNCTION.KEYWORD`; methods by their bare names.
        commands: Commands that it adds, perhaps with an option, such as `serve --reload`.
        variables: Environment variables that it reads.
    """

    name: str
    parts: frozenset[str]
    brings: tuple[str, ...] = ()
    server_members: tuple[str, ...] = ()
    client_members: tuple[str, ...] = ()
    context_members: tuple[str, ...] = ()
    extensions: frozenset[str] = frozenset()
    is_rendered: bool = False
    is_default: bool = False
    bases: tuple[Base, ...] = ()
    options: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


FEATURES = (
    Feature(
        "prompts",
        frozenset({"server"}),
        server_members=("prompt", "add_prompt", "remove_prompt"),
        is_default=True,
        bases=(Base("Server", "server.toolkit.prompts.PromptDecorator"),),
    ),
    Feature(
        "resources",
        frozenset({"server"}),
        server_members=("resource", "add_resource", "remove_resource", "resource_updated"),
        is_default=True,
        bases=(
            Base("Server", "server.toolkit.resources.ResourceDecorator"),
            Base("ServerOptions", "server.toolkit.resources.ResourceOptions"),
        ),
        options=("Server.subscribe",),
    ),
    Feature(
        "completions",
        frozenset({"server"}),
        server_members=("completion",),
        is_default=True,
        bases=(Base("Server", "server.toolkit.completions.CompletionDecorator"),),
    ),
    Feature(
        "visibility",
        frozenset({"server"}),
        server_members=("disable", "enable"),
        context_members=("disable_components", "enable_components", "reset_visibility"),
        is_default=True,
        bases=(
            Base("Server", "server.toolkit.visibility.ServerVisibility"),
            Base("Context", "server.toolkit.visibility.SessionVisibility"),
        ),
    ),
    Feature(
        "state",
        frozenset({"server"}),
        context_members=("session_state",),
        is_default=True,
        bases=(Base("Context", "server.toolkit.session_values.SessionState"),),
    ),
    Feature(
        "serve",
        frozenset({"server"}),
        is_default=True,
        commands=("serve",),
    ),
    Feature(
        "auth",
        frozenset({"http"}),
        options=("asgi.auth", "run.auth", "ServerHttpSettings.auth"),
    ),
    Feature(
        "elicitation",
        frozenset({"server"}),
        server_members=("elicitation_complete",),
        context_members=(
            *("ask_all", "elicit", "elicit_url", "input_responses", "list_roots", "once"),
            *("request_state", "sample"),
        ),
        extensions=frozenset({_TASKS_EXTENSION}),
        options=("Server.state_key", "Server.state_seconds"),
        bases=(
            Base("Server", "server.toolkit.client_features.questions.ElicitingServer"),
            Base("ServerOptions", "server.toolkit.client_features.questions.ElicitationOptions"),
            Base("ServerOptions", "server.toolkit.key_ring.KeyOptions"),
            Base("Context", "server.toolkit.client_features.questions.ClientQuestions"),
        ),
    ),
    Feature(
        "schemas",
        frozenset(),
        options=("tool.input_schema", "tool.output_schema"),
    ),
    Feature(
        "groups",
        frozenset({"client"}),
        brings=("subscriptions",),
        client_members=("tools_for", "call_from"),
        is_rendered=True,
        options=("connect.inputs",),
        bases=(
            Base("Client", "client.model_calls.ModelCalls"),
            Base("ClientGroup", "client.model_calls.ModelCalls"),
            Base("ConnectOptions", "client.configuration.ConfigOptions"),
        ),
    ),
    Feature(
        "subscriptions",
        frozenset({"client"}),
        client_members=("listen",),
        bases=(Base("Client", "client.listen.ClientListenCalls"),),
    ),
    Feature(
        "commands",
        frozenset({"client"}),
        commands=("call", "config", "inspect", "list", "prompt", "read"),
    ),
    Feature(
        "restart",
        frozenset({"client", "stdio"}),
        options=("connect.restart",),
        bases=(Base("ConnectOptions", "client.restart.RestartOptions"),),
    ),
    Feature(
        "middleware",
        frozenset(),
        server_members=("middleware", "add_middleware"),
        client_members=("middleware",),
        options=("Server.middleware",),
        bases=(
            Base("Server", "server.features.middleware.MiddlewareServer"),
            Base("ServerOptions", "server.features.middleware.MiddlewareOptions"),
            Base("Client", "client.client_middleware.MiddlewareCalls"),
            Base("ClientGroup", "client.client_middleware.MiddlewareCalls"),
        ),
    ),
    Feature(
        "discovery",
        frozenset({"server"}),
        options=("Server.discovery",),
        bases=(
            Base("Server", "server.features.discovery.DiscoveryServer"),
            Base("ServerOptions", "server.features.discovery.DiscoveryOptions"),
        ),
    ),
    Feature(
        "direct",
        frozenset({"server"}),
        server_members=(
            *("call_tool", "get_prompt", "list_prompts", "list_resources", "list_tools"),
            "read_resource",
        ),
        bases=(Base("Server", "server.features.direct.DirectServer"),),
    ),
    Feature(
        "dependencies",
        frozenset({"server"}),
        server_members=("override",),
        bases=(Base("Server", "server.toolkit.dependencies.Overriding"),),
    ),
    Feature(
        "methods",
        frozenset({"server"}),
        server_members=("method",),
        context_members=("client",),
        bases=(
            Base("Server", "server.toolkit.custom_handlers.MethodDecorator"),
            Base("ServerOptions", "server.toolkit.custom_handlers.HandlerOptions"),
        ),
        extensions=frozenset({_ANY_EXTENSION}),
        options=("Server.handlers",),
    ),
    Feature(
        "migration",
        frozenset(),
        bases=(Base("Server", "server.features.migration.MigratingServer"),),
    ),
    Feature(
        "openapi",
        frozenset({"server"}),
        brings=("resources", "schemas"),
        server_members=("from_openapi",),
        bases=(Base("Server", "server.features.openapi.OpenApiServer"),),
    ),
    Feature(
        "mount",
        frozenset({"server"}),
        server_members=("mount",),
        bases=(Base("Server", "server.features.mount.MountingServer"),),
    ),
    Feature(
        "variants",
        frozenset({"server"}),
        server_members=("add_tool_variant",),
        bases=(Base("Server", "server.features.variants.VariantServer"),),
    ),
    Feature(
        "proxy",
        frozenset({"client", "server"}),
        brings=("completions", "mount", "prompts", "resources", "subscriptions"),
        server_members=("proxy",),
        bases=(Base("Server", "proxy.proxying_server.ProxyingServer"),),
    ),
    Feature(
        "inspector",
        frozenset({"client", "server", "http"}),
        brings=("apps", "commands", "subscriptions", "trace"),
        commands=("inspect --web",),
    ),
    Feature(
        "routes",
        frozenset({"server", "http"}),
        server_members=("custom_route",),
    ),
    Feature(
        "cards",
        frozenset({"http"}),
        brings=("routes",),
        server_members=("publish_card",),
    ),
    Feature(
        "reload",
        frozenset({"server", "http"}),
        brings=("serve",),
        commands=("serve --reload",),
    ),
    Feature(
        "workers",
        frozenset({"server", "http"}),
        server_members=("run_workers",),
        commands=("serve --workers",),
    ),
    Feature(
        "scaling",
        frozenset({"server", "http"}),
        brings=("workers",),
        options=(
            *("asgi.sessions", "run.sessions", "Server.state_key", "ServerHttpSettings.sessions"),
        ),
        bases=(
            Base("Server", "server.toolkit.key_ring.KeyedServer"),
            Base("ServerOptions", "server.toolkit.key_ring.KeyOptions"),
        ),
    ),
    Feature(
        "shared",
        frozenset({"server", "http"}),
        brings=("scaling", "serve", "workers"),
        server_members=("announcer",),
        options=("asgi.shared", "run.shared", "ServerHttpSettings.shared"),
        commands=("announce", "serve --shared"),
    ),
    Feature(
        "tasks",
        frozenset({_TASKS}),
        brings=("elicitation",),
        client_members=("task",),
        extensions=frozenset({_TASKS_EXTENSION}),
        options=("call_tool.task", "connect.tasks", "tool.runner"),
        bases=(
            Base("Server", "server.features.task_tools.TaskToolServer"),
            Base("Server", "server.features.shared_tasks.SharedTaskServer", frozenset({"shared"})),
            Base("ToolOptions", "server.features.task_tools.TaskToolOptions"),
            Base(
                "Context",
                "server.toolkit.client_features.client_tasks.TaskQuestions",
                frozenset({"tasks+mutual+server"}),
            ),
            Base("Client", "client.task_calls.TaskCalls"),
            Base("Application", "client.served_tasks.TaskApplication", _MUTUAL_CLIENT),
            Base("ConnectOptions", "client.served_tasks.TaskOptions", _MUTUAL_CLIENT),
        ),
    ),
    Feature(
        "apps",
        frozenset(),
        brings=("resources",),
        server_members=("ui",),
        client_members=("read_ui",),
        extensions=frozenset({_UI_EXTENSION}),
        options=("tool.ui", "tool.visibility"),
        bases=(
            Base("Server", "server.toolkit.app_decorators.AppServer"),
            Base("ToolOptions", "apps.UiToolOptions"),
            Base("Client", "client.app_calls.AppCalls"),
            Base("ClientGroup", "client.app_calls.AppCalls"),
        ),
    ),
    Feature(
        "skills",
        frozenset(),
        brings=("resources",),
        server_members=("skills",),
        bases=(
            Base("Server", "server.features.skills.SkillServer"),
            Base("Client", "client.skill_calls.SkillCalls"),
        ),
        client_members=("get_skill", "list_skills", "read_directory", "read_skill"),
        extensions=frozenset({_SKILLS_EXTENSION}),
    ),
    Feature(
        "telemetry",
        frozenset(),
        brings=("middleware",),
    ),
    Feature(
        "trace",
        frozenset(),
        commands=("trace",),
        variables=("MCP_TRACE",),
    ),
)
"""The features, in the order of tables."""

BASES = (
    Base("Server", "server.features.param_headers.ParamHeaderServer", frozenset({"param_headers"})),
    Base("Context", "server.request_head.HttpContext", frozenset({"server+http"})),
    Base("ConnectOptions", "client.server_url.HttpOptions", frozenset({"client+http"})),
    Base("ConnectOptions", "client.command_target.CommandOptions", frozenset({"client+stdio"})),
)
"""Bases that come with a revision or a transport instead of a feature."""


@dataclass(frozen=True)
class Selection:
    """The choices of a user, in the order of the tables here; `("all",)` for no limit.

    Attributes:
        parts: The parts.
        transports: The transports.
        models: The library that models are written for.
        features: The features besides the default ones, or `all`; then the removed ones, with the
            prefix `-`.
        runtime: The form.
    """

    parts: tuple[str, ...] = (ALL,)
    transports: tuple[str, ...] = (ALL,)
    models: Library = "msgspec"
    features: tuple[str, ...] = (ALL,)
    runtime: Runtime = "vendored"


EVERYTHING = Selection()


@dataclass(frozen=True)
class Features:
    """The contents of a package: the part of a selection that its revisions support.

    Attributes:
        protocol: The connection without I/O.
        client: The client.
        server: The server.
        stdio: Standard streams.
        http: Streamable HTTP.
        http_sse: HTTP+SSE.
        http_sessions: Streamable HTTP with sessions.
        http_stateless: Streamable HTTP without sessions.
        handshakes: Sessions that a handshake opens.
        per_request: Requests that state their revision themselves.
        param_headers: Headers that repeat arguments of a tool.
        draft_headers: The headers of a draft, in sessions.
        several: More than one revision.
        tasks: Tasks, in a revision or in an extension.
        tasks_both_ways: Tasks that either side may request, in a revision.
        extensions: Identifiers of the extensions beside its revisions.
        models: The library of its models.
        chosen: The features by name, including those of other features.
        installed: Whether it imports its runtime, which has all features except rendered ones.
    """

    protocol: bool
    client: bool
    server: bool
    stdio: bool
    http: bool
    http_sse: bool
    http_sessions: bool
    http_stateless: bool
    handshakes: bool
    per_request: bool
    param_headers: bool
    draft_headers: bool
    several: bool
    tasks: bool
    tasks_both_ways: bool
    extensions: frozenset[str]
    models: Library
    chosen: frozenset[str]
    installed: bool

    @property
    def is_runtime(self) -> bool:
        """Whether packages may import this one as their runtime, since it has everything."""
        parts = (self.client, self.server, self.stdio, self.http_sse, self.http_sessions)
        every = self.chosen.issuperset(each.name for each in FEATURES)
        has_all = all(parts) and self.http_stateless and self.several and every
        return has_all and self.models == "msgspec" and not self.installed

    @property
    def both_lifecycles(self) -> bool:
        """Whether its clients negotiate with servers of either lifecycle."""
        return self.handshakes and self.per_request

    @property
    def any_http(self) -> bool:
        """Whether one of the transports is over HTTP."""
        return self.http or self.http_sse

    @property
    def absent(self) -> tuple[Feature, ...]:
        """The features that are available to this selection but were not chosen."""
        return tuple(
            each for each in FEATURES if each.name not in self.chosen and self._can_have(each)
        )

    def bases(self, of: str) -> tuple[Base, ...]:
        """The bases that features add to a class of a page: those of later features first."""
        rows = [each for each in BASES if each.of == of]
        for feature in FEATURES:
            if feature.name in self.chosen:
                rows += (each for each in feature.bases if each.of == of)
        parts = self.parts
        return tuple(dict.fromkeys(each for each in reversed(rows) if each.needs <= parts))

    def imported_bases(self, *classes: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The modules of the bases of classes of a page, each with the names of these, sorted."""
        names: dict[str, set[str]] = {}
        for of in classes:
            for base in self.bases(of):
                names.setdefault(base.module, set()).add(base.name)
        return tuple((module, tuple(sorted(names[module]))) for module in sorted(names))

    @property
    def mutual_tasks(self) -> bool:
        """Whether clients and servers request tasks from each other."""
        return self.tasks_both_ways and "tasks" in self.chosen

    def lacks(self, name: str) -> bool:
        """Whether the feature is available to this selection but was not chosen."""
        return any(each.name == name for each in self.absent)

    def absent_members(self, owner: str) -> Mapping[str, str]:
        """Members of a public class that absent features would add, each with its feature.

        Args:
            owner: `server`, `client` or `context`.
        """
        return self._absent_rows(lambda each: getattr(each, f"{owner}_members"))

    @property
    def absent_options(self) -> Mapping[str, str]:
        """Options that absent features would add, as `FUNCTION.KEYWORD`, each with its feature."""
        return self._absent_rows(lambda each: each.options)

    @property
    def absent_of_server(self) -> Mapping[str, str]:
        """Members of `Server`, and options of it and its decorators, that absent features add."""
        options = self.absent_options.items()
        own = {name: feature for name, feature in options if name.startswith(("Server.", "tool."))}
        return {**self.absent_members("server"), **own}

    @property
    def absent_of_client(self) -> Mapping[str, str]:
        """Members of clients, and options of `connect` and methods, that absent features add."""
        options = self.absent_options.items()
        own = {name: each for name, each in options if name.startswith(("connect.", "call_tool."))}
        return {**self.absent_members("client"), **own}

    def _absent_rows(self, names: Callable[[Feature], Iterable[str]]) -> dict[str, str]:
        """Names that absent features would add, each with the first of these features."""
        present = {each for row in FEATURES if row.name in self.chosen for each in names(row)}
        rows = ((each, row.name) for row in reversed(self.absent) for each in names(row))
        return {each: feature for each, feature in rows if each not in present}

    def _can_have(self, feature: Feature) -> bool:
        has = {
            "client": self.client,
            "server": self.server,
            "http": self.any_http,
            "stdio": self.stdio,
            _TASKS: self.tasks,
        }
        return (self.client or self.server) and all(has[part] for part in feature.parts)

    @property
    def parts(self) -> frozenset[str]:
        """The parts by name, including those within others.

        The connection is exported if there is no client or server. Parts of an extension have its
        identifier, as in `com.example/paint+client`.
        """
        peer = self.client or self.server
        has = {
            "types": True,
            "protocol": self.protocol,
            "client": self.client,
            "server": self.server,
            "peer": peer,
            "connection": self.protocol and not peer,
            "testing": self.client and self.server,
            "several": self.several,
            "partial": bool(self.absent),
            "runtime": self.is_runtime,
            "http": self.any_http,
            "stdio": self.stdio,
            "client+http": self.client and self.any_http,
            "client+stdio": self.client and self.stdio,
            "server+http": self.server and self.any_http,
            "param_headers": self.server and (self.param_headers or self.draft_headers),
        }
        beside = {f"{each}+{name}": has[name] for each in self.extensions for name in _PEERS}
        own = (name for name, present in {**has, **beside}.items() if present)
        return self.parts_of(self.chosen).union(own)

    def parts_of(self, names: Iterable[str]) -> frozenset[str]:
        """Features, and the sides of each that a package has, as in `auth+client`.

        Parts for tasks that either side may request are `tasks+mutual+client` and the like.
        """
        sides = [name for name in _PEERS if getattr(self, name)]
        parts = {part for each in names for part in (each, *(f"{each}+{s}" for s in sides))}
        if "tasks" in parts and self.tasks_both_ways:
            parts.update(f"tasks+mutual+{side}" for side in sides)
        return frozenset(parts)


def selection(
    parts: Sequence[str] = (),
    transports: Sequence[str] = (),
    models: str = "",
    features: Sequence[str] = (),
    runtime: str = "",
) -> Selection:
    """Make a selection from the words of command-line options.

    Args:
        parts: Names, or several with commas between them; none for all.
        transports: Likewise.
        models: The library, msgspec unless it is named.
        features: Names, or several with commas between them, which are added to the default ones;
            `all` or `none` to start from these; names with the prefix `-` to remove.
        runtime: The form, vendored unless it is named.

    Raises:
        UsageError: A name is unknown, or the names contradict each other.
    """
    chosen = Selection(
        _parse_choice("--parts", parts, PARTS),
        _parse_choice("--transport", transports, TRANSPORTS),
        _library(models),
        _feature_names(features),
        _form(runtime),
    )
    named = {name.removeprefix("+") for name in _split(features)}
    for feature in FEATURES:
        lacks_server = "server" in feature.parts and not {ALL, "server"} & {*chosen.parts}
        if feature.is_default and feature.name in named and lacks_server:
            raise UsageError(f"--features: {feature.name} needs server in the package")
    peers = {ALL, *_PEERS}.intersection(chosen.parts)
    if not peers and all(name[0] == "-" for name in chosen.features):
        chosen = replace(chosen, features=(ALL,))  # there are none for types alone
    if chosen.transports != (ALL,) and not peers:
        raise UsageError(
            "expected --transport with the parts client, server or all, got it with"
            f" {', '.join(chosen.parts)}, which opens no connection"
        )
    return chosen


def changed_features(before: Sequence[str], words: Sequence[str]) -> tuple[str, ...]:
    """Apply words of `update --features` to the features of a package.

    Args:
        before: Its features, as in `Selection`.
        words: Names that replace the features, or names with the prefix `+` or `-` each.

    Raises:
        UsageError: Only some words have a prefix.
    """
    names = _split(words)
    signed = [name for name in names if name[:1] in _SIGNS]
    if not signed:
        return tuple(names or before)
    if len(signed) != len(names):
        raise UsageError(f"--features: expected + or - before each name, got {', '.join(names)}")
    return (*before, *names)


_SIGNS = ("+", "-")


def _split(words: Sequence[str]) -> list[str]:
    return [name.strip() for word in words for name in word.split(",")]


def _feature_names(words: Sequence[str]) -> tuple[str, ...]:
    """The features of a selection, from words: `all`, `none`, and names, which may have a sign.

    The words start from the default features, from `all` or from `none`. Of two words for a
    feature, the second counts.

    Raises:
        UsageError: A name is unknown, or a removed feature is included by another one.
    """
    names = _split(words)
    chosen = _named_features(names)
    brought = _brought_features(chosen)
    for name in brought - chosen:
        if f"-{name}" in names:
            others = ", ".join(sorted(each for each in chosen if name in _brought_features({each})))
            raise UsageError(f"--features: {name} comes with {others}, got -{name}")
    bases = {ALL, NONE}.intersection(names)
    added = [each.name for each in FEATURES if each.name in chosen and not each.is_default]
    left_out = [each for each in FEATURES if each.name not in chosen | brought]
    removed = [f"-{each.name}" for each in left_out if each.is_default or bases == {ALL}]
    return (*([ALL] if bases == {ALL} else added), *removed)


def _named_features(names: Sequence[str]) -> set[str]:
    """The features that words choose, without those that these include.

    Raises:
        UsageError: A name is unknown.
    """
    bases = {ALL, NONE}.intersection(names)
    if len(bases) > 1:
        raise UsageError(f"--features: expected {ALL} or {NONE}, got both")
    is_chosen = {each.name: bases == {ALL} or (each.is_default and not bases) for each in FEATURES}
    for name in names:
        feature = name[1:] if name[:1] in _SIGNS else name
        if feature in is_chosen:
            is_chosen[feature] = name[0] != "-"
        elif name not in bases:
            known = f"{', '.join(is_chosen)}, {ALL} or {NONE}"
            raise UsageError(f"--features: expected {known}, got {name!r}")
    return {name for name, present in is_chosen.items() if present}


def whole_features(words: Sequence[str]) -> frozenset[str]:
    """The features that words choose, with those that these include.

    Raises:
        UsageError: A name is unknown.
    """
    chosen = _named_features(_split(words))
    return frozenset(chosen | _brought_features(chosen))


def short_words(names: Sequence[str]) -> tuple[str, ...]:
    """The fewest words for the features of a selection, as a user writes them."""
    kept = [each.name for each in FEATURES if each.is_default and f"-{each.name}" not in names]
    from_none = (NONE, *kept, *(name for name in names if name[0] != "-"))
    return tuple(names) if ALL in names else min(tuple(names), from_none, key=len)


def _brought_features(names: Iterable[str]) -> set[str]:
    """The features that some features include, directly or through others."""
    brings = {each.name: each.brings for each in FEATURES}
    brought: set[str] = set()
    waiting = [name for each in names for name in brings[each]]
    while waiting:
        name = waiting.pop()
        if name not in brought:
            brought.add(name)
            waiting += brings[name]
    return brought


def _parse_choice(option: str, words: Sequence[str], known: tuple[str, ...]) -> tuple[str, ...]:
    names = _split(words)
    for name in names:
        if name not in (*known, ALL):
            raise UsageError(f"{option}: expected {', '.join(known)} or {ALL}, got {name!r}")
    if not names or ALL in names:
        return (ALL,)
    return tuple(name for name in known if name in names)


def _library(word: str) -> Library:
    for known in LIBRARIES:
        if word in (known, ""):
            return known
    raise UsageError(f"--models: expected {' or '.join(LIBRARIES)}, got {word!r}")


def _form(word: str) -> Runtime:
    for known in RUNTIMES:
        if word in (known, ""):
            return known
    raise UsageError(f"--runtime: expected {' or '.join(RUNTIMES)}, got {word!r}")


def features(
    chosen: Selection, facts: Sequence[Facts], extensions: Collection[str] = ()
) -> Features:
    """The contents of a package of some revisions.

    Args:
        chosen: The selection.
        facts: The facts of each revision.
        extensions: Identifiers of the extensions beside them.

    Raises:
        UsageError: No revision has a transport that was chosen, or the package lacks the part of a
            feature.
    """
    transports = [row.transports for row in facts]
    available = {
        "stdio": any(row.stdio for row in transports),
        "http": any(row.streamable_http for row in transports),
        "http+sse": any(row.http_sse for row in transports),
    }
    wanted = TRANSPORTS if chosen.transports == (ALL,) else chosen.transports
    if chosen.transports != (ALL,):
        for name in wanted:
            if not available[name]:
                names = (
                    ", ".join(known for known, present in available.items() if present) or "none"
                )
                raise UsageError(
                    f"--transport: expected one that a chosen revision has ({names}), got {name!r}"
                )
    parts = frozenset(PARTS if chosen.parts == (ALL,) else chosen.parts)
    peer = bool(parts.intersection(_PEERS))
    http_sse = peer and available["http+sse"] and "http+sse" in wanted
    # HTTP+SSE includes Streamable HTTP if a revision has it: the two share their modules.
    http = peer and available["http"] and ("http" in wanted or http_sse)
    both_ways = any(row.meta.related_task is not None for row in facts)
    package = Features(
        protocol=peer or "protocol" in parts,
        client="client" in parts,
        server="server" in parts,
        stdio=peer and available["stdio"] and "stdio" in wanted,
        http=http,
        http_sse=http_sse,
        http_sessions=http and any(row.streamable_http == "session" for row in transports),
        http_stateless=http and any(row.streamable_http == "stateless" for row in transports),
        handshakes=any(row.meta.protocol_version is None for row in facts),
        per_request=any(row.meta.protocol_version is not None for row in facts),
        param_headers=http and any(row.headers.param_prefix is not None for row in facts),
        draft_headers=http and any(row.draft.method is not None for row in facts),
        several=len(facts) > 1,
        tasks=_TASKS_EXTENSION in extensions or both_ways,
        tasks_both_ways=both_ways,
        extensions=frozenset(extensions),
        models=chosen.models,
        chosen=frozenset(),
        installed=chosen.runtime == "installed",
    )
    check_form(chosen.runtime, chosen.models)
    own = _chosen_features(chosen.features, package)
    if package.installed:
        own |= {each.name for each in package.absent if not each.is_rendered}
    return replace(package, chosen=own)


def _chosen_features(names: Sequence[str], has: Features) -> frozenset[str]:
    """The features of a package by name, including those of other features."""
    possible = {each.name: each for each in has.absent}
    added = [name for name in names if name != ALL and name[0] != "-"]
    for feature in FEATURES:
        if feature.name in added and feature.name not in possible:
            needs = " and ".join(sorted(feature.parts)) or "client or server"
            raise UsageError(f"--features: {feature.name} needs {needs} in the package")
    own = {name for name, each in possible.items() if each.is_default or ALL in names}
    extensions = has.extensions | {_ANY_EXTENSION} if has.extensions else has.extensions
    own = own.difference(name[1:] for name in names if name[0] == "-").union(added)
    own |= {name for name, each in possible.items() if each.extensions & extensions}
    return frozenset(own | (_brought_features(own) & possible.keys()))
