"""The parts and features of a package: the choices of a user, and their results.

A part includes those before it: `types` < `protocol` < `client`, `server`. A feature is part of a
client or a server only if it was chosen. The modules of a choice follow from its public names and
the imports of their modules; see `closure`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from mcpgen.errors import UsageError
from mcpgen.model.feature_table import (
    ANY_EXTENSION,
    BASES,
    FEATURES,
    SESSIONS,
    TASKS,
    TASKS_EXTENSION,
    Base,
    Feature,
)
from mcpgen.model.runtime import Runtime, check_form
from mcpgen.names import EXTRA_POLICIES, Decoding, ExtraPolicy, Library, Mutability

if TYPE_CHECKING:  # a mere check of a package need not load it
    from mcpgen.schema.facts import Facts

_OF_SERVER = ("Server.", "tool.", "asgi.", "run.", "run_async.", "run_workers.")
"""The beginnings of options of `Server` and its methods."""

PARTS = ("types", "protocol", "client", "server")
TRANSPORTS = ("stdio", "http", "http+sse")
ALL = "all"
NONE = "none"
USED = "used"
"""Words of `--features` that stand for several; `used` for what a program uses."""


PEERS = ("client", "server")
"""The parts that open connections."""


@dataclass(frozen=True)
class Selection:
    """The choices of a user, in the order of the tables here; `("all",)` for no limit.

    Attributes:
        parts: The parts.
        transports: The transports.
        models: The library that models are written for.
        features: `none` and the features, or `all` and the removed ones, with the prefix `-`.
        runtime: The form.
        decoding: Whether what decodes is more than what the schema allows.
        extra: What becomes of members that a type does not have: a policy for all types, and
            `TYPE=POLICY` for single ones; empty to ignore them.
        mutability: Whether members of models can be assigned.
    """

    parts: tuple[str, ...] = (ALL,)
    transports: tuple[str, ...] = (ALL,)
    models: Library = "msgspec"
    features: tuple[str, ...] = (ALL,)
    runtime: Runtime = "vendored"
    decoding: Decoding = "lenient"
    extra: tuple[str, ...] = ()
    mutability: Mutability = "frozen"


EVERYTHING = Selection()


@dataclass(frozen=True)
class Features:
    """The contents of a package: the part of a selection that its revisions support.

    Attributes:
        protocol: The connection without I/O.
        client: The client.
        server: The server.
        stdio: Standard streams.
        http: Streamable HTTP.
        http_sse: HTTP+SSE.
        http_sessions: Streamable HTTP with sessions.
        http_stateless: Streamable HTTP without sessions.
        handshakes: Sessions that a handshake opens.
        per_request: Requests that state their revision themselves.
        param_headers: Headers that repeat arguments of a tool.
        draft_headers: The headers of a draft, in sessions.
        cache_hints: Results with a lifetime in a cache.
        several: More than one revision.
        tasks: Tasks, in a revision or in an extension.
        tasks_both_ways: Tasks that either side may request, in a revision.
        extensions: Identifiers of the extensions beside its revisions.
        models: The library of its models.
        chosen: The features by name, including those of other features.
        installed: Whether it imports its runtime, which has all features except rendered ones.
        decoding: Whether what decodes is more than what the schema allows.
        extra: As in `Selection`.
        mutability: As there.
    """

    protocol: bool
    client: bool
    server: bool
    stdio: bool
    http: bool
    http_sse: bool
    http_sessions: bool
    http_stateless: bool
    handshakes: bool
    per_request: bool
    param_headers: bool
    draft_headers: bool
    cache_hints: bool
    several: bool
    tasks: bool
    tasks_both_ways: bool
    extensions: frozenset[str]
    models: Library
    chosen: frozenset[str]
    installed: bool
    decoding: Decoding = "lenient"
    extra: tuple[str, ...] = ()
    mutability: Mutability = "frozen"

    @property
    def is_runtime(self) -> bool:
        """Whether packages may import this one as their runtime, since it has everything."""
        parts = (self.client, self.server, self.stdio, self.http_sse, self.http_sessions)
        every = self.chosen.issuperset(each.name for each in FEATURES)
        has_all = all(parts) and self.http_stateless and self.several and every
        return has_all and self.models == "msgspec" and not self.installed

    def extra_policy(self, name: str) -> ExtraPolicy:
        """The treatment of members that a type does not have."""
        policies = {word.rpartition("=")[0]: word.rpartition("=")[2] for word in self.extra}
        chosen = policies.get(name, policies.get("", ""))
        known: dict[str, ExtraPolicy] = {each: each for each in EXTRA_POLICIES}
        return known.get(chosen, EXTRA_POLICIES[0])

    @property
    def both_lifecycles(self) -> bool:
        """Whether its clients negotiate with servers of either lifecycle."""
        return self.handshakes and self.per_request

    @property
    def any_http(self) -> bool:
        """Whether one of the transports is over HTTP."""
        return self.http or self.http_sse

    @cached_property
    def absent(self) -> tuple[Feature, ...]:
        """The features that are available to this selection but were not chosen."""
        if not (self.client or self.server):
            return ()
        has = {
            "client": self.client,
            "server": self.server,
            "http": self.any_http,
            "stdio": self.stdio,
            SESSIONS: self.http_sessions,
            TASKS: self.tasks,
        }
        return tuple(
            each
            for each in FEATURES
            if each.name not in self.chosen and all(has[part] for part in each.parts)
        )

    def bases(self, of: str) -> tuple[Base, ...]:
        """The bases that features add to a class of a page: those of later features first."""
        rows = [each for each in BASES if each.of == of]
        for feature in FEATURES:
            if feature.name in self.chosen:
                rows += (each for each in feature.bases if each.of == of)
        parts = {"", *self.parts, self._transports, *(["http+sse"] if self.http_sse else [])}
        return tuple(dict.fromkeys(each for each in reversed(rows) if each.needs in parts))

    @property
    def _transports(self) -> str:
        """The transports of the package, as bases need them."""
        if self.stdio and self.any_http:
            return "stdio and http"
        return "stdio alone" if self.stdio else "http alone" if self.any_http else ""

    def base_names(self, of: str) -> tuple[str, ...]:
        """The names of such classes."""
        return tuple(each.name for each in self.bases(of))

    def imported_bases(self, room: str, *classes: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The modules of the bases of classes of a page, each with the names of these, sorted.

        The modules are those of relative imports of the page.

        Args:
            room: The folder of the page.
            classes: The classes.
        """
        names: dict[str, set[str]] = {}
        for of in classes:
            for base in self.bases(of):
                names.setdefault(base.module, set()).add(base.name)
        places = {module.removeprefix(room): module for module in names}
        up = "." * (room.count(".") + 2)
        places = {place if place[0] == "." else f"{up}{place}": places[place] for place in places}
        return tuple((place, tuple(sorted(names[places[place]]))) for place in sorted(places))

    @property
    def serve_options(self) -> tuple[tuple[str, str], ...]:
        """The functions that add options of the command `serve`: of each, its module and name."""
        functions = {
            ("serve_command", "add_stdio_options"): self.stdio,
            ("serve_http", "add_options"): self.any_http,
            ("serve_http", "add_sse_option"): self.http_sse,
            ("serve_reload", "add_options"): "reload" in self.chosen,
            ("serve_shared", "add_options"): "shared" in self.chosen,
            ("serve_workers", "add_options"): "workers" in self.chosen,
        }
        return tuple(function for function, is_chosen in functions.items() if is_chosen)

    @property
    def serve_modules(self) -> tuple[str, ...]:
        """The modules of `server.commands` with these functions."""
        return tuple(
            dict.fromkeys(("serve_command", *(module for module, _ in self.serve_options)))
        )

    @property
    def mutual_tasks(self) -> bool:
        """Whether clients and servers request tasks from each other."""
        return self.tasks_both_ways and "tasks" in self.chosen

    def lacks(self, name: str) -> bool:
        """Whether the feature is available to this selection but was not chosen."""
        return any(each.name == name for each in self.absent)

    def absent_members(self, owner: str) -> Mapping[str, str]:
        """Members of a public class that absent features would add, each with its feature.

        Args:
            owner: `server`, `client` or `context`.
        """
        return self._absent_rows(lambda each: getattr(each, f"{owner}_members"))

    @property
    def absent_options(self) -> Mapping[str, str]:
        """Options that absent features would add, as `FUNCTION.KEYWORD`, each with its feature."""
        return self._absent_rows(lambda each: each.options)

    @property
    def absent_of_server(self) -> Mapping[str, str]:
        """Members of `Server`, and options of it and its decorators, that absent features add."""
        options = self.absent_options.items()
        own = {name: feature for name, feature in options if name.startswith(_OF_SERVER)}
        return {**self.absent_members("server"), **own}

    @property
    def absent_of_client(self) -> Mapping[str, str]:
        """Members of clients, and options of `connect` and methods, that absent features add."""
        options = self.absent_options.items()
        own = {name: each for name, each in options if name.startswith(("connect.", "call_tool."))}
        return {**self.absent_members("client"), **own}

    def _absent_rows(self, names: Callable[[Feature], Iterable[str]]) -> dict[str, str]:
        """Names that absent features would add, each with the first of these features."""
        present = {each for row in FEATURES if row.name in self.chosen for each in names(row)}
        rows = ((each, row.name) for row in reversed(self.absent) for each in names(row))
        return {each: feature for each, feature in rows if each not in present}

    @cached_property
    def parts(self) -> frozenset[str]:
        """The parts by name, including those within others.

        The connection is exported if there is no client or server. Parts of an extension have its
        identifier, as in `com.example/paint+client`.
        """
        peer = self.client or self.server
        has = {
            "types": True,
            "protocol": self.protocol,
            "client": self.client,
            "server": self.server,
            "peer": peer,
            "connection": self.protocol and not peer,
            "testing": self.client and self.server,
            "several": self.several,
            "partial": bool(self.absent),
            "runtime": self.is_runtime,
            "http": self.any_http,
            "stdio": self.stdio,
            "client+http": self.client and self.any_http,
            "client+per_request": self.client and self.per_request,
            "client+stdio": self.client and self.stdio,
            "server+http": self.server and self.any_http,
            "cache_hints": self.server and self.cache_hints,
            "draft_headers": self.server and self.draft_headers and self.http_sessions,
            "param_headers": self.server and (self.param_headers or self.draft_headers),
        }
        beside = {f"{each}+{name}": has[name] for each in self.extensions for name in PEERS}
        own = (name for name, present in {**has, **beside}.items() if present)
        return self.parts_of(self.chosen).union(own)

    def parts_of(self, names: Iterable[str]) -> frozenset[str]:
        """Features, and the sides of each that a package has, as in `auth+client`.

        Parts of blocking clients are `groups+sync` and the like; those for tasks that either side
        may request `tasks+mutual+client`.
        """
        own = set(names)
        sides = [name for name in PEERS if getattr(self, name)]
        beside = (*sides, *own & {"sync"})
        parts = {part for each in own for part in (each, *(f"{each}+{b}" for b in beside))}
        if "tasks" in parts and self.tasks_both_ways:
            parts.update(f"tasks+mutual+{side}" for side in sides)
        return frozenset(parts)


