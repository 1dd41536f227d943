"""The table of features: their requirements, members, options, commands and classes.

`parts` chooses from it; see there.
"""

from __future__ import annotations

from dataclasses import dataclass

TASKS = "a revision or an extension with tasks"
"""The requirement of tasks, besides a client or a server."""
SESSIONS = "a revision with sessions over HTTP"
"""The requirement of what only sessions have over HTTP."""
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
_UI_EXTENSION = "io.modelcontextprotocol/ui"
_SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
ANY_EXTENSION = "*"
_MUTUAL_CLIENT = "tasks+mutual+client"


@dataclass(frozen=True)
class Base:
    """A class of a plain module that is a base of a class in a page `chosen.py`.

    Attributes:
        of: The class of the page: `Server`, `Dispatcher`, `Context`, `ServerOptions`,
            `ToolOptions` or `ResourceOptions` of servers; `ServerHttpOptions` or
            `ServerHttpSettings` of servers over HTTP;
            `Client`, `ClientGroup`, `ChosenApplication` or `ConnectOptions` of clients.
        place: The module and the class, within the package.
        needs: A part that it needs besides the feature; see `Features.parts`.
    """

    of: str
    place: str
    needs: str = ""

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
            `http`, `stdio`, sessions over HTTP, or tasks in a revision or an extension.
        brings: Features that it includes.
        server_members: Members of `Server` that it adds.
        client_members: Members of open clients that it adds.
        context_members: Members of `Context` that it adds.
        extensions: Extensions that include it; `*` stands for any.
        is_rendered: Whether its modules are rendered; an installed runtime has all other features.
        is_default: Whether packages have it unless it is removed.
        was_default: Whether packages of an earlier mcpgen have it unless their manifest leaves it
            out; see `recorded_features`.
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
    was_default: bool = False
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
            Base("ServerOptions", "server.toolkit.resources.SubscriptionOptions"),
        ),
        options=("Server.subscribe",),
    ),
    Feature(
        "completions",
        frozenset({"server"}),
        server_members=("completion",),
        was_default=True,
        bases=(Base("Server", "server.toolkit.completions.CompletionDecorator"),),
    ),
    Feature(
        "visibility",
        frozenset({"server"}),
        server_members=("disable", "enable"),
        context_members=("disable_components", "enable_components", "reset_visibility"),
        was_default=True,
        bases=(
            Base("Server", "server.toolkit.visibility.ServerVisibility"),
            Base("Dispatcher", "server.toolkit.varying_registry.VaryingLists"),
            Base("Context", "server.toolkit.visibility.SessionVisibility"),
        ),
    ),
    Feature(
        "state",
        frozenset({"server"}),
        context_members=("session_state",),
        was_default=True,
        bases=(Base("Context", "server.toolkit.session_values.SessionState"),),
    ),
    Feature(
        "serve",
        frozenset({"server"}),
        is_default=True,
        commands=("serve",),
        bases=(Base("Server", "server.toolkit.banner.BannerServer"),),
    ),
    Feature(
        "auth",
        frozenset({"http"}),
        options=(
            *("asgi.auth", "run.auth", "run_async.auth", "run_workers.auth"),
            "ServerHttpSettings.auth",
        ),
        bases=(
            Base("Server", "server.toolkit.required_scopes.ScopedServer"),
            Base("ServerHttpOptions", "server.asgi.auth_options.AuthOptions"),
            Base("ServerHttpSettings", "server.asgi.auth_options.ProtectionSettings"),
        ),
    ),
    Feature(
        "elicitation",
        frozenset({"server"}),
        server_members=("elicitation_complete",),
        context_members=(
            *("ask_all", "elicit", "elicit_url", "input_responses", "list_roots", "once"),
            *("request_state", "sample"),
        ),
        extensions=frozenset({TASKS_EXTENSION}),
        options=("Server.state_key", "Server.state_seconds"),
        bases=(
            Base("Server", "server.toolkit.client_features.questions.ElicitingServer"),
            Base("ServerOptions", "server.toolkit.client_features.questions.ElicitationOptions"),
            Base("ServerOptions", "server.toolkit.key_ring.KeyOptions"),
            Base("Context", "server.toolkit.client_features.questions.ClientQuestions"),
        ),
    ),
    Feature(
        "returns",
        frozenset({"client"}),
        options=("call_tool.returns", "start_call.returns"),
        is_default=True,
        bases=(Base("Client", "client.typed_results.TypedResults"),),
    ),
    Feature(
        "schemas",
        frozenset(),
        options=("Server.validation_seconds", "tool.input_schema", "tool.output_schema"),
        bases=(
            Base("Server", "server.toolkit.schema_tools.SchemaServer"),
            Base("ServerOptions", "server.toolkit.schema_tools.ValidationOptions"),
            Base("ToolOptions", "server.toolkit.schema_tools.ToolSchemas"),
        ),
    ),
    Feature(
        "sync",
        frozenset({"client"}),
        is_rendered=True,
        was_default=True,
    ),
    Feature(
        "groups",
        frozenset({"client"}),
        brings=("returns", "subscriptions"),
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
        "callbacks",
        frozenset({"client"}),
        client_members=("on_log", "on_progress", "start_call"),
        was_default=True,
        bases=(
            Base("Client", "client.callbacks.CallbackCalls"),
            Base("Client", "client.callbacks.StartedCalls"),
            Base("ClientGroup", "client.callbacks.CallbackCalls"),
            Base("ChosenApplication", "client.callbacks.CallbackApplication"),
        ),
    ),
    Feature(
        "aiohttp",
        frozenset({"client", "http"}),
        was_default=True,
        bases=(Base("ChosenApplication", "transports.http.aiohttp_library.AiohttpRequests"),),
    ),
    Feature(
        "commands",
        frozenset({"client"}),
        brings=("callbacks", "config"),
        commands=("call", "inspect", "list", "prompt", "read"),
    ),
    Feature(
        "config",
        frozenset(),
        commands=("config",),
    ),
    Feature(
        "restart",
        frozenset({"client", "stdio"}),
        options=("connect.restart",),
        bases=(Base("ConnectOptions", "client.restart.RestartOptions"),),
    ),
    Feature(
        "lock",
        frozenset({"client"}),
        client_members=("lock_differences",),
        options=tuple(
            f"connect.{option}" for option in ("lock", "lock_name", "on_change", "on_new_server")
        ),
        bases=(
            Base("Client", "client.lock.locked_requests.LockedCalls"),
            Base("ClientGroup", "client.lock.locked_requests.LockedCalls"),
            Base("ChosenApplication", "client.lock.locked_requests.LockedApplication"),
            Base("ConnectOptions", "client.lock.locked_requests.LockOptions"),
        ),
    ),
    Feature(
        "middleware",
        frozenset(),
        server_members=("middleware", "add_middleware"),
        client_members=("middleware",),
        options=("Server.middleware",),
        bases=(
            Base("Server", "server.features.middleware_server.MiddlewareServer"),
            Base("ServerOptions", "server.features.middleware_server.MiddlewareOptions"),
            Base("Client", "client.client_middleware.MiddlewareCalls"),
            Base("ClientGroup", "client.client_middleware.MiddlewareCalls"),
        ),
    ),
    Feature(
        "discovery",
        frozenset({"server"}),
        options=("Server.discovery",),
        bases=(
            Base("Server", "server.features.discovery_server.DiscoveryServer"),
            Base("ServerOptions", "server.features.discovery_server.DiscoveryOptions"),
            Base("Dispatcher", "server.toolkit.varying_registry.VaryingLists"),
        ),
    ),
    Feature(
        "direct",
        frozenset({"server"}),
        server_members=(
            *("call_tool", "get_prompt", "list_prompts", "list_resources", "list_tools"),
            "read_resource",
        ),
        bases=(Base("Server", "server.features.direct_server.DirectServer"),),
    ),
    Feature(
        "slow_calls",
        frozenset({"server"}),
        options=("Server.slow_after",),
        bases=(
            Base("Server", "server.features.slow_calls.SlowCallServer"),
            Base("ServerOptions", "server.features.slow_calls.SlowCallOptions"),
        ),
    ),
    Feature(
        "dependencies",
        frozenset({"server"}),
        server_members=("override",),
        bases=(Base("Server", "server.toolkit.dependencies.Overriding"),),
    ),
    Feature("files", frozenset({"server"})),
    Feature(
        "methods",
        frozenset({"server"}),
        server_members=("method",),
        context_members=("client",),
        bases=(
            Base("Server", "server.toolkit.custom_handlers.MethodDecorator"),
            Base("ServerOptions", "server.toolkit.custom_handlers.HandlerOptions"),
        ),
        extensions=frozenset({ANY_EXTENSION}),
        options=("Server.handlers",),
    ),
    Feature(
        "migration",
        frozenset(),
        bases=(Base("Server", "server.features.migrating_server.MigratingServer"),),
    ),
    Feature(
        "compatibility",
        frozenset({"server"}),
        server_members=("request_handler", "current_context"),
        options=("Server.compatibility",),
        bases=(
            Base("Server", "server.toolkit.function_handlers.FunctionHandlerServer"),
            Base("Server", "server.toolkit.compatibility.CompatibleServer"),
            Base("ServerOptions", "server.toolkit.compatibility.CompatibilityOptions"),
        ),
    ),
    Feature(
        "openapi",
        frozenset({"server"}),
        brings=("resources", "schemas"),
        server_members=("from_openapi",),
        bases=(Base("Server", "server.features.from_openapi.OpenApiServer"),),
    ),
    Feature(
        "mount",
        frozenset({"server"}),
        server_members=("mount",),
        bases=(
            Base("Server", "server.features.mounting_server.MountingServer"),
            Base("Dispatcher", "server.toolkit.mounting.MountingDispatcher"),
        ),
    ),
    Feature(
        "variants",
        frozenset({"server"}),
        server_members=("add_tool_variant",),
        bases=(Base("Server", "server.features.variant_server.VariantServer"),),
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
        bases=(Base("Server", "server.toolkit.custom_routes.CustomRoutes"),),
    ),
    Feature(
        "cards",
        frozenset({"http"}),
        brings=("routes",),
        server_members=("publish_card",),
        bases=(Base("Server", "server.toolkit.card_publishing.CardPublishing"),),
    ),
    Feature(
        "reload",
        frozenset({"server", "http"}),
        brings=("serve",),
        commands=("serve --reload",),
    ),
    Feature(
        "resume",
        frozenset({"server", SESSIONS}),
        was_default=True,
        options=tuple(
            f"{call}.{option}"
            for call in ("asgi", "run", "run_async", "run_workers", "ServerHttpSettings")
            for option in ("events", "retry")
        ),
        bases=(
            Base("ServerHttpOptions", "server.asgi.resumable_stream.ResumeOptions"),
            Base("ServerHttpSettings", "server.asgi.resumable_stream.ResumeSettings"),
        ),
    ),
    Feature(
        "workers",
        frozenset({"server", "http"}),
        server_members=("run_workers",),
        commands=("serve --workers",),
        bases=(Base("Server", "server.toolkit.worker_hosting.WorkerHosting"),),
    ),
    Feature(
        "scaling",
        frozenset({"server", "http"}),
        brings=("workers",),
        options=(
            *("asgi.sessions", "run.sessions", "run_async.sessions", "run_workers.sessions"),
            *("Server.state_key", "ServerHttpSettings.sessions"),
        ),
        bases=(
            Base("Server", "server.toolkit.worker_hosting.SealedHosting"),
            Base("ServerHttpOptions", "server.asgi.sealed_options.SealedOptions"),
            Base("ServerHttpSettings", "server.asgi.sealed_options.SealedSettings"),
            Base("Server", "server.toolkit.key_ring.KeyedServer"),
            Base("ServerOptions", "server.toolkit.key_ring.KeyOptions"),
        ),
    ),
    Feature(
        "shared",
        frozenset({"server", "http"}),
        brings=("resume", "scaling", "serve", "workers"),
        server_members=("announcer",),
        options=(
            *("asgi.shared", "run.shared", "run_async.shared", "run_workers.shared"),
            "ServerHttpSettings.shared",
        ),
        commands=("announce", "serve --shared"),
        bases=(
            Base("Server", "server.toolkit.shared_hosting.SharedHosting"),
            Base("ServerHttpOptions", "server.asgi.shared_options.SharedOptions"),
            Base("ServerHttpSettings", "server.asgi.shared_options.SharedSettings"),
        ),
    ),
    Feature(
        "tasks",
        frozenset({TASKS}),
        brings=("elicitation",),
        client_members=("task",),
        extensions=frozenset({TASKS_EXTENSION}),
        options=("call_tool.task", "connect.tasks", "tool.runner"),
        bases=(
            Base("Server", "server.features.task_tool_server.TaskToolServer"),
            Base(
                "Server",
                "server.features.shared_task_server.SharedTaskServer",
                "shared",
            ),
            Base("ToolOptions", "server.features.task_tool_server.TaskToolOptions"),
            Base(
                "Context",
                "server.toolkit.client_features.client_tasks.TaskQuestions",
                "tasks+mutual+server",
            ),
            Base("Client", "client.task_requests.ResumingCalls"),
            Base("ChosenApplication", "client.served_tasks.TaskApplication", _MUTUAL_CLIENT),
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
            Base("Dispatcher", "server.toolkit.varying_registry.VaryingLists"),
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
            Base("Server", "server.features.skill_server.SkillServer"),
            Base("Client", "client.skill_calls.SkillCalls"),
        ),
        client_members=("get_skill", "list_skills", "read_directory", "read_skill"),
        extensions=frozenset({_SKILLS_EXTENSION}),
    ),
    Feature(
        "telemetry",
        frozenset(),
        brings=("middleware",),
        bases=(Base("Server", "server.toolkit.http_counts.CountedHosting", "http"),),
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
    Base("ServerHttpOptions", "server.asgi.sse_options.SseOptions", "http+sse"),
    Base("ServerHttpSettings", "server.asgi.sse_options.SseSettings", "http+sse"),
    Base("ServerHttpSettings", "server.asgi.draft_headers.DraftSettings", "draft_headers"),
    Base("Server", "server.toolkit.any_hosting.AnyHosting", "stdio and http"),
    Base("Server", "server.toolkit.http_hosting.HttpHosting", "http alone"),
    Base("Server", "server.toolkit.stdio_hosting.StdioHosting", "stdio alone"),
    Base(
        "Server",
        "server.features.param_header_server.ParamHeaderServer",
        "param_headers",
    ),
    Base("Context", "server.request_head.HttpContext", "server+http"),
    Base("Client", "client.request_logs.RequestLogs", "client+per_request"),
    Base("ClientGroup", "client.request_logs.RequestLogs", "client+per_request"),
    Base("ConnectOptions", "client.server_url.HttpOptions", "client+http"),
    Base("ConnectOptions", "client.server_process.CommandOptions", "client+stdio"),
    Base("Server", "server.toolkit.cache_hints.CachingServer", "cache_hints"),
    Base("ServerOptions", "server.toolkit.cache_hints.CacheHintOptions", "cache_hints"),
    Base("ResourceOptions", "server.toolkit.cache_hints.ResourceCacheOptions", "cache_hints"),
)
"""Bases that come with a revision or a transport instead of a feature."""
