"""Facts about one method that a revision states only in prose; part of mcpgen and of packages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MethodFacts:
    """Facts about one method; the defaults hold for a method without facts.

    Attributes:
        extension: Whether an extension may add the method to a revision that lacks it.
        idempotent: Whether a request may be sent again if its response is lost.
        cancellable: Whether a request may be cancelled.
        before_initialized: Whether a server may send it before `notifications/initialized`.
        named_by: The member of the params that says what a request, or a notification of an
            extension, is about; the name header repeats that of a request. `None` for none.
        param_headers: Whether parameter headers repeat the `arguments` in its params.
        input_required: Whether a request may be answered with requests for input.
        listed_by: The request whose result lists what this one names, or `None`.
        invalidates: Requests whose cached results are stale after this notification.
        subscription: The member of a subscription's filter that asks for it, or `None`.
        routed_by: What finds one of several servers, unless `named_by` does: `uri` or `ref` in the
            params, `all` for every server, `None` for what is not sent to several.
        runs_tool: Whether it runs a tool, whose result has a value.
        unchecked: Members of the params that are any JSON object, since the handler validates them.
        per_principal: Whether a server has it for authenticated clients alone.
        extension_results: Types of extensions that its result may be, where the package has them.
        positional: Params that methods of a client take by position, in this order, and all others
            by keyword alone. Only generation reads it.
    """

    extension: bool = False
    idempotent: bool = False
    cancellable: bool = True
    before_initialized: bool = False
    named_by: str | None = None
    param_headers: bool = False
    input_required: bool = False
    listed_by: str | None = None
    invalidates: tuple[str, ...] = ()
    subscription: str | None = None
    routed_by: str | None = None
    runs_tool: bool = False
    unchecked: tuple[str, ...] = ()
    per_principal: bool = False
    extension_results: tuple[str, ...] = ()
    positional: tuple[str, ...] = ()


UNSTATED = MethodFacts()
"""The facts about a method for which a revision states none."""
