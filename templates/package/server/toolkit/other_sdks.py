"""Names of FastMCP and of the official SDK that this package lacks, and what takes their place.

Loaded only for the error of a keyword or an attribute that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict


class NoOptions(TypedDict):
    """No further keywords. At run time they are collected, so that an error can name another."""


_ADDRESS = "run(http='127.0.0.1:8000')"
_AUTH = "asgi(auth=Protected(...)) or run(http=..., auth=Protected(...))"
_DUPLICATES = "server.remove_tool() before a second registration"
_LOGGING = "the logging module of Python"
_RESULT = "a return annotation, or ToolResult"
_TAGS = "server.disable(tags=...)"
_SECURITY = "a check of the values in your function"
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

_KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "Server": {
        "auth": _AUTH,
        "auth_server_provider": _AUTH,
        "cache_hints": "cache=",
        "cache_scope": "cache=CacheHint(...)",
        "cache_ttl": "cache=CacheHint(...)",
        "client": "Server.from_openapi(spec, http_client)",
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
        "middleware": "server.middleware(function)",
        "mount_path": "run(http=..., path=...)",
        "on_duplicate": _DUPLICATES,
        "on_duplicate_prompts": _DUPLICATES,
        "on_duplicate_resources": _DUPLICATES,
        "on_duplicate_tools": _DUPLICATES,
        "openapi_spec": "Server.from_openapi(spec, http_client)",
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
        "transport": "run() for stdio, run(http='127.0.0.1:8000') for HTTP",
        "transport_security": "hosts= and origins=",
        "uvicorn_config": "uvicorn, with server.asgi() as application",
        "workers": "Server.run_workers(function, 4, http=...): each process makes its own Server",
    },
}

_ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "Server": {
        "add_completion_handler": "server.completion(argument, prompt=...)",
        "add_extension": "server.method(name), and capabilities= of Server",
        "add_middleware": "server.middleware(function)",
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
    },
    "Context": {
        "client_extension_settings": "ctx.client_extension(identifier)",
        "client_id": "ctx.principal or ctx.client_info",
        "client_supports_extension": "ctx.client_extension(identifier)",
        "close_sse_stream": "ctx.close_stream()",
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
}


def keyword_error(call: str, names: Iterable[str]) -> TypeError:
    """The error of keywords that a function does not take.

    Args:
        call: The function, such as `server.tool`, perhaps with parentheses and more text.
        names: The keywords.
    """
    alternatives = _KEYWORDS.get(call.partition("(")[0], {})
    texts = [
        _text(f"unexpected keyword argument {name!r}", alternatives.get(name)) for name in names
    ]
    return TypeError(f"{call}: {'; '.join(texts)}")


def attribute_error(value: object, kind: str, name: str) -> AttributeError:
    """The error of an attribute that an object does not have.

    Args:
        value: The object.
        kind: Name of the class that the documents describe.
        name: The attribute.
    """
    text = f"{type(value).__name__!r} object has no attribute {name!r}"
    return AttributeError(_text(text, _ATTRIBUTES[kind].get(name)), name=name, obj=value)


def _text(text: str, alternative: str | None) -> str:
    return text if alternative is None else f"{text}: use {alternative}"
