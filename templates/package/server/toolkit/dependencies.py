"""Values that other functions provide for the functions that users register.

The dependencies of a function, and their own dependencies, are collected when it is registered. A
call then resolves them in the order of the parameters, each provider once. Context managers are
left in reverse order when the call ends, by a result or by an error; a provider that is a generator
sees the error at its `yield`.

A plain function, and each half of a plain generator, runs in a worker thread.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from typing import Any, Literal, TypeAlias, Union

import anyio
import msgspec

from .context import Context
from .dispatcher import Dispatcher
from .server import ServerKernel
from .signatures import (
    Injector,
    injector_of,
    is_context,
    is_coroutine_function,
    local_names,
    resolved_hints,
    signature_of,
    source_name,
)

Function: TypeAlias = Callable[..., Any]

Kind: TypeAlias = Literal["coroutine", "function", "context manager", "async context manager"]
"""The kind of result of calling a provider."""

_NO_CONTEXT_PARAMETER = "context of the dependencies"  # not an identifier: no parameter has it


class Provider(msgspec.Struct, frozen=True):
    """A function that provides a value.

    Attributes:
        function: As passed to `Depends`; identifies the value within a call.
        open: Called with its arguments.
        kind: What `open` returns.
        context: Name of the parameter that gets the `Context`, if there is one.
        parameters: The providers of its other parameters.
        arguments: Names of parameters that get the arguments of the call with these names.
    """

    function: Function
    open: Function
    kind: Kind
    context: str | None
    parameters: Mapping[str, Provider]
    arguments: tuple[str, ...] = ()

    def functions(self) -> Generator[Function]:
        """The function, and those of the providers it depends on."""
        yield self.function
        for provider in self.parameters.values():
            yield from provider.functions()


class Dependencies:
    """Calls a function with the values of its dependencies.

    Args:
        call: The function, as coroutine function.
        context: Name of the function's own parameter for the `Context`, if there is one.
        providers: By name of the parameter that gets the value.
        arguments: Names of the function's other parameters, which providers may have too.

    Attributes:
        context: Name of the argument of `__call__` that is the `Context`.
        arguments: As passed.
    """

    def __init__(
        self,
        call: Callable[..., Awaitable[Any]],
        context: str | None,
        providers: Mapping[str, Provider],
        arguments: Collection[str],
    ) -> None:
        self.context = context or _NO_CONTEXT_PARAMETER
        self.arguments = arguments
        self._call = call
        self._providers = providers
        self._replacements: dict[Function, Provider] = {}

    async def __call__(self, **arguments: Any) -> Any:
        """The result of the function.

        Raises:
            Exception: A provider or the function raised it.
        """
        if _NO_CONTEXT_PARAMETER in arguments:
            context = arguments.pop(_NO_CONTEXT_PARAMETER)
        else:
            context = arguments[self.context]
        result: Any = None
        failures: list[BaseException] = []
        async with AsyncExitStack() as stack:
            values: dict[Function, Any] = {}
            call_arguments = dict(arguments)
            try:
                for name, provider in self._providers.items():
                    arguments[name] = await self._value(
                        provider, context, call_arguments, values, stack
                    )
                result = await self._call(**arguments)
            except BaseException as error:
                failures.append(error)
                raise
        if failures:  # a provider suppressed it; there is no result to send instead
            raise failures[0]
        return result

    def has(self, function: Function) -> bool:
        """Whether a function is one of the providers."""
        return any(function in provider.functions() for provider in self._providers.values())

    def replace(self, function: Function, replacement: Provider | None) -> Provider | None:
        """Use another provider in place of a function; `None` for the function itself.

        Returns:
            The previous replacement, if any.
        """
        before = self._replacements.pop(function, None)
        if replacement is not None:
            self._replacements[function] = replacement
        return before

    async def _value(
        self,
        provider: Provider,
        context: Context[Any],
        call_arguments: Mapping[str, Any],
        values: dict[Function, Any],
        stack: AsyncExitStack,
    ) -> Any:
        provider = self._replacements.get(provider.function, provider)
        if provider.function in values:
            return values[provider.function]
        arguments = {name: call_arguments[name] for name in provider.arguments}
        if provider.context is not None:
            arguments[provider.context] = context
        for name, inner in provider.parameters.items():
            arguments[name] = await self._value(inner, context, call_arguments, values, stack)
        value = await _open_value(provider, arguments, stack)
        values[provider.function] = value
        return value


async def _open_value(provider: Provider, arguments: dict[str, Any], stack: AsyncExitStack) -> Any:
    match provider.kind:
        case "coroutine":
            return await provider.open(**arguments)
        case "function":
            from anyio.to_thread import run_sync  # needed for plain functions only

            return await run_sync(partial(provider.open, **arguments), abandon_on_cancel=True)
        case "async context manager":
            return await stack.enter_async_context(provider.open(**arguments))
        case "context manager":
            opened = provider.open(**arguments)
            return await stack.enter_async_context(_enter_in_threads(opened))


@asynccontextmanager
async def _enter_in_threads(manager: AbstractContextManager[Any]) -> typing.AsyncGenerator[Any]:
    """A context manager that is entered and left in worker threads."""
    from anyio.to_thread import run_sync  # needed for plain functions only

    value = await run_sync(manager.__enter__)
    try:
        yield value
    except BaseException as error:
        leave = partial(manager.__exit__, type(error), error, error.__traceback__)
        with anyio.CancelScope(shield=True):
            if not await run_sync(leave):
                raise
    else:
        with anyio.CancelScope(shield=True):
            await run_sync(manager.__exit__, None, None, None)


def _notes(annotation: Any) -> list[Dependency]:
    return [note for note in typing.get_args(annotation)[1:] if isinstance(note, Dependency)]


def provider_of(
    function: Function,
    label: str,
    names: Mapping[str, Any] | None,
    argument_names: Collection[str],
    callers: tuple[Function, ...] = (),
) -> Provider:
    """A function as provider, with the providers of its own parameters.

    Args:
        function: As passed to `Depends`.
        label: The registered function in error texts.
        names: Further names that annotations may use.
        argument_names: Names of the arguments of the registered function.
        callers: The providers that need this one.

    Raises:
        TypeError: It has a parameter that can't be provided, or needs itself.
    """
    where = f"{label}: dependency {source_name(function)!r}"
    if function in callers:
        raise TypeError(f"{where} depends on itself")
    signature = signature_of(function, where)
    annotated = inspect.unwrap(function)
    hints = resolved_hints(annotated, where, names)
    context: str | None = None
    parameters: dict[str, Provider] = {}
    arguments: list[str] = []
    for name, parameter in signature.parameters.items():
        annotation = hints.get(name, Any)
        dependency = injector_of(annotation, name, parameter.default, where)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if isinstance(dependency, Dependency) and parameter.kind is not parameter.POSITIONAL_ONLY:
            inner = provider_of(
                dependency.function, label, names, argument_names, (*callers, function)
            )
            parameters[name] = inner
        elif is_context(annotation) and parameter.kind is not parameter.POSITIONAL_ONLY:
            if context is not None:
                raise TypeError(f"{where}: expected one Context parameter, got {context}, {name}")
            context = name
        elif parameter.default is parameter.empty:
            if name not in argument_names or parameter.kind is parameter.POSITIONAL_ONLY:
                known = (
                    f", one of the arguments {', '.join(argument_names)}" if argument_names else ""
                )
                raise TypeError(
                    f"{where}: parameter {name!r}: expected a Context, Annotated[<type>, "
                    f"Depends(...)]{known} or a default value"
                )
            arguments.append(name)
    opening, kind = _function_and_kind(function, hints.get("return"))
    return Provider(function, opening, kind, context, parameters, tuple(arguments))


def _function_and_kind(function: Function, returns: Any) -> tuple[Function, Kind]:
    """The function to call, and the kind of its result."""
    if inspect.isasyncgenfunction(function):
        return asynccontextmanager(function), "async context manager"
    if inspect.isgeneratorfunction(function):
        return contextmanager(function), "context manager"
    decorated = inspect.unwrap(function)
    origin = typing.get_origin(returns) or returns
    if inspect.isasyncgenfunction(decorated) or origin is AbstractAsyncContextManager:
        return function, "async context manager"
    if inspect.isgeneratorfunction(decorated) or origin is AbstractContextManager:
        return function, "context manager"
    if isinstance(function, type):
        if hasattr(function, "__aenter__"):
            return function, "async context manager"
        if hasattr(function, "__enter__"):
            return function, "context manager"
    if is_coroutine_function(function):
        return function, "coroutine"
    return function, "function"


@contextmanager
def _replace_provider(
    owners: Iterable[Dependencies],
    function: Function,
    replacement: Function,
    names: Mapping[str, Any] | None = None,
) -> Generator[None]:
    """Use a replacement in place of a provider while the block runs."""
    concerned = [each for each in owners if each.has(function)]
    if not concerned:
        name = source_name(function)
        raise LookupError(f"nothing that is registered depends on {name!r}")
    label = f"override of {source_name(function)!r}"
    providers = [provider_of(replacement, label, names, each.arguments) for each in concerned]
    before = [each.replace(function, own) for each, own in zip(concerned, providers, strict=True)]
    try:
        yield
    finally:
        for each, old in zip(concerned, before, strict=True):
            each.replace(function, old)


class Dependency(Injector):
    """The note that `Depends` returns.

    Args:
        function: Provides the value.

    Attributes:
        function: As passed.

    Raises:
        TypeError: Not callable.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(f"Depends: expected a function, got {function!r}")
        self.function = function

    def check_place(self, annotation: Any, name: str, default: Any, label: str) -> None:
        """See `Injector`."""
        where = f"{label}: parameter {name!r}"
        is_union = typing.get_origin(annotation) in (Union, types.UnionType)
        if is_union and any(_notes(part) for part in typing.get_args(annotation)):
            raise TypeError(
                f"{where}: expected Annotated[<type> | None, Depends(...)], got a union with "
                "an Annotated"
            )
        count = len(_notes(annotation)) + isinstance(default, Dependency)
        if count > 1:
            raise TypeError(f"{where}: expected one Depends, got {count}")
        if not isinstance(default, Dependency) and default is not inspect.Parameter.empty:
            raise TypeError(
                f"{where}: the dependency replaces its default value; place the parameter after "
                "a * instead"
            )

    def call(
        self,
        function: Callable[..., Awaitable[Any]],
        context: str | None,
        injectors: Mapping[str, Any],
        argument_names: Collection[str],
        label: str,
        names: Mapping[str, Any] | None,
    ) -> Dependencies:
        """See `Injector`."""
        providers = {
            name: provider_of(each.function, label, names, argument_names)
            for name, each in injectors.items()
        }
        return Dependencies(function, context, providers, argument_names)