def brought_features(names: Iterable[str]) -> set[str]:
    """The features that some features include, directly or through others."""
    brings = {each.name: each.brings for each in FEATURES}
    brought: set[str] = set()
    waiting = [name for each in names for name in brings[each]]
    while waiting:
        name = waiting.pop()
        if name not in brought:
            brought.add(name)
            waiting += brings[name]
    return brought


def features(
    chosen: Selection, facts: Sequence[Facts], extensions: Collection[str] = ()
) -> Features:
    """The contents of a package of some revisions.

    Args:
        chosen: The selection.
        facts: The facts of each revision.
        extensions: Identifiers of the extensions beside them.

    Raises:
        UsageError: No revision has a transport that was chosen, or the package lacks the part of a
            feature.
    """
    transports = [row.transports for row in facts]
    available = {
        "stdio": any(row.stdio for row in transports),
        "http": any(row.streamable_http for row in transports),
        "http+sse": any(row.http_sse for row in transports),
    }
    wanted = TRANSPORTS if chosen.transports == (ALL,) else chosen.transports
    if chosen.transports != (ALL,):
        for name in wanted:
            if not available[name]:
                names = (
                    ", ".join(known for known, present in available.items() if present) or "none"
                )
                raise UsageError(
                    f"--transport: expected one that a chosen revision has ({names}), got {name!r}"
                )
    parts = frozenset(PARTS if chosen.parts == (ALL,) else chosen.parts)
    peer = bool(parts.intersection(PEERS))
    http_sse = peer and available["http+sse"] and "http+sse" in wanted
    # HTTP+SSE includes Streamable HTTP if a revision has it: the two share their modules.
    http = peer and available["http"] and ("http" in wanted or http_sse)
    both_ways = any(row.meta.related_task is not None for row in facts)
    package = Features(
        protocol=peer or "protocol" in parts,
        client="client" in parts,
        server="server" in parts,
        stdio=peer and available["stdio"] and "stdio" in wanted,
        http=http,
        http_sse=http_sse,
        http_sessions=http and any(row.streamable_http == "session" for row in transports),
        http_stateless=http and any(row.streamable_http == "stateless" for row in transports),
        handshakes=any(row.meta.protocol_version is None for row in facts),
        per_request=any(row.meta.protocol_version is not None for row in facts),
        param_headers=http and any(row.headers.param_prefix is not None for row in facts),
        draft_headers=http and any(row.draft.method is not None for row in facts),
        cache_hints=any(row.default("*", "ttlMs") is not None for row in facts),
        several=len(facts) > 1,
        tasks=TASKS_EXTENSION in extensions or both_ways,
        tasks_both_ways=both_ways,
        extensions=frozenset(extensions),
        models=chosen.models,
        chosen=frozenset(),
        installed=chosen.runtime == "installed",
        decoding=chosen.decoding,
        extra=chosen.extra,
        mutability=chosen.mutability,
    )
    check_form(chosen.runtime, chosen.models, chosen.decoding)
    own = _chosen_features(chosen.features, package)
    if package.installed:
        own |= {each.name for each in package.absent if not each.is_rendered}
    return replace(package, chosen=own)


def _chosen_features(names: Sequence[str], has: Features) -> frozenset[str]:
    """The features of a package by name, including those of other features."""
    possible = {each.name: each for each in has.absent}
    added = [name for name in names if name not in (ALL, NONE) and name[0] != "-"]
    for feature in FEATURES:
        if feature.name in added and feature.name not in possible:
            needs = " and ".join(sorted(feature.parts)) or "client or server"
            raise UsageError(f"--features: {feature.name} needs {needs} in the package")
    own = set(possible) if ALL in names else set[str]()
    extensions = has.extensions | {ANY_EXTENSION} if has.extensions else has.extensions
    own = own.difference(name[1:] for name in names if name[0] == "-").union(added)
    own |= {name for name, each in possible.items() if each.extensions & extensions}
    return frozenset(own | (brought_features(own) & possible.keys()))
