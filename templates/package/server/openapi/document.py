"""An OpenAPI document: read from a mapping, text or file, with its references and bounds.

The document is foreign: its size, its depth and the length of its references are bounded, and
nothing is fetched, neither files nor URLs that it refers to.

Source: OpenAPI Specification 3.0.4, 3.1.1 and 3.2.0, Reference Object.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import msgspec

from ..._wire import is_many, is_object
from ...foreign_text import safe_repr, safe_text
from ...yaml_text import LEVELS, DocumentTooLargeError, read_yaml

Spec: TypeAlias = Mapping[str, Any] | str | os.PathLike[str]
"""An OpenAPI document: decoded, as the text of JSON or YAML, or the path of such a file."""

DOCUMENT_BYTES = 64 * 1024 * 1024
"""Most bytes of a document, and most characters of it with a copy for each alias."""

OPERATIONS = 10_000
"""Most operations of a document."""

DOCUMENT_WORK = 5_000_000
"""Most parts of schemas that are converted for all operations together."""

DOCUMENT_TEXT = 256 * 1024 * 1024
"""Most characters of schemas and descriptions of all operations together."""

_REFERENCES = 32  # followed in a row
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")


class Document:
    """An OpenAPI document of version 3.

    Args:
        spec: The document.

    Attributes:
        root: The decoded document.
        is_3_0: Whether its schemas have the form of OpenAPI 3.0; later versions use JSON Schema.

    Raises:
        ValueError: Not an OpenAPI document of version 3, or one that is too large.
        OSError: The file can't be read.
        MissingExtraError: The document is YAML, and PyYAML is not installed.
    """

    def __init__(self, spec: Spec) -> None:
        self._sizes = _Sizes()
        if isinstance(spec, Mapping):
            _check_size(self._sizes.of(spec))
        self.root = dict(spec) if isinstance(spec, Mapping) else _decode(*_text_of(spec))
        version = self.root.get("openapi")
        if not isinstance(version, str) or not version.startswith("3."):
            if "swagger" in self.root:
                raise ValueError(
                    f"spec: expected OpenAPI 3, got Swagger {safe_repr(self.root['swagger'])}; "
                    "convert it first, such as by swagger2openapi"
                )
            raise ValueError(f"spec: openapi: expected a version 3, got {safe_repr(version)}")
        self.is_3_0 = version.startswith("3.0")
        self._work = DOCUMENT_WORK
        self._text = DOCUMENT_TEXT
        self._operations = 0

    def take_work(self) -> None:
        """Count one part of a schema that is converted.

        Raises:
            DocumentTooLargeError: The schemas have too many parts.
        """
        self._work -= 1
        if self._work < 0:
            raise DocumentTooLargeError(f"spec: its schemas have more than {DOCUMENT_WORK} parts")

    def take_text(self, value: Any) -> int:
        """Count a value that an operation takes from the document, and return its characters.

        Raises:
            ValueError: The value is nested too deep.
            DocumentTooLargeError: The operations have too many characters together.
        """
        size = self._sizes.of(value)
        self._text -= size
        if self._text < 0:
            raise DocumentTooLargeError(
                f"spec: expected operations with at most {DOCUMENT_TEXT} characters together"
            )
        return size

    def text(self, *names: str) -> str | None:
        """A text at a place of the document, if there is one."""
        node: Any = self.root
        for name in names:
            node = node.get(name) if is_object(node) else None
        return node if isinstance(node, str) else None

    def path_items(self) -> Iterator[tuple[str, Any]]:
        """Each path with its path item, in the order of the document.

        Raises:
            ValueError: `paths` is no object.
        """
        for path, node in object_member(self.root, "paths").items():
            if not str(path).startswith("x-"):
                yield str(path), node

    def operations_of(self, node: Any) -> list[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
        """Method, path item and operation of each operation of a path.

        Raises:
            ValueError: The path item or an operation is no object.
            DocumentTooLargeError: The document has too many operations.
        """
        item = self.follow(node, "path item")
        named = {method.upper(): item[method] for method in _METHODS if method in item}
        operations = [
            (method, item, self.follow(operation, safe_text(str(method))))
            for method, operation in {
                **named,
                **object_member(item, "additionalOperations"),
            }.items()
        ]
        self._operations += len(operations)
        if self._operations > OPERATIONS:
            raise DocumentTooLargeError(f"spec: expected at most {OPERATIONS} operations")
        return operations

    def follow(self, node: Any, where: str) -> Mapping[str, Any]:
        """The object of a node, with references followed.

        Raises:
            ValueError: Not an object, or a reference that leads to none.
        """
        for _ in range(_REFERENCES):
            node = _object(node, where)
            if "$ref" not in node:
                target: Mapping[str, Any] = node
                return target
            reference = node["$ref"]
            beside = {name: node[name] for name in ("summary", "description") if name in node}
            node = {**_object(self.target(reference), where), **beside}
        raise ValueError(f"{where}: expected at most {_REFERENCES} references in a row")

    def target(self, reference: object) -> Any:
        """The node that a reference leads to.

        Raises:
            ValueError: The reference leads to another document, or nowhere.
        """
        if not isinstance(reference, str) or not (reference == "#" or reference[:2] == "#/"):
            raise ValueError(
                f"$ref: expected a place in this document, '#/...', got {safe_repr(reference)}; "
                "join documents first, such as by `redocly bundle`"
            )
        node: Any = self.root
        for token in reference.split("/")[1:]:
            name = unquote(token).replace("~1", "/").replace("~0", "~")
            if is_object(node) and name in node:
                node = node[name]
            elif is_many(node) and name.isdecimal() and int(name[:9]) < len(node):
                node = node[int(name[:9])]
            else:
                raise ValueError(f"$ref: {safe_repr(reference)} leads nowhere")
        return node


class _Sizes:
    """Approximate numbers of characters of values as JSON; shared parts are measured once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, int]] = {}

    def of(self, value: Any, levels: int = LEVELS) -> int:
        """The size of a value; a shared part counts at each place where it occurs."""
        if isinstance(value, str | bytes):
            return len(value) + 2
        if not is_object(value) and not is_many(value):
            return 2 + (value.bit_length() // 3 if isinstance(value, int) else 0)
        if (known := self._known.get(id(value))) is not None:
            return known[1]
        if not levels:
            raise ValueError("spec: it is nested too deep")
        size = 2
        if is_object(value):
            for name, each in value.items():
                size += len(str(name)) + 2 + self.of(each, levels - 1)
        else:
            for each in value:
                size += self.of(each, levels - 1)
        self._known[id(value)] = value, size  # keeps the value, so that its id is not reused
        return size


def object_member(node: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A member that is an object; an empty one if it is absent.

    Raises:
        ValueError: The member is no object.
    """
    member: Any = node.get(name)
    return {} if member is None else _object(member, safe_text(name))


def _object(node: Any, where: str) -> Mapping[str, Any]:
    if not is_object(node):
        raise ValueError(f"{where}: expected an object, got {safe_repr(node)}")
    return node


def _text_of(spec: str | os.PathLike[str]) -> tuple[bytes, bool]:
    """The bytes of a document, and whether they are JSON."""
    if isinstance(spec, str) and (spec.lstrip()[:1] == "{" or "\n" in spec):
        data = spec.encode(errors="replace")
        size = len(data)
    else:
        name = os.fspath(spec)
        if name.startswith(("http://", "https://")):
            raise ValueError(
                "spec: expected a document or a path, got a URL; fetch it first: "
                "httpx2.get(url).json()"
            )
        path = Path(name)
        size = path.stat().st_size
        data = path.read_bytes() if size <= DOCUMENT_BYTES else b""
    if size > DOCUMENT_BYTES:
        raise ValueError(f"spec: expected at most {DOCUMENT_BYTES} bytes, got {size}")
    return data, data.lstrip()[:1] == b"{"


def _decode(data: bytes, is_json: bool) -> Mapping[str, Any]:
    try:
        if is_json:
            decoded = msgspec.json.decode(data)
        else:
            decoded = read_yaml(data, "spec", DOCUMENT_BYTES, "an OpenAPI document in YAML")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"spec: not JSON: {safe_text(str(error))}") from error
    except RecursionError:
        raise ValueError("spec: it is nested too deep") from None
    return _object(decoded, "spec")


def _check_size(size: int) -> None:
    """Check the size of a document with a copy for each alias."""
    if size > DOCUMENT_BYTES:
        raise DocumentTooLargeError(
            f"spec: expected at most {DOCUMENT_BYTES} characters with a copy for each alias"
        )
