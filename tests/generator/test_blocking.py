"""Blocking methods, derived from the signatures of the asynchronous client."""

from __future__ import annotations

import pytest

from mcpgen.model.blocking import BlockingMethod, blocking_methods, derive_methods

SOURCE = '''
class ClientBase:
    def __init__(self) -> None: ...

    @property
    def revision(self) -> str:
        """The revision."""

    @property
    def cache(self) -> Cache: ...

    def supports(self, capability: str) -> bool:
        """Whether it is declared."""

    async def request(
        self, name: str, *, timeout: float | None = None, on_progress: OnProgress | None = None
    ) -> Any:
        """Send a request.

        Args:
            name: The method.
        """

    def listen(self, *, tools: bool = False) -> Subscription:
        """Subscribe."""

    def _private(self) -> None: ...
'''


def only(source: str) -> BlockingMethod:
    """The single method of a class body."""
    (method,) = derive_methods(f"class ClientBase:\n{source}")
    return method


def test_public_members_are_derived_in_their_order() -> None:
    derived = {method.name: method.is_property for method in derive_methods(SOURCE)}
    assert derived == {"revision": True, "supports": False, "request": False, "listen": False}


def test_a_blocking_method_has_the_original_signature() -> None:
    request = {method.name: method for method in derive_methods(SOURCE)}["request"]
    assert request.parameters == (
        "self, name: str, *, timeout: float | None=None, on_progress: OnProgress | None=None"
    )
    assert request.returns == "Any"


def test_a_subscription_becomes_a_blocking_subscription() -> None:
    assert only("    def listen(self) -> AnySubscription: ...").returns == "SyncSubscription"


def test_a_method_without_annotation_returns_none() -> None:
    assert only("    def stop(self): ...").returns == "None"


def test_a_module_without_the_class_is_an_error() -> None:
    with pytest.raises(LookupError, match="ClientBase"):
        list(derive_methods("class Other: ..."))


def test_the_client_of_the_package_has_methods_to_derive() -> None:
    names = {method.name for method in blocking_methods(frozenset({"groups", "subscriptions"}))}
    assert {"request", "request_raw", "notify", "listen", "supports"} <= names
