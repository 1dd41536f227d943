"""`mcpgen adopt`: the hand edits of a package become rules, and the package is written by these.

Edits can be told from other differences only while the package is otherwise what mcpgen writes, so
anything else that changed since comes first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mcpgen.console import Console
from mcpgen.errors import McpgenError, OutputError, UsageError, safe_text
from mcpgen.package import commands, manifest, output, package_cache
from mcpgen.package import directory as directories
from mcpgen.package.adopted import edits as adopted_edits
from mcpgen.package.adopted import replay, rules
from mcpgen.package.adopted.edits import Edits, Refusal
from mcpgen.package.adopted.rules import AdoptedFile, RuleText
from mcpgen.package.build_request import BuildRequest
from mcpgen.package.commands import Wanted, count_of
from mcpgen.render import tree
from mcpgen.toml_records import MAX_BYTES

_TEXT = 400
"""Characters of a refusal that are shown."""


@dataclass(frozen=True)
class _Edited:
    """A package on disk, beside what mcpgen writes.

    Attributes:
        directory: The package.
        request: What it is made from, the rules it has already included.
        written: The files as mcpgen writes them.
        paths: The files that differ or are missing.
    """

    directory: Path
    request: BuildRequest
    written: dict[str, str]
    paths: tuple[str, ...]


def adopt(console: Console, directory: Path, file: Path | None, *, partial: bool) -> bool:
    """Make rules of the edits of a package; says which, and why others become none.

    Args:
        console: Where that is said.
        directory: The package.
        file: Where the rules are kept, if the package has none yet; `NAME.adopted.toml` beside the
            package by default.
        partial: Adopt what can be, and leave the modules with other edits as they are.

    Returns:
        Whether every edit has become a rule.

    Raises:
        McpgenError: The directory is not a package of mcpgen's, something else than edits changed,
            or a file cannot be written; nothing is written then.
    """
    package = _edited(directory, file)
    if not package.paths:
        _record(console, directory, None, [], [])
        console.summary(f"{directory}: no edits to adopt")
        return True
    found = [_edits_of(package, path) for path in package.paths]
    place = _place(package, file)
    plan = _planned(package, place, found)
    refusals = [refusal for each in found for refusal in each.refusals]
    for refusal in refusals:
        console.summary(f"refused: {safe_text(str(refusal), _TEXT)}")
    if refusals and not (partial and plan.rules):
        _record(console, directory, None, (), refusals)
        what = (
            "1 edit becomes no rule" if len(refusals) == 1 else f"{len(refusals)} become no rules"
        )
        more = "; --partial adopts the others" if plan.rules else ""
        console.summary(f"{directory}: nothing was adopted: {what}{more}")
        return False
    left = sorted({refusal.module for refusal in refusals})
    _write(package, plan, left)
    for name, rule in plan.rules:
        console.summary(f"adopted: {name}: {rules.described(rule)} in {rule.module}")
    _record(console, directory, plan.target, plan.rules, refusals)
    if plan.target is not None and plan.rules:
        console.summary(f"{plan.target.path}: {count_of(len(plan.rules), 'rule')} added")
    else:
        console.summary(f"{directory}: only its layout was edited; it was written as before")
    if left:
        console.summary(f"{directory}: left as edited: {', '.join(left)}")
    return not refusals


def _ignore(note: str) -> None:
    """Notes were given when the package was generated."""


def _edited(directory: Path, file: Path | None) -> _Edited:
    """Compare a package with what mcpgen writes."""
    record = directories.read_manifest(directory)
    if record is None:
        raise OutputError(f"{directory}: expected a package of mcpgen's, got no {manifest.NAME}")
    request = commands.updated(Wanted(), directory)
    present = request.adopted.path if request.adopted is not None else None
    if present is not None and file is not None and file.resolve() != present.resolve():
        raise UsageError(
            f"{directory}: expected no other file of rules than {present}, which it has already,"
            f" got {file}"
        )
    if present is not None and file is None:
        _expect_near(present, directory)
    changed = output.edited(directory, record.files)
    missing = [path for path in record.files if not (directory / path).is_file()]
    if not changed and not missing:
        return _Edited(directory, request, {}, ())
    written = package_cache.built(request, _ignore)
    for path in sorted({*written, *record.files} - {manifest.NAME}):
        now = manifest.fingerprint(written[path]) if path in written else ""
        if now != record.files.get(path):
            raise UsageError(
                f"{directory}: expected a package that differs by edits alone, but {path} would be"
                " written otherwise: mcpgen, a schema, a template or a rule changed since; undo"
                " that to adopt, then update"
            )
    return _Edited(directory, request, written, tuple(sorted([*changed, *missing])))


def _expect_near(path: Path, directory: Path) -> None:
    """Refuse to write to a file elsewhere that only the record of a package names."""
    place = path.resolve()
    near = (Path.cwd().resolve(), directory.resolve().parent)
    if not any(place.is_relative_to(folder) for folder in near):
        raise UsageError(
            f"{directory}: expected its rules beside it or below the current directory, got {path};"
            f" to write there, name it: mcpgen adopt {directory} --adopted {path}"
        )


def _edits_of(package: _Edited, path: str) -> Edits:
    """The edits of one file."""
    place = package.directory / path
    found = Edits(path)
    own = "put the change into a module of your own, or subclass"
    if not place.is_file():
        found.refuse(0, "the file", "was removed", "select fewer parts instead")
    elif not path.endswith(".py"):
        found.refuse(0, "the file", "is no module", "put it back")
    elif tree.is_copied(path):
        found.refuse(0, "the file", "is the same in every package, not rendered", own)
    else:
        try:
            text = place.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise OutputError(f"{place}: expected text in UTF-8, got other bytes") from None
        movable = _additions(package, path)
        return adopted_edits.compared(path, package.written[path], text, _uses(package), movable)
    return found


def _uses(package: _Edited) -> Callable[[str], str]:
    """Says where the package as mcpgen writes it uses a name."""
    return functools.partial(replay.used, package.written)


def _place(package: _Edited, file: Path | None) -> AdoptedFile:
    """The file of rules, which need not be there yet."""
    if package.request.adopted is not None:
        return package.request.adopted
    directory = package.directory
    path = file or directory.with_name(directory.resolve().name + rules.SUFFIX)
    if path.exists():
        return _unused(rules.read(path, directory))
    if path.resolve().is_relative_to(directory.resolve()):
        raise UsageError(f"{path}: expected a file outside of the package")
    return AdoptedFile.of(path, directory, "")


def _unused(file: AdoptedFile) -> AdoptedFile:
    """Refuse a file with rules that the package was not made with."""
    if file.rules():
        raise UsageError(
            f"{file.path}: expected no rules that the package is made without, got"
            f" {count_of(len(file.rules()), 'rule')}; mcpgen update --force --adopted {file.path}"
            " replays them, in place of the edits"
        )
    return file


def _named(place: AdoptedFile, texts: Sequence[RuleText]) -> list[tuple[str, RuleText]]:
    """Names for new rules, none of which the file has already."""
    taken = {rule.name for rule in place.rules()}
    found: list[tuple[str, RuleText]] = []
    for text in texts:
        name = rules.named(text, taken)
        taken.add(name)
        found.append((name, text))
    return found


@dataclass(frozen=True)
class _Plan:
    """What is written.

    Attributes:
        rules: The new rules by name, in order.
        target: The file of rules with them; `None` if the package has no rules.
        files: The package by these rules.
    """

    rules: Sequence[tuple[str, RuleText]]
    target: AdoptedFile | None
    files: dict[str, str]


def _planned(package: _Edited, place: AdoptedFile, found: Sequence[Edits]) -> _Plan:
    """Build the package by the new rules. Edits that these would lose are refused instead."""
    while True:
        new_rules = _named(place, [rule for each in found for rule in each.rules])
        target = package.request.adopted
        if new_rules:
            text = rules.appended(place.text, new_rules)
            _expect_readable(place, text, len(new_rules))
            target = AdoptedFile.of(place.path, package.directory, text)
        files = package_cache.built(replace(package.request, adopted=target), _ignore)
        lost = _not_reproduced(package, found, files)
        if not lost:
            return _Plan(new_rules, target, files)
        for edits, refusal in lost:
            edits.refusals.append(refusal)
            edits.rules.clear()


def _expect_readable(place: AdoptedFile, text: str, count: int) -> None:
    """Refuse rules that would make a file that is too large to be read again."""
    if len(text.encode()) > MAX_BYTES or len(place.rules()) + count > rules.MAX_RULES:
        raise UsageError(
            f"{place.path}: expected at most {rules.MAX_RULES} rules and {MAX_BYTES} bytes, got"
            " more: put larger additions into a module of your own"
        )


def _not_reproduced(
    package: _Edited, found: Sequence[Edits], files: dict[str, str]
) -> list[tuple[Edits, Refusal]]:
    """The modules whose edits the new rules would lose, each with the first that would be."""
    lost: list[tuple[Edits, Refusal]] = []
    for each in found:
        if each.refusals:
            continue
        text = (package.directory / each.module).read_text(encoding="utf-8")
        added = [rule.target for rule in each.rules if rule.kind == "add"]
        movable = {*added, *_additions(package, each.module)}
        again = adopted_edits.compared(
            each.module, files[each.module], text, _uses(package), movable
        )
        what = [rules.described(rule) for rule in again.rules]
        what += [refusal.what for refusal in again.refusals]
        if what:
            reason = "the rule would not give the same text"
            instead = "write it without tabs and triple quotes"
            lost.append((each, Refusal(each.module, 0, what[0], reason, instead)))
    return lost


def _additions(package: _Edited, module: str) -> set[str]:
    """The functions that rules of the package add to a module."""
    adopted = package.request.adopted
    texts = [rule.text for rule in adopted.rules()] if adopted is not None else []
    return {text.target for text in texts if text.kind == "add" and text.module == module}


def _write(package: _Edited, plan: _Plan, left: Sequence[str]) -> None:
    """Write the rules and the package, or neither. Modules that are left keep their text."""
    files = dict(plan.files)
    for name in left:
        place = package.directory / name
        if place.is_file():
            files[name] = place.read_text(encoding="utf-8")
        else:
            files.pop(name, None)
    if plan.target is None or not plan.rules:
        output.write(package.directory, files, force=True)
        return
    path = plan.target.path
    before = path.read_text(encoding="utf-8") if path.is_file() else None
    try:
        _write_text(path, plan.target.text)
        output.write(package.directory, files, force=True)
    except McpgenError:
        if before is None:
            path.unlink(missing_ok=True)
        else:
            _write_text(path, before)
        raise


def _write_text(path: Path, text: str) -> None:
    """Put a file with a text into place, by one rename."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        part.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: nothing was written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _record(
    console: Console,
    directory: Path,
    target: AdoptedFile | None,
    new_rules: Sequence[tuple[str, RuleText]],
    refusals: Sequence[Refusal],
) -> None:
    console.record(
        {
            "directory": str(directory),
            "file": str(target.path) if target is not None else None,
            "adopted": [{"name": name, **asdict(rule)} for name, rule in new_rules],
            "refused": [asdict(refusal) for refusal in refusals],
        }
    )
