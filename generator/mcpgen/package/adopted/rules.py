"""The rules of a package and the file that holds them, for example `acme_types.adopted.toml`.

The file is the user's own: mcpgen only appends to it. The order of the rules counts, since each
rule sees a module as the rules before it left it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from mcpgen import paths
from mcpgen.errors import AdoptedError, UsageError, safe_text
from mcpgen.input_files import check_json, read_text
from mcpgen.package import manifest
from mcpgen.paths import relative_path
from mcpgen.toml_records import MAX_BYTES, Place, convert, parsed_toml, toml_key, toml_text

SUFFIX = ".adopted.toml"
"""What the name of the file ends in, behind that of the package."""

MAX_RULES = 500
"""Rules of one package, at most: each is replayed by itself."""

_HEAD = """\
# Edits of generated modules, replayed on every generation in this order; see docs/adopting.md of
# mcpgen. This file is yours: edit it, then run mcpgen update.
"""

Kind: TypeAlias = Literal["docstring", "default", "add", "rename"]


@dataclass(frozen=True)
class RuleText:
    """One rule as its table holds it.

    Attributes:
        kind: What is changed: a docstring, the default of a parameter or a member, a further
            function or method, a name.
        module: Path of the module within the package.
        target: Qualified name of the class, function, method or member; empty for the module.
        parameter: The parameter whose default is meant.
        old: What mcpgen writes there: the text of a docstring, or the expression of a default;
            `None` where it writes none, and for additions and renamings.
        new: What takes its place: a text, an expression, the source of a definition, a name.
    """

    kind: Kind
    module: str
    new: str
    target: str = ""
    parameter: str = ""
    old: str | None = None


@dataclass(frozen=True)
class Rule:
    """A rule under its name.

    Attributes:
        name: Its name within the file.
        text: What it says.
        place: Where it stands, for errors.
    """

    name: str
    text: RuleText
    place: Place

    @property
    def what(self) -> str:
        """What the rule is about, such as `default of Client.ping(timeout)`."""
        return described(self.text)


@dataclass(frozen=True)
class AdoptedFile:
    """The file with the rules of a package.

    Attributes:
        path: Where it lies.
        recorded: The same as the manifest records it: from the package's directory.
        digest: SHA-256 of its text.
        text: What it held when it was read.
    """

    path: Path
    recorded: str
    digest: str
    text: str = field(repr=False, compare=False)

    @classmethod
    def of(cls, path: Path, directory: Path, text: str) -> AdoptedFile:
        """The file of a package in a directory, with a text."""
        recorded = relative_path(path.resolve(), directory.resolve())
        return cls(path, recorded, manifest.fingerprint(text), text)

    def rules(self) -> tuple[Rule, ...]:
        """The rules, in order.

        Raises:
            AdoptedError: The file is no TOML, or a rule is malformed.
        """
        return parsed(self.text, paths.shown_path(self.path))


@dataclass(frozen=True)
class _Document:
    rules: Mapping[str, RuleText] = field(default_factory=dict[str, RuleText])


def described(rule: RuleText) -> str:
    """What a rule is about, in words."""
    target = rule.target or "the module"
    match rule.kind:
        case "docstring":
            return f"docstring of {target}"
        case "default":
            return (
                f"default of {target}({rule.parameter})"
                if rule.parameter
                else f"default of {target}"
            )
        case "add":
            return f"addition of {target}"
        case "rename":
            return f"renaming of {target} to {safe_text(rule.new, 80)}"


def read(path: Path, directory: Path) -> AdoptedFile:
    """The file with the rules of a package in a directory.

    Raises:
        UsageError: There is no such file.
        AdoptedError: It cannot be read as text.
    """
    if not path.is_file():
        raise UsageError(f"{path}: expected a file with adopted rules, got none")
    return AdoptedFile.of(path, directory, read_text(path, AdoptedError, "TOML text", MAX_BYTES))


def recorded_path(directory: Path, recorded: str) -> Path:
    """Where a manifest says that the rules of a package are, from here if they lie below.

    Raises:
        UsageError: There is no file.
    """
    place = paths.recorded_place(directory, recorded)
    if not place.is_file():
        raise UsageError(
            f"{directory}: was made with the rules in {safe_text(str(place))}, which are not"
            " there: name them with --adopted FILE"
        )
    return place


def parsed(text: str, source: str) -> tuple[Rule, ...]:
    """The rules in the text of a file.

    Raises:
        AdoptedError: The text is no TOML, or a rule is malformed.
    """
    table = parsed_toml(text, source, AdoptedError)
    check_json(table, source, AdoptedError)
    place = Place(source, AdoptedError)
    document: _Document = convert(table, _Document, place)
    if len(document.rules) > MAX_RULES:
        raise place.at("rules").error(f"at most {MAX_RULES} rules", f"{len(document.rules)} rules")
    rules = tuple(
        Rule(name, rule, place.at("rules").at(name)) for name, rule in document.rules.items()
    )
    for rule in rules:
        _check(rule)
    return rules


def _check(rule: Rule) -> None:
    """Refuse paths and names that cannot be those of a package, and keys without effect."""
    text, place = rule.text, rule.place
    if not manifest.is_file_path(text.module) or not text.module.endswith(".py"):
        raise place.at("module").error("the path of a module within the package", text.module)
    names = text.target.split(".") if text.target else []
    if not all(name.isidentifier() for name in names):
        raise place.at("target").error("names with dots between them", text.target)
    if not names and text.kind != "docstring":
        raise place.error("the key target", sorted(("kind", "module", "new")))
    if text.parameter and (text.kind != "default" or not text.parameter.isidentifier()):
        raise place.at("parameter").error("the name of a parameter, for a default", text.parameter)
    if text.old is not None and text.kind in ("add", "rename"):
        raise place.at("old").error(f"no old value for a rule of the kind {text.kind}", text.old)


def appended(before: str, rules: Iterable[tuple[str, RuleText]]) -> str:
    """The text of a file with further rules at its end."""
    parts = [before.rstrip("\n") + "\n" if before.strip() else _HEAD]
    for name, rule in rules:
        lines = [f"[rules.{toml_key(name)}]"]
        for key in ("kind", "module", "target", "parameter", "old", "new"):
            value: str | None = getattr(rule, key)
            if value is not None and (value or key in ("old", "new")):
                lines.append(f"{key} = {toml_text(value)}")
        parts.append("\n" + "\n".join(lines) + "\n")
    return "".join(parts)


def named(rule: RuleText, taken: Iterable[str]) -> str:
    """A name for a rule that no other has: its target and its kind."""
    stem = rule.module.rpartition("/")[2].removesuffix(".py").strip("_")
    words = [*(rule.target.split(".") if rule.target else [stem]), rule.parameter, rule.kind]
    name = "-".join(word for word in words if word)
    others = {*taken}
    if name not in others:
        return name
    number = next(n for n in range(2, len(others) + 3) if f"{name}-{n}" not in others)
    return f"{name}-{number}"
