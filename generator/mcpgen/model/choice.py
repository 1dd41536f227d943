"""The words of command-line options that choose parts, transports and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcpgen.errors import UsageError
from mcpgen.model.feature_table import FEATURES, SESSIONS
from mcpgen.model.parts import (
    ALL,
    NONE,
    PARTS,
    PEERS,
    TRANSPORTS,
    Selection,
    brought_features,
)
from mcpgen.model.runtime import RUNTIMES, Runtime
from mcpgen.names import (
    DECODINGS,
    EXTRA_POLICIES,
    LIBRARIES,
    MUTABILITIES,
    Decoding,
    Library,
    Mutability,
    is_class_name,
)


def selection(
    parts: Sequence[str] = (),
    transports: Sequence[str] = (),
    models: str = "",
    features: Sequence[str] = (),
    runtime: str = "",
    decoding: str = "",
    extra: Sequence[str] = (),
    mutability: str = "",
) -> Selection:
    """Make a selection from the words of command-line options.

    Args:
        parts: Names, or several with commas between them; none for all.
        transports: Likewise.
        models: The library, msgspec unless it is named.
        features: Names, or several with commas between them, which are added to the default ones;
            `all` or `none` to start from these; names with the prefix `-` to remove. The result
            has all of them after `none`, or what is removed after `all`.
        runtime: The form, vendored unless it is named.
        decoding: The kind of decoding, lenient unless it is named.
        extra: A policy for members that types do not have, and `TYPE=POLICY` for single types.
        mutability: Whether members of models can be assigned; frozen unless it is named.

    Raises:
        UsageError: A name is unknown, or the names contradict each other.
    """
    own_parts = _parse_choice("--parts", parts, PARTS)
    chosen = Selection(
        own_parts,
        _parse_choice("--transport", transports, TRANSPORTS),
        _library(models),
        _feature_names(features, own_parts),
        _form(runtime),
        _decoding(decoding),
        _extra(extra),
        _mutability(mutability, _library(models)),
    )
    peers = {ALL, *PEERS}.intersection(chosen.parts)
    if not peers and chosen.features == (NONE,):
        chosen = replace(chosen, features=(ALL,))  # there are none for types alone
    if chosen.transports != (ALL,) and not peers:
        raise UsageError(
            "expected --transport with the parts client, server or all, got it with"
            f" {', '.join(chosen.parts)}, which opens no connection"
        )
    return chosen


def changed_features(before: Sequence[str], words: Sequence[str]) -> tuple[str, ...]:
    """Apply words of `update --features` to the features of a package.

    Args:
        before: Its features, as in `Selection`.
        words: Names that replace the features, or names with the prefix `+` or `-` each.

    Raises:
        UsageError: Only some words have a prefix.
    """
    names = _split(words)
    signed = [name for name in names if name[:1] in _SIGNS]
    if not signed:
        return tuple(names or before)
    if len(signed) != len(names):
        raise UsageError(f"--features: expected + or - before each name, got {', '.join(names)}")
    return (*before, *names)


_SIGNS = ("+", "-")


def _split(words: Sequence[str]) -> list[str]:
    return [name.strip() for word in words for name in word.split(",")]


def default_features(parts: Sequence[str]) -> tuple[str, ...]:
    """The default features of a package with some parts."""
    has = {*PEERS} if ALL in parts else {*parts}
    return tuple(each.name for each in FEATURES if each.is_default and each.parts <= has)


def recorded_features(
    words: Sequence[str], parts: Sequence[str], transports: Sequence[str], *, has_sessions: bool
) -> tuple[str, ...]:
    """The features that a manifest of an earlier mcpgen lists, as in `Selection`.

    Args:
        words: The list, which begins with neither `none` nor `all`: the differences from the
            default features of that time.
        parts: The parts of the package.
        transports: Its transports.
        has_sessions: Whether it serves a revision with sessions over HTTP.
    """
    has = {*PEERS} if ALL in parts else {*parts}
    has |= {"stdio", "http"} if ALL in transports else {*transports}
    has |= {"http"} if "http+sse" in transports else set()
    has |= {SESSIONS} if has_sessions and "http" in has else set()
    kept = (
        each.name
        for each in FEATURES
        if (each.is_default or each.was_default) and each.parts <= has
        if f"-{each.name}" not in words
    )
    return (NONE, *kept, *(name for name in words if not name.startswith("-")))


def _feature_names(words: Sequence[str], parts: Sequence[str]) -> tuple[str, ...]:
    """The features of a selection, from words: `all`, `none`, and names, which may have a sign.

    The words start from the default features, from `all` or from `none`. Of two words for a
    feature, the second counts.

    Raises:
        UsageError: A name is unknown, a removed feature is included by another one, or a default
            feature is named that the parts can't have.
    """
    names = _split(words)
    defaults = default_features(parts)
    chosen = _named_features(names, defaults)
    for each in FEATURES:
        is_named = bool({each.name, f"+{each.name}"} & {*names})
        if each.is_default and is_named and each.name not in defaults:
            needs = " and ".join(sorted(each.parts))
            raise UsageError(f"--features: {each.name} needs {needs} in the package")
    brought = brought_features(chosen)
    for name in brought - chosen:
        if f"-{name}" in names:
            others = ", ".join(sorted(each for each in chosen if name in brought_features({each})))
            raise UsageError(f"--features: {name} comes with {others}, got -{name}")
    if ALL in names:
        return (ALL, *(f"-{each.name}" for each in FEATURES if each.name not in chosen | brought))
    return (NONE, *(each.name for each in FEATURES if each.name in chosen))


def _named_features(names: Sequence[str], defaults: Sequence[str]) -> set[str]:
    """The features that words choose, without those that these include.

    Args:
        names: The words.
        defaults: The features to start from without `all` or `none`.

    Raises:
        UsageError: A name is unknown.
    """
    bases = {ALL, NONE}.intersection(names)
    if len(bases) > 1:
        raise UsageError(f"--features: expected {ALL} or {NONE}, got both")
    started = {each.name for each in FEATURES} if ALL in bases else set(() if bases else defaults)
    is_chosen = {each.name: each.name in started for each in FEATURES}
    for name in names:
        feature = name[1:] if name[:1] in _SIGNS else name
        if feature in is_chosen:
            is_chosen[feature] = name[0] != "-"
        elif name not in bases:
            known = f"{', '.join(is_chosen)}, {ALL} or {NONE}"
            raise UsageError(f"--features: expected {known}, got {name!r}")
    return {name for name, present in is_chosen.items() if present}


def whole_features(words: Sequence[str]) -> frozenset[str]:
    """The features that words choose, with those that these include.

    Raises:
        UsageError: A name is unknown.
    """
    chosen = _named_features(_split(words), default_features((ALL,)))
    return frozenset(chosen | brought_features(chosen))


def short_words(names: Sequence[str], parts: Sequence[str] = (ALL,)) -> tuple[str, ...]:
    """The fewest words for the features of a package with some parts, as a user writes them."""
    defaults = default_features(parts)
    added = (name for name in names if name not in (NONE, *defaults))
    removed = (f"-{name}" for name in defaults if name not in names)
    return min(tuple(names), (*added, *removed), key=len)


def _parse_choice(option: str, words: Sequence[str], known: tuple[str, ...]) -> tuple[str, ...]:
    names = _split(words)
    for name in names:
        if name not in (*known, ALL):
            raise UsageError(f"{option}: expected {', '.join(known)} or {ALL}, got {name!r}")
    if not names or ALL in names:
        return (ALL,)
    return tuple(name for name in known if name in names)


def _library(word: str) -> Library:
    for known in LIBRARIES:
        if word in (known, ""):
            return known
    raise UsageError(f"--models: expected {' or '.join(LIBRARIES)}, got {word!r}")


def _form(word: str) -> Runtime:
    for known in RUNTIMES:
        if word in (known, ""):
            return known
    raise UsageError(f"--runtime: expected {' or '.join(RUNTIMES)}, got {word!r}")


def _decoding(word: str) -> Decoding:
    for known in DECODINGS:
        if word in (known, ""):
            return known
    raise UsageError(f"--decoding: expected {' or '.join(DECODINGS)}, got {word!r}")


def _mutability(word: str, models: Library) -> Mutability:
    for known in MUTABILITIES:
        if word in (known, ""):
            if known != MUTABILITIES[0] and models != "pydantic":
                raise UsageError(f"--mutability {word}: expected --models pydantic, got {models}")
            return known
    raise UsageError(f"--mutability: expected {' or '.join(MUTABILITIES)}, got {word!r}")


def _extra(words: Sequence[str]) -> tuple[str, ...]:
    """The policies of types, that of all others first; the last word for a type counts."""
    policies: dict[str, str] = {}
    for word in _split(words):
        name, _, policy = word.rpartition("=")
        if policy not in EXTRA_POLICIES or (name and not is_class_name(name)) or word[:1] == "=":
            known = ", ".join(EXTRA_POLICIES)
            raise UsageError(f"--extra: expected {known} or TYPE=POLICY, got {word!r}")
        policies[name] = policy
    rest = policies.pop("", EXTRA_POLICIES[0])
    named = [f"{name}={policies[name]}" for name in sorted(policies) if policies[name] != rest]
    return (*([rest] if rest != EXTRA_POLICIES[0] else ()), *named)
