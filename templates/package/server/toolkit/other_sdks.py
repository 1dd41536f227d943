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
_ITEM = {
    "auth": "scopes=",
    "enabled": "server.disable() after the registration",
    "version": "meta=, or a name for each version",
}

_KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "Server": {
        "auth": _AUTH,
        "debug": "show_errors=True",
        "dependencies": "the dependencies of your project",
        "exclude_tags": _TAGS,
        "host": _ADDRESS,
        "include_tags": _TAGS,
        "json_response": "run(http=..., answers='json')",
        "list_page_size": "page_size=",
        "log_level": _LOGGING,
        "mask_error_details": "show_errors=, which is False by default",
        "middleware": "server.middleware(function)",
        "mount_path": "run(http=..., path=...)",
        "on_duplicate": _DUPLICATES,
        "on_duplicate_prompts": _DUPLICATES,
        "on_duplicate_resources": _DUPLICATES,
        "on_duplicate_tools": _DUPLICATES,
        "port": _ADDRESS,
        "stateless_http": "run(http=..., stateless=True) or asgi(stateless=True)",
        "streamable_http_path": "run(http=..., path=...)",
        "strict_input_validation": "coerce=False",
        "token_verifier": _AUTH,
        "tool_serializer": _RESULT,
        "tools": "server.add_tool(function)",
        "warn_on_duplicate_prompts": _DUPLICATES,
        "warn_on_duplicate_resources": _DUPLICATES,
        "warn_on_duplicate_tools": _DUPLICATES,
    },
    "server.tool": {
        **_ITEM,
        "exclude_args": "Annotated[..., Depends(...)], which no schema shows",
        "run_in_thread": "a coroutine function, which runs in the event loop",
        "serializer": _RESULT,
        "structured_output": "output_schema=None for False; a return annotation for True",
        "task": "runner=Tasks(...)",
    },
    "server.resource": _ITEM,
    "server.prompt": _ITEM,
    "server.run": {
        "host": "http='127.0.0.1:8000'",
        "json_response": "answers='json'",
        "log_level": _LOGGING,
        "middleware": "ASGI middleware around server.asgi()",
        "mount_path": "path=",
        "port": "http='127.0.0.1:8000'",
        "stateless_http": "stateless=True",
        "transport": "run() for stdio, run(http='127.0.0.1:8000') for HTTP",
        "uvicorn_config": "uvicorn, with server.asgi() as application",
        "workers": "Server.run_workers(function, 4, http=...): each process makes its own Server",
    },
}

_ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "Server": {
        "add_middleware": "server.middleware(function)",
        "as_proxy": "Server.proxy(target)",
        "from_client": "Server.proxy(target)",
        "from_fastapi": "Server.from_openapi(app.openapi(), http_client)",
        "get_tool": "await server.list_tools()",
        "get_tools": "await server.list_tools()",
        "http_app": "server.asgi()",
        "import_server": "server.mount(other, prefix=...)",
        "local_provider": "server.remove_tool() and its like",
        "render_prompt": "await server.get_prompt(name, arguments)",
        "run_http_async": "await server.run_async(http='127.0.0.1:8000')",
        "run_stdio_async": "await server.run_async()",
        "run_streamable_http_async": "await server.run_async(http='127.0.0.1:8000')",
        "session_manager": "server.asgi(), which is an application with a lifespan of its own",
        "settings": "the arguments of Server and run",
        "sse_app": "server.asgi(sse_path='/sse')",
        "streamable_http_app": "server.asgi()",
    },
    "Context": {
        "client_id": "ctx.principal or ctx.client_info",
        "close_sse_stream": "ctx.close_stream()",
        "fastmcp": "the server of your module",
        "get_prompt": "await server.get_prompt(name, arguments)",
        "get_state": "ctx.session_state(Class)",
        "headers": "ctx.http_request.headers",
        "lifespan_context": "ctx.state",
        "list_prompts": "await server.list_prompts()",
        "list_resources": "await server.list_resources()",
        "mcp_server": "the server of your module",
        "read_resource": "await server.read_resource(uri)",
        "session": "ctx.client",
        "set_state": "ctx.session_state(Class)",
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
