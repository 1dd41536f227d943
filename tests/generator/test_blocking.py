"""Blocking methods, derived from the signatures of the asynchronous client."""

from __future__ import annotations

import pytest

from mcpgen.model.blocking import blocking_methods, derive_methods

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

    def listen(self, *, tools: bool = False) -> AnySubscription:
        """Subscribe."""

    def stop(self): ...

    def _private(self) -> None: ...
'''


def test_public_members_are_derived_in_order_with_their_signatures() -> None:
    derived = {method.name: method for method in derive_methods(SOURCE)}
    properties = [name for name, method in derived.items() if method.is_property]
    assert [*derived] == ["revision", "supports", "request", "listen", "stop"]
    assert properties == ["revision"]
    assert derived["request"].parameters == (
        "self, name: str, *, timeout: float | None=None, on_progress: OnProgress | None=None"
    )
    returns = {name: method.returns for name, method in derived.items()}
    assert (returns["request"], returns["listen"], returns["stop"]) == (
        "Any",
        "SyncSubscription",
        "None",
    )


def test_a_module_without_the_class_is_an_error() -> None:
    with pytest.raises(LookupError, match="ClientBase"):
        list(derive_methods("class Other: ..."))


def test_the_client_of_the_package_has_methods_to_derive() -> None:
    names = {method.name for method in blocking_methods(frozenset({"groups", "subscriptions"}))}
    assert {"request", "request_raw", "notify", "listen", "supports"} <= names
