"""A document of the registry (`server.json`) as a configuration with one server.

A remote is preferred, since it runs no local process; otherwise, where packages are allowed, the
first package is used that a supported command starts over stdio. A Server Card is such a document
without packages. Values that the user has to provide become inputs of the configuration: header
fields, environment variables, arguments, and placeholders in braces in these. A header field,
variable or argument whose optional input has no value is omitted.

Texts of the document are literal: `${NAME}` does not refer to an environment variable, since a
foreign document must not read the environment.

Source: static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .._wire import is_many, is_object
from ..foreign_text import safe_list, safe_repr, safe_text
from .server_document import ConfigInput

_BRACE = re.compile(r"[{}]")
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")

_RUNNERS: Mapping[str, tuple[str, Sequence[str]]] = {
    "npm": ("npx", ("-y",)),
    "pypi": ("uvx", ()),
    "oci": ("docker", ("run", "-i", "--rm")),
    "nuget": ("dnx", ("--yes",)),
}
"""By type of registry: the command that starts its packages, and the command's arguments."""

_REMOTES = ("streamable-http", "sse")


class RegistryDocument:
    """A registry document as an entry of a configuration with inputs.

    Args:
        members: The document.
        place: The name of the document in errors.
        packages: Whether a package may be used.

    Attributes:
        name: The name of the server, without its namespace.
        entry: The entry in a configuration; an item of `args` may be a list of words.
        inputs: The inputs that the entry refers to, by id.
        required: Ids of the inputs that need a value.

    Raises:
        ValueError: The document has no supported remote or package.
    """

    def __init__(self, members: Mapping[str, Any], place: str, *, packages: bool) -> None:
        self._place = place
        self.name = str(members.get("name") or "server").rpartition("/")[2]
        self.inputs: dict[str, ConfigInput] = {}
        self.required: list[str] = []
        self.entry: Mapping[str, Any] = self._entry(members, packages)

    def entry_for(self, values: Mapping[str, object]) -> dict[str, Any]:
        """The entry without the parts whose optional inputs have no value.

        Raises:
            ValueError: A required input has no value; the text lists all inputs.
        """
        provided = {
            name for name, each in self.inputs.items() if values.get(name, each.default) is not None
        }
        if any(name not in provided for name in self.required):
            raise ValueError(f"{self._place}: {self.describe()}; inputs= of connect() gives them")
        absent = {f"${{input:{name}}}" for name in self.inputs.keys() - provided}

        def is_whole(part: Any) -> bool:
            text = "\0".join(part) if is_many(part) else part
            return not any(each in text for each in absent)

        entry = dict(self.entry)
        for key in ("env", "headers"):
            entry[key] = {name: each for name, each in self.entry[key].items() if is_whole(each)}
        if "command" in entry:
            groups = [each for each in self.entry["args"] if is_whole(each)]
            entry["args"] = [
                word for each in groups for word in (each if is_many(each) else [each])
            ]
        return entry

    def describe(self) -> str:
        """The inputs with their descriptions, in one line."""
        texts = [
            f"{safe_text(each.id)} ({self._input_kind(each)})"
            + (f": {safe_text(each.description)}" if each.description else "")
            for each in self.inputs.values()
        ]
        return f"it needs {'; '.join(texts) or 'no values'}"

    def _input_kind(self, declared: ConfigInput) -> str:
        words = ["required" if declared.id in self.required else "optional"]
        words += ["secret"] if declared.password else []
        words += [f"one of {safe_list(declared.options)}"] if declared.options else []
        shown = declared.default is not None and not declared.password
        return ", ".join([*words, *([f"default {safe_repr(declared.default)}"] if shown else [])])

    def _entry(self, members: Mapping[str, Any], has_packages: bool) -> Mapping[str, Any]:
        for remote in _objects(members.get("remotes")):
            if remote.get("type") in _REMOTES:
                url = self._fill_placeholders(str(remote.get("url", "")), remote.get("variables"))
                self.required += [name for name in self.inputs if name not in self.required]
                return {
                    "type": remote["type"],
                    "url": url,
                    "headers": self._read_named_values(remote.get("headers")),
                    "env": {},
                }
        packages = [*_objects(members.get("packages"))]
        if not has_packages:
            only = "; ServerDocument(..., packages=True) lets its packages run" if packages else ""
            raise ValueError(f"{self._place}: expected a remote of {' or '.join(_REMOTES)}{only}")
        for package in packages:
            if (command := self._command(package)) is not None:
                return command
        kinds = [str(each.get("registryType")) for each in packages]
        raise ValueError(
            f"{self._place}: expected a remote, or a package of {', '.join(_RUNNERS)} that is"
            f" served over stdio, got {safe_list(kinds) or 'none'}"
        )

    def _command(self, package: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The entry for a package; `None` if the package is not supported."""
        kind = str(package.get("registryType"))
        transport = package.get("transport")
        over_stdio = is_object(transport) and transport.get("type") == "stdio"
        if kind not in _RUNNERS or not over_stdio:
            return None
        command, own = _RUNNERS[kind]
        if package.get("runtimeHint") not in (None, command):
            return None
        version = package.get("version")
        name = str(package.get("identifier", ""))
        if name.startswith("-"):  # an option of the command
            return None
        if version is not None:
            name = f"{name}{':' if kind == 'oci' else '@'}{version}"
        env = self._read_named_values(package.get("environmentVariables"))
        passed = [["-e", each] for each in env] if kind == "oci" else []
        arguments: list[Any] = [
            *own,
            *passed,
            *self._arguments(package.get("runtimeArguments")),
            _literal(name),
            *self._arguments(package.get("packageArguments")),
        ]
        return {"command": command, "args": arguments, "env": env, "headers": {}}

    def _read_named_values(self, values: Any) -> dict[str, str]:
        """Header fields or environment variables, by name."""
        named: dict[str, str] = {}
        for each in _objects(values):
            text = self._value(each, str(each.get("name")))
            if text is not None:
                named[str(each.get("name"))] = text
        return named

    def _arguments(self, values: Any) -> Iterator[list[str]]:
        """The arguments of a command, each as a list of words."""
        for each in _objects(values):
            name = str(each.get("name", ""))
            words = [_literal(name)] if each.get("type") == "named" else []
            takes_value = not words or any(
                key in each for key in ("value", "default", "valueHint", "choices", "format")
            )
            if not takes_value:
                yield words
                continue
            text = self._value(each, str(each.get("valueHint") or name.lstrip("-") or "argument"))
            if text is not None:
                yield [*words, text]

    def _value(self, declared: Mapping[str, Any], name: str) -> str | None:
        """A fixed value of the document, or a reference to a new input."""
        value = declared.get("value")
        if isinstance(value, str):
            return self._fill_placeholders(value, declared.get("variables"))
        return self._input(declared, name)

    def _fill_placeholders(self, text: str, variables: Any) -> str:
        """Replace the placeholders of a text by references to inputs."""
        declarations: Mapping[str, Any] = variables if is_object(variables) else {}
        parts = _PLACEHOLDER.split(text)
        return "".join(
            self._input(declarations[part], part, is_part=True)
            if number % 2 and is_object(declarations.get(part))
            else _literal(f"{{{part}}}" if number % 2 else part)
            for number, part in enumerate(parts)
        )

    def _input(self, declared: Mapping[str, Any], name: str, *, is_part: bool = False) -> str:
        """Declare an input; returns the reference to it."""
        fixed = declared.get("value")
        if is_part and isinstance(fixed, str):
            return _literal(fixed)
        name = _BRACE.sub("_", name)
        identifier, number = name, 2
        while identifier in self.inputs:
            identifier, number = f"{name}_{number}", number + 1
        default, choices = declared.get("default"), declared.get("choices")
        self.inputs[identifier] = ConfigInput(
            identifier,
            description=str(declared.get("description", "")),
            default=default if isinstance(default, str) else None,
            options=tuple(map(str, choices if is_many(choices) else ())),
            password=declared.get("isSecret") is True,
        )
        if declared.get("isRequired") is True:
            self.required.append(identifier)
        return f"${{input:{identifier}}}"


def _objects(values: Any) -> Iterator[Mapping[str, Any]]:
    yield from (each for each in (values if is_many(values) else ()) if is_object(each))


def _literal(text: str) -> str:
    """Escape a text, so that it contains no variables of a configuration."""
    return text.replace("$", "${$}")
