"""Normalizes references: each leads to a definition, by its name and key.

In a file, references may also name an anchor, contain the identifier of the file, or point into a
definition. Two definitions of one name, under `$defs` and `definitions`, stay separate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from urllib.parse import unquote

from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.schema.structure import escape, resolve, subschemas, unescape

CONTAINERS = ("$defs", "definitions")


def plain_references(document: Node, container: str) -> tuple[Node, Mapping[str, str]]:
    """Make all references within a document lead to definitions.

    Args:
        document: The document, which is not changed.
        container: The key that holds its definitions, or most of them.

    Returns:
        The document, and the pointers into the file of definitions that have another name there, or
        are none, by key and name in the document.
    """
    renamed = dict(_new_names(document, container))
    anchors = dict(_anchors(document))
    targets: dict[str, str] = {}
    added: dict[str, str] = {}
    for _, node in subschemas(document):
        target = node.get("$ref")
        if isinstance(target, str) and target not in targets:
            pointer = anchors.get(target) or _pointer(document, target)
            if pointer is not None:
                targets[target] = _as_definition(document, pointer, container, renamed, added)
    whole = _with_targets(document, targets)
    for pointer, name in renamed.items():
        _, key, old = pointer.split("/")
        members = whole[key]
        whole[key] = {name if each == unescape(old) else each: members[each] for each in members}
    inner = {name: resolve(document, pointer) for name, pointer in added.items()}
    whole[container] = {**whole[container], **_with_targets(inner, targets)}
    places = {
        f"/{pointer.split('/')[1]}/{escape(name)}": pointer for pointer, name in renamed.items()
    }
    return whole, places | {f"/{container}/{escape(name)}": at for name, at in added.items()}


def _new_names(document: Node, container: str) -> Iterator[tuple[str, str]]:
    """Pointers of definitions whose names are taken under the main key, with new names."""
    for key in CONTAINERS:
        if key != container and is_object(document.get(key)):
            for name, node in document[key].items():
                if name in document[container] and node != document[container][name]:
                    yield f"/{key}/{escape(name)}", f"{key} {name}"


def _anchors(document: Node) -> Iterator[tuple[str, str]]:
    """References to anchors, with the pointers of the schemas that have them."""
    identifier = document.get("$id")
    for pointer, node in subschemas(document):
        for keyword in ("$anchor", "$id"):
            name: Json = node.get(keyword)
            if isinstance(name, str) and pointer:
                yield f"#{name.removeprefix('#')}" if keyword == "$anchor" else name, pointer
                if keyword == "$anchor" and isinstance(identifier, str):
                    yield f"{identifier.rstrip('#')}#{name}", pointer


def _pointer(document: Node, target: str) -> str | None:
    """The pointer of a reference into the file; `None` for any other reference."""
    base, hash_sign, fragment = target.partition("#")
    identifier: Json = document.get("$id")
    if base and not (isinstance(identifier, str) and base == identifier.rstrip("#")):
        return None
    for pointer in (fragment, unquote(fragment)):
        with suppress(LookupError, ValueError, TypeError):
            if hash_sign and pointer.startswith("/") and is_object(resolve(document, pointer)):
                return pointer
    return None


def _as_definition(
    document: Node, pointer: str, container: str, renamed: Mapping[str, str], added: dict[str, str]
) -> str:
    """The reference to the definition at a pointer; schemas in definitions become definitions."""
    if pointer in renamed:
        return f"#/{pointer.split('/')[1]}/{escape(renamed[pointer])}"
    parts = [unescape(part) for part in pointer.split("/")[1:]]
    if len(parts) <= 2 or parts[0] not in CONTAINERS:
        return f"#{pointer}"
    words = [part for part in parts[1:] if part not in ("properties", *CONTAINERS)]
    name = " ".join(words)
    while name in document[container]:
        name += " part"
    added[name] = pointer
    return f"#/{container}/{escape(name)}"


def _with_targets(value: Json, targets: dict[str, str]) -> Json:
    """A copy with replaced references; a member named `$ref`, whose schema is no text, is kept."""
    if is_array(value):
        return [_with_targets(item, targets) for item in value]
    if not is_object(value):
        return value
    return {
        key: (
            targets.get(child, child)
            if key == "$ref" and isinstance(child, str)
            else _with_targets(child, targets)
        )
        for key, child in value.items()
    }
