"""Corrections of published schemas (`errata.toml`), each with its reason and source.

An entry names a place, the published value and the right one. The published value must match: an
entry with nothing to correct is an error, so that no outdated entry stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mcpgen.errors import ErrataError, format_value
from mcpgen.json_types import Json
from mcpgen.schema.structure import canonical, replace_at, resolve
from mcpgen.toml_records import convert, read_toml


@dataclass(frozen=True)
class Erratum:
    """One correction.

    Attributes:
        pointer: JSON pointer into the published schema.
        old: The published value.
        new: The right value.
        reason: The reason, in one sentence.
        source: The evidence.
    """

    pointer: str
    old: Json
    new: Json
    reason: str
    source: str


@dataclass(frozen=True)
class _Table:
    erratum: tuple[Erratum, ...]


def read_errata(path: Path) -> tuple[Erratum, ...]:
    """The corrections in a file, in its order; none if the file is empty.

    Raises:
        ErrataError: The file is malformed.
    """
    table, place = read_toml(path, ErrataError)
    entries = convert(table or {"erratum": []}, _Table, place).erratum
    for index, entry in enumerate(entries):
        at = place.at("erratum").at(index)
        if canonical(entry.old) == canonical(entry.new):
            raise at.at("new").error("a value other than old", entry.new)
        for key in ("reason", "source"):
            if not getattr(entry, key).strip():
                raise at.at(key).error("a text", "")
    return entries


def apply(document: Json, errata: Iterable[Erratum], source: str) -> Json:
    """Apply corrections to a copy of a schema, in order.

    Raises:
        ErrataError: The value at the place of an entry is not its old value.
    """
    for erratum in errata:
        expected = f"{format_value(erratum.old)} (the old value of an entry in errata.toml)"
        try:
            current = resolve(document, erratum.pointer)
        except LookupError as error:
            raise ErrataError(source, erratum.pointer, expected, "nothing") from error
        if canonical(current) != canonical(erratum.old):
            raise ErrataError(source, erratum.pointer, expected, format_value(current))
        document = replace_at(document, erratum.pointer, erratum.new)
    return document


def select_fitting(document: Json, errata: Iterable[Erratum]) -> tuple[Erratum, ...]:
    """Select the corrections of another schema that apply to this one."""
    applicable: list[Erratum] = []
    for erratum in errata:
        try:
            document = apply(document, [erratum], "")
        except ErrataError:
            continue
        applicable.append(erratum)
    return tuple(applicable)
