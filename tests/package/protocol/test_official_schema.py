"""Whatever goes over the wire is valid by the official schema of its revision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kit.rules import revisions_holding
from mcpgen_runtime.revisions import REVISIONS
from package.protocol.traffic import ROLES, whole_session


class Official:
    """The official schema of a revision."""

    def __init__(self, spec: Path, revision: str) -> None:
        path = spec / "schema" / revision / "schema.json"
        self._schema: dict[str, Any] = json.loads(path.read_text("utf-8"))
        self._key = "$defs" if "$defs" in self._schema else "definitions"
        self.definitions: dict[str, Any] = self._schema[self._key]
        self._of_method = {
            definition["properties"]["method"]["const"]: name
            for name, definition in self.definitions.items()
            if "const" in definition.get("properties", {}).get("method", {})
        }

    def check(self, instance: Any, *names: str) -> None:
        """Validate against the first definition of these that there is."""
        name = next(name for name in names if name in self.definitions)
        whole = {**self._schema, "$ref": f"#/{self._key}/{name}"}
        jsonschema.validators.validator_for(self._schema)(whole).validate(instance)

    def check_call(self, message: dict[str, Any]) -> None:
        """Validate a request or notification by the definition of its method."""
        self.check(message, "JSONRPCRequest" if "id" in message else "JSONRPCNotification")
        self.check(message, self._of_method[message["method"]])

    def check_response(self, method: str, message: dict[str, Any]) -> None:
        """Validate the answer to a method."""
        if "error" in message:
            self.check(message, "JSONRPCErrorResponse", "JSONRPCError")
            return
        self.check(message, "JSONRPCResultResponse", "JSONRPCResponse")
        stem = self._of_method[method].removesuffix("Request")
        if message["result"].get("resultType") == "input_required":
            self.check(message["result"], "InputRequiredResult")
        else:
            self.check(message["result"], f"{stem}Result", "EmptyResult")


@pytest.mark.requirement("jsonrpc.schema-is-authority", "jsonrpc.request-shape")
@pytest.mark.requirement("jsonrpc.error-fields", "lifecycle.respect-version-must")
@pytest.mark.requirement("versioning.legacy-client-dual-server", "discover.result-shape")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.schema-is-authority"))
def test_every_message_of_a_whole_session_is_valid(spec: Path, revision: str) -> None:
    official, asked = Official(spec, revision), {}
    for sender, message in whole_session(revision).wire:
        official.check(message, "JSONRPCMessage")
        if "method" in message:
            official.check_call(message)
            asked[sender, message.get("id")] = message["method"]
        else:
            (asker,) = (role for role in ROLES if role != sender)
            official.check_response(asked[asker, message["id"]], message)


@pytest.mark.requirement("jsonrpc.schema-is-authority")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_whole_session_says_everything_that_the_revision_has(revision: str) -> None:
    wire = whole_session(revision).wire
    for role in ROLES:
        said = {message.get("method") for sender, message in wire if sender == role} - {None}
        known = REVISIONS[revision]
        there = {*known.requests_from(role), *known.notifications_from(role)}
        of_the_other_end = {"notifications/cancelled", "notifications/progress"} - said
        assert said == there - of_the_other_end