def Depends(function: Callable[..., Any]) -> Any:  # noqa: N802 - annotations name it like a class
    """In `Annotated[Db, Depends(open_db)]`: a function provides the value of the parameter.

    `db: Db = Depends(open_db)` is equivalent.

    The parameter is not part of the schema. The function is called once per call, however many
    parameters need its value, and may take a `Context`, dependencies of its own, and arguments of
    the call: a parameter without a default that has the name of an argument gets it, converted.
    If the function is a generator, is decorated by `contextlib.contextmanager` or
    `asynccontextmanager`, has the return annotation `AbstractContextManager[...]` or
    `AbstractAsyncContextManager[...]`, or is a class of context managers, the parameter gets the
    yielded value, and the context is closed at the end of the call. Any other value is passed
    unchanged. A plain function runs in a worker thread.

    Args:
        function: Provides the value.

    Raises:
        TypeError: Not callable.
    """
    return Dependency(function)


class Overriding(ServerKernel):
    """The replacement of dependencies; a base of `Server`."""

    def override(
        self, function: Callable[..., Any], replacement: Callable[..., Any]
    ) -> AbstractContextManager[None]:
        """Use another function instead of a dependency while the block runs, for tests.

            with server.override(open_db, open_empty_db): ...

        Args:
            function: The function that `Depends` holds.
            replacement: Provides the value instead, with dependencies of its own.

        Raises:
            LookupError: (on entering) Nothing that is registered depends on the function.
            TypeError: (on entering) The replacement has parameters that can't be provided.
        """
        names = local_names(inspect.currentframe())
        return _replace_provider(_dependencies(self._dispatcher), function, replacement, names)


def _dependencies(dispatcher: Dispatcher) -> Iterator[Dependencies]:
    """The dependencies of all registered functions, those of mounted servers included."""
    for each in dispatcher.all_servers():
        items: list[Any] = [*each.functions.values()]
        items += [item for registry in each.registries for item in registry.all().values()]
        for item in items:
            if isinstance(item.dependencies, Dependencies):
                yield item.dependencies
