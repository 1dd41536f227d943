"""The meaning of types and fields, in our own words (`schema/docs.toml`).

One entry serves every revision that has the type, but can be overridden for a revision. Pages are
those of the specification, below `docs/specification/<revision>/`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from mcpgen import paths
from mcpgen.errors import DocsError
from mcpgen.toml_records import Place, convert, read_toml

NAME = "docs.toml"

SITE = "https://modelcontextprotocol.io/specification"
"""The address of the published specification; pages are below it, by revision."""

_PARTS: dict[str, Any] = {"doc": "", "page": "", "fields": {}}


@dataclass(frozen=True)
class Text:
    """The documentation of one type.

    Attributes:
        doc: The description of the type; may be empty.
        page: Topic of the page about the type; may be empty.
        fields: Its fields, by wire name.
    """

    doc: str
    page: str
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Entry:
    """The documentation of a type, with overrides of some revisions."""

    text: Text
    revisions: Mapping[str, Text]


@dataclass(frozen=True)
class Docs:
    """The documentation of all types.

    Attributes:
        pages: Path of a topic's page by revision; the key `default` stands for all others.
        types: Entries by the name of the type.
    """

    pages: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    types: Mapping[str, Entry] = field(default_factory=dict[str, Entry])

    def type_doc(self, revision: str, name: str) -> str:
        """The documentation of a type, or an empty text."""
        return next((text.doc for text in self._texts(revision, name) if text.doc), "")

    def field_doc(self, revision: str, name: str, wire_name: str) -> str:
        """The documentation of a field of a type, or an empty text."""
        texts = self._texts(revision, name)
        return next((text.fields[wire_name] for text in texts if wire_name in text.fields), "")

    def page(self, revision: str, name: str) -> str:
        """The page about a type, such as `server/tools`, or an empty text."""
        topic = next((text.page for text in self._texts(revision, name) if text.page), "")
        return self.page_of_topic(revision, topic)

    def page_of_topic(self, revision: str, topic: str) -> str:
        """The page about a topic, or an empty text."""
        return _page_in(self.pages.get(topic, {}), revision)

    def _texts(self, revision: str, name: str) -> tuple[Text, ...]:
        """The texts about a type in a revision: the revision's own, then the shared one."""
        entry = self.types.get(name)
        if entry is None:
            return ()
        own = entry.revisions.get(revision)
        return (entry.text,) if own is None else (own, entry.text)


_NOTHING = Text("", "", {})


def address(revision: str, page: str) -> str:
    """The address of a page of a revision."""
    return f"{SITE}/{revision}/{page.removesuffix('/index')}"


def load() -> Docs:
    """The documentation of mcpgen, and that of the user's folder for its revisions.

    Raises:
        DocsError: The file is malformed.
    """
    shared = paths.schema_dir() / NAME
    docs = (
        _load_cached(shared, shared.stat().st_mtime_ns) if shared.is_file() else load_file(shared)
    )
    own = paths.own_schema_dir()
    if own is None or not (own / NAME).is_file():
        return docs
    names = [folder.name for folder in own.iterdir() if folder.is_dir()]
    return _with_own(docs, load_file(own / NAME, docs.pages), names)


@lru_cache(1)
def _load_cached(path: Path, changed_at: int) -> Docs:
    """The documentation in a file, cached by modification time."""
    return load_file(path)


def _with_own(docs: Docs, own: Docs, revisions: Sequence[str]) -> Docs:
    """Documentation in which the user's takes precedence, for some revisions only."""
    pages = dict(docs.pages)
    for topic, paths_of_topic in own.pages.items():
        added = {name: path for name in revisions if (path := _page_in(paths_of_topic, name))}
        pages[topic] = {**pages.get(topic, {}), **added}
    types = dict(docs.types)
    for name, entry in own.types.items():
        below = types.get(name, Entry(_NOTHING, {}))
        special = {
            revision: _merge(
                _merge(entry.revisions.get(revision, _NOTHING), entry.text),
                below.revisions.get(revision, _NOTHING),
            )
            for revision in revisions
        }
        types[name] = Entry(below.text, {**below.revisions, **special})
    return Docs(pages, types)


def _page_in(by_revision: Mapping[str, str], revision: str) -> str:
    return by_revision.get(revision, by_revision.get("default", ""))


def _merge(above: Text, below: Text) -> Text:
    """A text whose empty parts are filled from another one."""
    fields = {**below.fields, **above.fields}
    return Text(above.doc or below.doc, above.page or below.page, fields)


def load_file(path: Path, topics: Collection[str] = ()) -> Docs:
    """The documentation in a file.

    Args:
        path: The file.
        topics: Topics that it may name in addition to its own.

    Raises:
        DocsError: The file is malformed.
    """
    table, place = read_toml(path, DocsError)
    for key in table.keys() - {"pages", "types"}:
        raise place.at(key).error("one of the tables pages, types", key)
    types = place.at("types").table(table.get("types", {}))
    docs = Docs(
        pages=_pages(table.get("pages", {}), place.at("pages")),
        types={name: _entry(row, place.at("types").at(name)) for name, row in types.items()},
    )
    for name, entry in docs.types.items():
        for text in (entry.text, *entry.revisions.values()):
            if text.page and text.page not in {*docs.pages, *topics}:
                at = place.at("types").at(name).at("page")
                raise at.error("a topic of [pages]", text.page)
    return docs


def _pages(table: Any, place: Place) -> dict[str, Mapping[str, str]]:
    pages: dict[str, Mapping[str, str]] = {}
    for topic, row in place.table(table).items():
        by_revision = {"default": row} if isinstance(row, str) else place.at(topic).table(row)
        for revision, path in by_revision.items():
            if not isinstance(path, str):
                raise place.at(topic).at(revision).error("a path", path)
        pages[topic] = by_revision
    return pages


def _entry(row: Any, place: Place) -> Entry:
    table = dict(place.table(row))
    special = place.at("revisions")
    revisions = special.table(table.pop("revisions", {}))
    return Entry(
        text=convert({**_PARTS, **table}, Text, place),
        revisions={
            revision: convert(
                {**_PARTS, **special.at(revision).table(text)}, Text, special.at(revision)
            )
            for revision, text in revisions.items()
        },
    )
