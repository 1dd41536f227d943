"""Names of FastMCP and of the official SDK that this package lacks, and what takes their place.

Imported only for the error of an import, an attribute or a keyword that does not exist.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import TypedDict


class NoOptions(TypedDict):
    """No further keywords. At run time they are collected, so that an error can name another."""


_ADDRESS = "run(http='127.0.0.1:8000')"
_AUTH = "asgi(auth=Protected(...)) or run(http=..., auth=Protected(...))"
_COMMAND = "connect([command, ...], env=..., cwd=...)"
_CONTEXT = "Context as the annotation of a parameter"
_DUPLICATES = "server.remove_tool() before a second registration"
_HANDLERS = "handlers= of connect"
_HTTP_REQUEST = "Context, which has http_request"
_LOGGING = "the logging module of Python"
_RESULT = "a return annotation, or ToolResult"
_TAGS = "server.disable(tags=...)"
_SECURITY = "a check of the values in your function"
_PRINCIPAL = "Context, which has principal"
_ERRORS = "errors, a module"
_TYPES = "models, a module"
_STATE = "state_key=, and state_seconds="
_ITEM = {
    "app": "meta=, which may hold what an extension defines",
    "auth": "scopes=",
    "enabled": "server.disable() after the registration",
    "version": "meta=, or a name for each version",
}

_LOG = {
    "extra": "data, which may be a mapping of JSON values",
    "logger_name": "logger=",
    "message": "data, which is any JSON value",
}

NAMES: Mapping[str, str] = {
    "AESGCMRequestStateCodec": "Server(state_key=...)",
    "AcceptedElicitation": "Accepted",
    "AccessToken": "Principal",
    "AggregateProvider": "Server.mount(other)",
    "AssistantMessage": "Message('assistant', ...)",
    "AuthCheck": "Server, whose decorators have scopes=",
    "AuthContext": "Principal",
    "AuthMiddleware": "Server, whose decorators have scopes=",
    "AuthProvider": "Protected",
    "AuthSettings": "Protected",
    "BearerAuth": "Bearer",
    "BearerAuthProvider": "Protected(..., verifier=JwtVerifier(...))",
    "BinaryResource": "Contents",
    "CONNECTION_CLOSED": "ConnectionClosedError",
    "CacheConfig": "Caching",
    "CacheEntry": "Caching",
    "CacheKey": "Caching",
    "CacheMode": "Caching",
    "CallNext": "Next",
    "CancelledElicitation": "Cancelled",
    "ClientCredentialsOAuthProvider": "ClientCredentials",
    "ClientExtension": "connect(capabilities={'extensions': {...}})",
    "ClientRequestContext": "RequestContext",
    "ClientSession": "connect",
    "ClientSessionGroup": "connect({'mcpServers': {...}})",
    "ClientTransport": "Channel",
    "CompletionArgument": _TYPES,
    "CompletionContext": _TYPES,
    "CreateMessageResultWithTools": _TYPES,
    "CurrentAccessToken": _PRINCIPAL,
    "CurrentContext": _CONTEXT,
    "CurrentFastMCP": "Server of your module",
    "CurrentHeaders": _HTTP_REQUEST,
    "CurrentRequest": _HTTP_REQUEST,
    "CycleError": "TypeError, which the decorators raise",
    "DEFAULT_NEGOTIATED_VERSION": "REVISIONS",
    "DebugTokenVerifier": "Protected(..., verifier=function)",
    "DeclinedElicitation": "Declined",
    "Dependency": "Depends",
    "DirectoryResource": "Server.resource",
    "Elicit": "Context, which has elicit()",
    "ElicitRequestedSchema": _TYPES,
    "ElicitationHandler": "ClientHandlers, with elicit()",
    "ElicitationResult": "Accepted | Declined | Cancelled",
    "ErrorData": "ProtocolError",
    "EventStoreProtocol": "EventStore",
    "Extension": "Server.method",
    "FastMCP": "Server",
    "FastMCPError": "McpError",
    "FastMCPOpenAPI": "Server.from_openapi(spec, http_client)",
    "FastMCPProvider": "Server.mount(other)",
    "FastMCPProxy": "Server.proxy(target)",
    "FastMCPRequestContext": "RequestContext",
    "FastMCPStdioTransport": _COMMAND,
    "FastMCPTransport": "connect(server)",
    "FileResource": "File",
    "FunctionPrompt": "Server.prompt",
    "FunctionResource": "Server.resource",
    "FunctionTool": "Server.tool",
    "HEADER_MISMATCH": "ProtocolError",
    "HttpResource": "Server.resource",
    "INTERNAL_ERROR": _ERRORS,
    "INVALID_PARAMS": _ERRORS,
    "INVALID_REQUEST": _ERRORS,
    "IdentityAssertion": "EnterpriseManaged",
    "InMemoryResponseCacheStore": "Caching",
    "InMemorySubscriptionBus": "Server.resource_updated",
    "IncomingMessage": "ClientHandlers, with a method for each message",
    "InitializationOptions": "Server, by its arguments",
    "InputRequiredRoundsExceededError": "RemoteProtocolError",
    "InputRequiredToolResult": "InputRequired",
    "InsufficientScopeError": "Server, whose decorators have scopes=",
    "InvalidRequestState": "InvalidParamsError",
    "InvalidSignature": "TypeError, which the decorators raise",
    "JWTVerifier": "JwtVerifier",
    "LATEST_PROTOCOL_VERSION": "REVISIONS",
    "ListRoots": "Context, which has list_roots()",
    "ListenNotSupportedError": "AbsentMethodError",
    "LocalProvider": "Server",
    "LogHandler": "LogMessage",
    "LoggingMiddleware": "log_requests",
    "MCPError": "McpError",
    "MCPServer": "Server",
    "METHOD_NOT_FOUND": _ERRORS,
    "MISSING_REQUIRED_CLIENT_CAPABILITY": "MissingCapabilityError",
    "MessageHandler": "ClientHandlers, with a method for each message",
    "MethodBinding": "Server.method",
    "MiddlewareContext": "MiddlewareRequest",
    "MultiAuth": "AnyOf",
    "Namespace": "Server.mount(other, prefix=...)",
    "NodeStdioTransport": _COMMAND,
    "NotFoundError": "ResourceNotFoundError",
    "NotificationBinding": "ClientHandlers, with a method for each message",
    "NotificationOptions": "Server(list_changed=...)",
    "NpxStdioTransport": _COMMAND,
    "OAuthClientProvider": "OAuth",
    "OAuthFlowError": "OAuthError",
    "OAuthProvider": "Protected(issuers=[...])",
    "OAuthProxy": "Protected(issuers=[...])",
    "OAuthRegistrationError": "OAuthError",
    "OAuthTokenError": "OAuthError",
    "OIDCProxy": "Protected(issuers=[...])",
    "OnEvent": "Client, whose listen() is a block",
    "OpenAPIProvider": "Server.from_openapi(spec, http_client)",
    "PARSE_ERROR": _ERRORS,
    "PrivateKeyJWTOAuthProvider": "ClientCredentials",
    "Progress": "Context, which has progress()",
    "ProgressHandler": "Client, which has on_progress()",
    "ProgressLike": "Context, which has progress()",
    "PromptError": "ProtocolError",
    "PromptManager": "Server.prompt",
    "PromptResult": "Message, of which a prompt returns a list",
    "PromptsListChanged": "PromptsChanged",
    "Provider": "Server.mount(other)",
    "ProxyProvider": "Server.proxy(target)",
    "PythonStdioTransport": "connect(Path('server.py'))",
    "REQUEST_TIMEOUT": "RequestTimeoutError",
    "RSAKeyPair": "PrivateKey",
    "RateLimitingMiddleware": "limit_rate",
    "RemoteAuthProvider": "Protected",
    "RequestStateCodec": "Server(state_key=...)",
    "RequestStateSecurity": "Server(state_key=...)",
    "Resolve": "Depends",
    "ResourceBinding": "Server.resource",
    "ResourceContent": "Contents",
    "ResourceError": "ResourceNotFoundError",
    "ResourceManager": "Server.resource",
    "ResourceResult": "Contents, of which a resource returns a list",
    "ResourceSecurityError": "ResourceNotFoundError",
    "ResourcesListChanged": "ResourcesChanged",
    "ResponseCacheStore": "Caching",
    "ResultClaim": "connect(capabilities={'extensions': {...}})",
    "RetryMiddleware": "Server.middleware(function)",
    "RootsHandler": "ClientHandlers, with list_roots()",
    "RootsList": "ClientHandlers, with list_roots()",
    "SSETransport": "connect(url, transport='sse')",
    "Sample": "Context, which has sample()",
    "SamplingHandler": "ClientHandlers, with create_message()",
    "ServerEvent": "Change",
    "ServerExtension": "Server.method",
    "ServerRequestContext": "Context",
    "Shared": "Depends",
    "SignedJWTParameters": "PrivateKey",
    "SlidingWindowRateLimitingMiddleware": "limit_rate",
    "StaticTokenVerifier": "StaticTokens({token: subject})",
    "StdioServerParameters": _COMMAND,
    "StdioTransport": _COMMAND,
    "StreamableHttpTransport": "connect(url, headers=..., auth=...)",
    "StructuredLoggingMiddleware": "log_requests",
    "Subscription": "Client, whose listen() is a block",
    "SubscriptionLost": "ListeningAgain",
    "TextResource": "Contents",
    "TimingMiddleware": "log_requests",
    "TokenClaim": _PRINCIPAL,
    "TokenStorage": "Store",
    "ToolBinding": "Server.tool",
    "ToolManager": "Server.tool",
    "ToolTransform": "Server.add_tool",
    "ToolsListChanged": "ToolsChanged",
    "Transform": "Server.middleware(function)",
    "Transport": "Channel",
    "UNSUPPORTED_PROTOCOL_VERSION": "RevisionError",
    "URLElicitationRequired": "URLElicitationRequiredError",
    "URL_ELICITATION_REQUIRED": "URLElicitationRequiredError",
    "UnexpectedClaimedResult": "ToolResultError",
    "UrlElicitationRequiredError": "URLElicitationRequiredError",
    "UserMessage": "Message('user', ...)",
    "UvStdioTransport": _COMMAND,
    "UvxStdioTransport": _COMMAND,
    "Visibility": "Server.disable",
    "advertise": "connect(capabilities={'extensions': {...}})",
    "authenticated_principal": _PRINCIPAL,
    "client_supports_extension": "Context, which has client_extension()",
    "create_proxy": "Server.proxy(target)",
    "exceptions": _ERRORS,
    "fastmcp": "Server",
    "get_access_token": _PRINCIPAL,
    "get_context": _CONTEXT,
    "get_http_headers": _HTTP_REQUEST,
    "get_http_request": _HTTP_REQUEST,
    "get_server": "Server of your module",
    "get_session": "Context, which has client",
    "infer_transport": "connect(target)",
    "is_enabled": "Server.disable",
    "listen": "Client, whose listen() is a block",
    "lowlevel": "Server(handlers=[...])",
    "prompt": "Server.prompt",
    "read_client_extension_settings": "Context, which has client_extension()",
    "require_client_extension": "Context, which has client_extension()",
    "require_roles": "Server, whose decorators have scopes=",
    "require_scopes": "Server, whose decorators have scopes=",
    "resource": "Server.resource",
    "restrict_tag": "Server, whose decorators have scopes=",
    "run_auth_checks": "Server, whose decorators have scopes=",
    "settings": "Server and its run(), by their arguments",
    "sse_client": "connect(url, transport='sse')",
    "static_assertion_provider": "PrivateKey",
    "stdio_client": "connect([command, ...])",
    "stdio_server": "Server.run()",
    "streamable_http_client": "connect(url)",
    "streamablehttp_client": "connect(url)",
    "tool": "Server.tool",
    "types": _TYPES,
}
"""Names that a package of another SDK has. The first word is a name of this package."""

MODULES: Mapping[str, str] = {
    "client.auth.oauth": "OAuth",
    "client.caching": "Caching",
    "client.client": "connect",
    "client.context": "RequestContext",
    "client.elicitation": "ClientHandlers, with elicit()",
    "client.extension": "connect(capabilities={'extensions': {...}})",
    "client.logging": "Client, which has on_log()",
    "client.messages": "ClientHandlers, with a method for each message",
    "client.oauth_callback": "OAuth",
    "client.progress": "Client, which has on_progress()",
    "client.roots": "ClientHandlers, with list_roots()",
    "client.sampling": "ClientHandlers, with create_message()",
    "client.session": "connect",
    "client.session_group": "connect({'mcpServers': {...}})",
    "client.sse": "connect(url, transport='sse')",
    "client.stdio": "connect([command, ...])",
    "client.streamable_http": "connect(url)",
    "client.streaming": "Client",
    "client.subscriptions": "Client, whose listen() is a block",
    "client.telemetry": "trace_requests",
    "client.transports": "connect(target)",
    "dependencies": "Depends, and Context",
    "exceptions": _ERRORS,
    "mcp_config": "connect({'mcpServers': {...}})",
    "prompts": "Server.prompt, and Message",
    "resources": "Server.resource, and Contents",
    "server.auth.provider": "Protected",
    "server.auth.providers": "Protected, and JwtVerifier",
    "server.auth.settings": "Protected",
    "server.caching": "CacheHint",
    "server.completions": "Server.completion",
    "server.context": "Context",
    "server.dependencies": "Depends, and Context",
    "server.elicitation": "Accepted, Declined and Cancelled",
    "server.event_store": "EventStore",
    "server.extension": "Server.method",
    "server.extensions": "Server.method",
    "server.fastmcp": "Server",
    "server.http": "Server.asgi()",
    "server.lifespan": "Server(lifespan=...)",
    "server.low_level": "Server(handlers=[...])",
    "server.lowlevel": "Server(handlers=[...])",
    "server.mcpserver": "Server",
    "server.middleware": "Middleware",
    "server.models": "Server, by its arguments",
    "server.providers": "Server.mount(other)",
    "server.proxy": "Server.proxy(target)",
    "server.request_state": "Server(state_key=...)",
    "server.server": "Server",
    "server.session": "Context, which has client",
    "server.sessions": "Context, which has session_state()",
    "server.sse": "Server.asgi(sse_path='/sse')",
    "server.stdio": "Server.run()",
    "server.streamable_http": "Server.asgi()",
    "server.streamable_http_manager": "Server.asgi()",
    "server.subscriptions": "Server.resource_updated",
    "server.telemetry": "trace_requests",
    "server.transforms": "Server.middleware(function)",
    "server.transport_security": "Server.asgi(hosts=..., origins=...)",
    "settings": "Server and its run(), by their arguments",
    "shared": "connect and Server",
    "shared.exceptions": _ERRORS,
    "shared.memory": "connect(server)",
    "telemetry": "trace_requests",
    "tools": "Server.tool, and ToolResult",
    "types": _TYPES,
    "utilities": "the names of the package itself",
    "utilities.types": "Image, Audio and File",
}
"""Modules of other SDKs below a package. A module in them counts as they do."""

KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "Server": {
        "auth": _AUTH,
        "auth_server_provider": _AUTH,
        "cache_hints": "cache=",
        "cache_scope": "cache=CacheHint(...)",
        "cache_ttl": "cache=CacheHint(...)",
        "client_log_level": "nothing: each client chooses the level that it wants",
        "debug": "show_errors=True",
        "dereference_schemas": "input_schema= of server.tool",
        "dependencies": "the dependencies of your project",
        "exclude_tags": _TAGS,
        "experimental_capabilities": "capabilities={'experimental': {...}}",
        "extensions": "capabilities={'extensions': {...}} and server.method(name)",
        "host": _ADDRESS,
        "include_tags": _TAGS,
        "json_response": "run(http=..., answers='json')",
        "list_page_size": "page_size=",
        "log_level": _LOGGING,
        "mask_error_details": "show_errors=, which is False by default",
        "mcp_component_fn": "route_map_fn= of Server.from_openapi",
        "message_path": "run(http=..., messages_path=...)",
        "mount_path": "run(http=..., path=...)",
        "on_duplicate": _DUPLICATES,
        "on_duplicate_prompts": _DUPLICATES,
        "on_duplicate_resources": _DUPLICATES,
        "on_duplicate_tools": _DUPLICATES,
        "port": _ADDRESS,
        "providers": "server.mount(other)",
        "request_state_security": _STATE,
        "resource_security": _SECURITY,
        "resources": "server.add_resource(function, uri)",
        "sampling_handler": "ctx.sample(...), which asks the client",
        "session_state_store": "ctx.session_state(Class), which is kept in memory",
        "sse_path": "run(http=..., sse_path=...) or asgi(sse_path=...)",
        "stateless_http": "run(http=..., stateless=True) or asgi(stateless=True)",
        "streamable_http_path": "run(http=..., path=...)",
        "strict_input_validation": "coerce=False",
        "subscriptions": "server.resource_updated(uri)",
        "tasks": "runner=Tasks(...) of server.tool",
        "token_verifier": _AUTH,
        "tool_serializer": _RESULT,
        "tool_transformations": "server.add_tool(function, name, description=...)",
        "tools": "server.add_tool(function)",
        "transforms": "server.mount(other, prefix=...) or server.middleware(function)",
        "warn_on_duplicate_prompts": _DUPLICATES,
        "warn_on_duplicate_resources": _DUPLICATES,
        "warn_on_duplicate_tools": _DUPLICATES,
    },
    "server.tool": {
        **_ITEM,
        "exclude_args": "Annotated[..., Depends(...)], which no schema shows",
        "run_in_thread": "a coroutine function, which runs in the event loop",
        "serializer": _RESULT,
        "structured_output": "structured=False for False; a return annotation for True",
        "task": "runner=Tasks(...)",
    },
    "server.resource": {**_ITEM, "security": _SECURITY},
    "server.prompt": _ITEM,
    "server.mount": {
        "as_proxy": "server.mount(Server.proxy(target))",
        "namespace": "prefix=",
        "prompt_separator": "prefix=, which ends with '_' in names",
        "resource_prefix_format": "prefix=, which becomes the first part of a path",
        "resource_separator": "prefix=, which becomes the first part of a path",
        "tool_names": "names of the other server: server.add_tool(function, name)",
        "tool_separator": "prefix=, which ends with '_' in names",
    },
    "ctx.elicit": {
        "response_description": "form=, whose class has a docstring",
        "response_title": "message=, which says what is asked",
        "response_type": "form=",
        "schema": "form=",
    },
    "ctx.log": _LOG,
    "ctx.debug": _LOG,
    "ctx.info": _LOG,
    "ctx.warning": _LOG,
    "ctx.error": _LOG,
    "server.run": {
        "allowed_hosts": "hosts=",
        "allowed_origins": "origins=",
        "event_store": "events=",
        "host": "http='127.0.0.1:8000'",
        "host_origin_protection": "hosts= and origins=, which are checked by default",
        "json_response": "answers='json'",
        "log_level": _LOGGING,
        "max_request_body_size": "limits=",
        "message_path": "messages_path=",
        "middleware": "ASGI middleware around server.asgi()",
        "mount_path": "path=",
        "port": "http='127.0.0.1:8000'",
        "retry_interval": "retry=",
        "session_idle_timeout": "limits=",
        "show_banner": "banner=",
        "sockets": "uvicorn, with server.asgi() as application",
        "stateless_http": "stateless=True",
        "streamable_http_path": "path=",
        "transport_security": "hosts= and origins=",
        "uvicorn_config": "uvicorn, with server.asgi() as application",
        "workers": "Server.run_workers(function, 4, http=...): each process makes its own Server",
    },
    "connect": {
        "auto_initialize": "connect(), which always opens the session",
        "client_info": "name=, version=, title= and info=",
        "elicitation_callback": "handlers= of connect, with elicit()",
        "elicitation_handler": "handlers= of connect, with elicit()",
        "extensions": "capabilities={'extensions': {...}}",
        "init_timeout": "timeouts=Timeouts(opening=...)",
        "input_required_max_rounds": "limits=ClientLimits(input_rounds=...)",
        "list_roots_callback": "handlers= of connect, with list_roots()",
        "log_handler": "client.on_log(function)",
        "logging_callback": "client.on_log(function)",
        "message_handler": "handlers= of connect, with a method for each message",
        "mode": "revision=",
        "prior_discover": "revision=",
        "progress_handler": "client.on_progress(function)",
        "read_timeout_seconds": "timeouts=Timeouts(...), or timeout= of a request",
        "roots": "handlers= of connect, with list_roots()",
        "sampling_callback": "handlers= of connect, with create_message()",
        "sampling_capabilities": "capabilities={'sampling': {...}}",
        "sampling_handler": "handlers= of connect, with create_message()",
        "timeout": "timeouts=Timeouts(...), or timeout= of a request",
        "verify": "http_client=, with TLS settings of its own",
        "log_level": "client.on_log(function, level)",
        "raise_exceptions": "show_errors=True of Server",
        "result_claims": "returns= of client.call_tool",
        "server": "target=",
        "url": "target=",
    },
    "client.call_tool": {
        "allow_claimed": "client.request(method, params)",
        "allow_input_required": _HANDLERS,
        "input_responses": _HANDLERS,
        "progress_callback": "on_progress=",
        "progress_handler": "on_progress=",
        "raise_on_error": "returns=, which raises ToolFailedError; without it see result.is_error",
        "read_timeout_seconds": "timeout=",
        "request_state": _HANDLERS,
        "version": "meta=, or a name for each version",
    },
}
"""Keywords by function."""

ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "Server": {
        "add_completion_handler": "server.completion(argument, prompt=...)",
        "add_extension": "server.method(name), and capabilities= of Server",
        "add_provider": "server.mount(other, prefix=...)",
        "add_template": "server.add_resource(function, uri)",
        "add_tool_transformation": "server.add_tool(function, name, description=...)",
        "add_transform": "server.mount(other, prefix=...) or server.middleware(function)",
        "as_proxy": "Server.proxy(target)",
        "from_client": "Server.proxy(target)",
        "from_fastapi": "Server.from_openapi(app.openapi(), http_client)",
        "get_prompts": "await server.list_prompts()",
        "get_resource": "await server.list_resources()",
        "get_resource_template": "server.describe(revision)",
        "get_resource_templates": "server.describe(revision)",
        "get_resources": "await server.list_resources()",
        "get_tasks": "runner=Tasks(...) of server.tool",
        "get_tool": "await server.list_tools()",
        "get_tools": "await server.list_tools()",
        "http_app": "server.asgi()",
        "import_server": "server.mount(other, prefix=...)",
        "local_provider": "server.remove_tool() and its like",
        "render_prompt": "await server.get_prompt(name, arguments)",
        "route": "@server.custom_route(path)",
        "run_http_async": "await server.run_async(http='127.0.0.1:8000')",
        "run_sse_async": "await server.run_async(http='127.0.0.1:8000', sse_path='/sse')",
        "run_stdio_async": "await server.run_async()",
        "run_streamable_http_async": "await server.run_async(http='127.0.0.1:8000')",
        "session_manager": "server.asgi(), which is an application with a lifespan of its own",
        "settings": "the arguments of Server and run",
        "sse_app": "server.asgi(sse_path='/sse')",
        "streamable_http_app": "server.asgi()",
        "list_resource_templates": "server.describe(revision)",
        "docket": "runner=Tasks(...) of server.tool",
        "get_app_tool": "meta=, which may hold what an extension defines",
        "get_tool_by_hash": "await server.list_tools()",
        "lifespan": "lifespan= of Server",
        "required_extensions": "extension= of server.method",
        "transforms": "server.middleware(function)",
        "wrap_transform": "server.middleware(function)",
        "description": "server.info",
        "generate_name": "name= of Server",
        "icons": "server.info",
        "title": "server.info",
        "version": "server.info",
        "website_url": "server.info",
    },
    "Context": {
        "client_extension_settings": "ctx.client_extension(identifier)",
        "client_id": "ctx.principal or ctx.client_info",
        "client_supports_extension": "ctx.client_extension(identifier)",
        "close_sse_stream": "ctx.close_stream()",
        "close_standalone_sse_stream": "ctx.close_stream()",
        "delete_state": "ctx.session_state(Class)",
        "fastmcp": "the server of your module",
        "get_prompt": "await server.get_prompt(name, arguments)",
        "get_state": "ctx.session_state(Class)",
        "headers": "ctx.http_request.headers",
        "is_background_task": "runner=Tasks(...) of server.tool",
        "lifespan_context": "ctx.state",
        "list_prompts": "await server.list_prompts()",
        "list_resources": "await server.list_resources()",
        "mcp_server": "the server of your module",
        "notify_prompts_changed": "server.add_prompt() and its like, which notify clients",
        "notify_resource_updated": "server.resource_updated(uri)",
        "notify_resources_changed": "server.add_resource() and its like, which notify clients",
        "notify_tools_changed": "server.add_tool() and its like, which notify clients",
        "origin_request_id": "ctx.request_id",
        "protocol_version": "ctx.revision",
        "read_resource": "await server.read_resource(uri)",
        "send_notification": "ctx.log(), ctx.progress() or server.resource_updated(uri)",
        "session": "ctx.client",
        "set_state": "ctx.session_state(Class)",
        "task_id": "runner=Tasks(...) of server.tool",
        "transport": "ctx.http_request, which is None unless HTTP is used",
    },
    "RequestContext": {
        "close_sse_stream": "ctx.close_stream()",
        "close_standalone_sse_stream": "ctx.close_stream()",
        "protocol_version": "ctx.revision",
        "experimental": "runner=Tasks(...) of server.tool",
        "lifespan_context": "ctx.state",
        "session": "ctx.client",
    },
    "MiddlewareRequest": {
        "copy": "request.with_params(params)",
        "fastmcp_context": "request.context",
        "source": "request.role",
        "timestamp": "datetime.now()",
        "type": "request.is_notification",
    },
    "Client": {
        "call_tool_mcp": "client.call_tool(name, arguments)",
        "cancel": "client.start_call(...), whose result has cancel()",
        "cancelled": "client.start_call(...), or cancel the task that waits for the request",
        "complete_mcp": "client.complete(...)",
        "generate_name": "name= of connect()",
        "get_prompt_mcp": "client.get_prompt(name, arguments)",
        "initialize": "connect(), which has sent it; client.server_info has the answer",
        "initialize_result": "client.server_info, client.server_capabilities, client.instructions",
        "initialized": "connect(), which has sent it",
        "is_connected": "the block of connect(), in which the session is open",
        "list_prompts_mcp": "client.list_prompts_page(...)",
        "list_resource_templates_mcp": "client.list_resource_templates_page(...)",
        "list_resources_mcp": "client.list_resources_page(...)",
        "list_tools_mcp": "client.list_tools_page(...)",
        "new": "connect() once more",
        "prior_discover": "revision= of connect()",
        "protocol_version": "client.revision",
        "read_resource_mcp": "client.read_resource(uri)",
        "send_notification": "client.notify(method, params)",
        "send_ping": "client.request('ping')",
        "send_progress_notification": "client.notify('notifications/progress', params)",
        "send_request": "client.request(method, params)",
        "send_roots_list_changed": "client.notify('notifications/roots/list_changed')",
        "set_elicitation_callback": _HANDLERS,
        "set_logging_level": "client.on_log(function, level)",
        "set_roots": _HANDLERS,
        "set_sampling_callback": _HANDLERS,
        "subscribe_resource": "client.listen(uris=[...])",
        "transport": "the target of connect()",
        "unsubscribe_resource": "the end of the block of client.listen()",
        "client_info": "name=, version=, title= and info= of connect",
        "elicitation_callback": _HANDLERS,
        "extensions": "client.extension(identifier)",
        "input_required_max_rounds": "client.input_rounds",
        "adopt": "revision= of connect",
        "discover_result": "client.server_info, client.server_capabilities, client.instructions",
        "dispatch_input_request": _HANDLERS,
        "get_skill": "client.read_resource(uri)",
        "get_skill_mcp": "client.read_resource(uri)",
        "list_roots_callback": _HANDLERS,
        "list_skills": "client.list_resources()",
        "list_skills_mcp": "client.list_resources()",
        "log_level": "client.on_log(function, level)",
        "logging_callback": "client.on_log(function)",
        "message_handler": _HANDLERS,
        "mode": "client.revision",
        "raise_exceptions": "show_errors=True of Server",
        "read_timeout_seconds": "timeouts=Timeouts(...) of connect",
        "server": "the target of connect()",
        "sampling_callback": _HANDLERS,
        "sampling_capabilities": "capabilities={'sampling': {...}} of connect",
        "send_discover": "client.discover()",
        "validate_tool_result": "client.call_tool(name, arguments), which validates its result",
    },
}
"""Attributes by class."""

_CALLS: Mapping[str, str] = {
    "Client": "connect(target)",
    "server.mount": "server.mount(other, prefix='name')",
    "server.run": "run() for stdio, run(http='127.0.0.1:8000') for HTTP",
    "auth": "auth=OAuth(...), or auth=Bearer(token) for a token",
}
"""Calls whose arguments are of another type there."""


NOT_EXPORTED = frozenset({"TypeError", "errors", "models", "the"})
"""First words of alternatives that are no public names."""


def keyword_error(call: str, names: Iterable[str]) -> TypeError:
    """The error of keywords that a function does not take.

    Args:
        call: The function, such as `server.tool`, perhaps with parentheses and more text.
        names: The keywords.
    """
    alternatives = KEYWORDS.get(call.partition("(")[0].replace("_sync", ""), {})
    texts = [
        _text(f"unexpected keyword argument {name!r}", alternatives.get(name)) for name in names
    ]
    return TypeError(f"{call}: {'; '.join(texts)}")


def call_error(call: str, expected: str) -> TypeError:
    """The error of an argument of another type.

    Args:
        call: The function, such as `server.run`.
        expected: The expected and the actual value.
    """
    return TypeError(_text(f"{call}: {expected}", _CALLS.get(call)))


def attribute_error(value: object, kind: str, name: str) -> AttributeError:
    """The error of an attribute that an object or a class does not have.

    Args:
        value: The object or the class.
        kind: Name of the class that the documents describe.
        name: The attribute.
    """
    owner = value if isinstance(value, type) else type(value)
    text = f"{owner.__name__!r} object has no attribute {name!r}"
    return AttributeError(_text(text, ATTRIBUTES[kind].get(name)), name=name, obj=value)


def name_error_text(name: str, package: str, names: Collection[str], types: str) -> str | None:
    """The error text for a name that a package lacks; `None` if no other SDK has the name.

    Args:
        name: The name.
        package: The package.
        names: The public names of the package.
        types: The module of its message types, such as `.models`.
    """
    alternative = _alternative(name, package, names, types)
    return None if alternative is None else _text(f"{package} has no {name}", alternative)


def module_error(name: str, package: str, names: Collection[str], types: str) -> ImportError | None:
    """The error of an import that works with another SDK; `None` for any other.

    Args:
        name: Full name of a module, or of what is imported from a subpackage: Python looks for a
            module of that name then.
        package: The package.
        names: The public names of the package.
        types: The module of its message types, such as `.models`.
    """
    module = name.removeprefix(f"{package}.")
    while module and module not in MODULES:
        module = module.rpartition(".")[0]
    if module:
        text = f"{package} has no module {name}"
        alternative = _present(MODULES[module], package, names, types)
    else:
        parent, _, last = name.rpartition(".")
        text = f"{parent} has no {last}"
        public = f"{package}.{last}" if last in names else None
        alternative = public or _alternative(last, package, names, types)
    return None if alternative is None else ImportError(_text(text, alternative), name=name)


def _alternative(name: str, package: str, names: Collection[str], types: str) -> str | None:
    """What takes the place of a name of another SDK; `None` for any other name."""
    if name in NAMES:
        return _present(NAMES[name], package, names, types)
    if name[:1].isupper() and hasattr(importlib.import_module(types, package), name):
        return f"{package}{types}.{name}"
    return None


def _present(alternative: str, package: str, names: Collection[str], types: str) -> str | None:
    """The alternative, unless it is a public name that the package was written without."""
    if alternative == _TYPES:
        return f"{package}{types}"
    if alternative == _ERRORS:
        return f"{package}.errors"
    words = re.findall(r"\w+", alternative)
    return alternative if words[0] in names or words[0] in NOT_EXPORTED else None


def _text(text: str, alternative: str | None) -> str:
    return text if alternative is None else f"{text}: use {alternative}"
