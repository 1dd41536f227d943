"""Directories of skills on disk, read once, so that contents always match their digests.

A directory may be hostile. Links are refused, not followed. Special files, names that would lead
out of their directory, and skills that are too large are refused too. Files and directories whose
names begin with a dot belong to tools, and are left out.

Source: ext-skills/specification/stable/skills; agentskills.io/specification.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...foreign_text import may_escape_directory
from ...runtime.request_context import checked_scopes
from ...skills import (
    DIRECTORY_READ,
    FILES,
    SKILL_BYTES,
    SKILL_FILE,
    Skill,
    SkillResource,
    digest_of,
    read_frontmatter,
)
from .cache_hints import CacheHint
from .content import Contents, check_json, guessed_mime_type, present_members
from .dispatcher import Dispatcher
from .registry import checked_tags
from .resources import Resource
from .skill_requests import serve_skills

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_NAME_CHARACTERS = 64
_DESCRIPTION_CHARACTERS = 1024
_FILES_IN_ALL = 100_000
_MARKDOWN = "text/markdown"


class SkillFile(Resource):
    """A file of a skill.

    Args:
        path: Its path in the skill.
        data: Its bytes.
        skill: The skill.
        hint: The cache hint of the file and of the entry.

    Attributes:
        skill: The skill, for its `SKILL.md`; `None` for other files.
    """

    def __init__(self, path: str, data: bytes, skill: Skill, hint: Mapping[str, Any]) -> None:
        is_entry = path == SKILL_FILE
        mime_type = _MARKDOWN if path.endswith(".md") else guessed_mime_type(path)
        contents = _contents(data, mime_type)

        async def read() -> Contents:
            return contents

        super().__init__(
            read,
            f"{skill.root}/{quote(path)}",
            name=skill.name if is_entry else path.rpartition("/")[2],
            mime_type=mime_type,
            members=present_members(
                description=skill.description if is_entry else None, size=len(data)
            ),
            names=None,
            hint=hint,
        )
        self.skill = skill if is_entry else None


def _contents(data: bytes, mime_type: str) -> Contents:
    """The contents of a file: text if its bytes are UTF-8 without NUL, else bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Contents(blob=data, mime_type=mime_type)
    if "\0" in text:
        return Contents(blob=data, mime_type=mime_type)
    return Contents(text=text, mime_type=mime_type)


def serve_directory(
    dispatcher: Dispatcher,
    directory: str | os.PathLike[str],
    cache: CacheHint,
    scopes: Collection[str],
    tags: Collection[str],
) -> None:
    """Serve the skills in a directory; see `Server.skills`."""
    required, names = checked_scopes(scopes), checked_tags(tags)
    files = read_skills(directory, cache.wire(private=required))
    registry = dispatcher.registries.resources
    for each in files:
        registry.check(each.uri)
    serve_skills(dispatcher, {DIRECTORY_READ: True})
    for each in files:
        each.scopes, each.tags = required, names
        registry.add(each.uri, each)


def read_skills(directory: str | os.PathLike[str], hint: Mapping[str, Any]) -> list[SkillFile]:
    """The files of all skills in a directory, or of the one skill that it is.

    A skill within another one is served as itself, and as files of the other one.

    Raises:
        OSError: Something can't be read.
        ValueError: There are no skills, or one breaks a rule.
        MissingExtraError: PyYAML is not installed.
    """
    top = Path(directory).resolve()
    paths = _files_below(top)
    roots = [each[: -len(SKILL_FILE)] for each in paths if f"/{each}".endswith(f"/{SKILL_FILE}")]
    if not roots:
        raise ValueError(f"skills: expected a directory with a {SKILL_FILE} below it, got {top}")
    contents: dict[str, bytes] = {}
    resources: dict[str, SkillFile] = {}
    for root in roots:
        skill_path = f"{top.name}/{root}"[:-1] if "" in roots else root[:-1]
        label = f"skill {skill_path}"
        inside = [each[len(root) :] for each in paths if each.startswith(root)]
        if len(inside) > FILES:
            raise ValueError(f"{label}: expected at most {FILES} files, got {len(inside)}")
        left = SKILL_BYTES
        for path in inside:
            if (below := root + path) not in contents:
                contents[below] = _read_file(top / below, left, label)
            left -= len(contents[below])
            if left < 0:
                raise _too_large(label)
        files = {path: contents[root + path] for path in inside}
        for each in _files_of(skill_path, files, hint, label):
            if each.skill is not None or each.uri not in resources:
                resources[each.uri] = each
    return [*resources.values()]


def _files_of(
    skill_path: str, files: Mapping[str, bytes], hint: Mapping[str, Any], label: str
) -> Iterator[SkillFile]:
    """The files of a skill, from the path that it is served at and the contents by path."""
    entry = files[SKILL_FILE]
    try:
        entry.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{label}: {SKILL_FILE}: expected UTF-8: {error}") from None
    frontmatter = read_frontmatter(entry, f"{label}: {SKILL_FILE}")
    _check_frontmatter(frontmatter, skill_path.rpartition("/")[2], label)
    check_json(frontmatter, f"{label}: {SKILL_FILE}")
    root = f"skill://{quote(skill_path)}"
    resources = tuple(
        SkillResource(f"{root}/{quote(path)}", digest_of(data), len(data))
        for path, data in files.items()
    )
    skill = Skill(f"{root}/{SKILL_FILE}", frontmatter, resources)
    for path, data in files.items():
        yield SkillFile(path, data, skill, hint)


def _check_frontmatter(frontmatter: Mapping[str, Any], folder: str, label: str) -> None:
    """Check that name and description keep the rules that clients check."""
    name, description = frontmatter["name"], frontmatter["description"]
    if not _NAME.fullmatch(name) or len(name) > _NAME_CHARACTERS:
        raise ValueError(
            f"{label}: name: expected at most {_NAME_CHARACTERS} characters a-z, 0-9 and single "
            f"hyphens between them, got {name!r}"
        )
    if name != folder:
        raise ValueError(f"{label}: name: expected {folder!r}, as its directory, got {name!r}")
    if len(description) > _DESCRIPTION_CHARACTERS:
        raise ValueError(
            f"{label}: description: expected at most {_DESCRIPTION_CHARACTERS} characters, "
            f"got {len(description)}"
        )


def _files_below(top: Path) -> list[str]:
    """The files below a directory, by paths with `/`, in order."""
    files: list[str] = []
    left = [""]
    seen = 0
    while left:
        place = left.pop()
        with os.scandir(top / place) as listed:
            entries = [*listed]
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if (seen := seen + 1) > _FILES_IN_ALL:
                raise ValueError(f"skills: expected at most {_FILES_IN_ALL} files below {top}")
            path = place + entry.name
            mode = entry.stat(follow_symlinks=False)
            is_mount_point = bool(getattr(mode, "st_reparse_tag", 0))  # on Windows
            if is_mount_point or not (stat.S_ISDIR(mode.st_mode) or stat.S_ISREG(mode.st_mode)):
                raise ValueError(
                    f"skills: {path!r}: expected a file or directory, got another kind"
                )
            if may_escape_directory(path) or "\\" in path or not path.isprintable():
                raise ValueError(f"skills: expected a name that can be part of a URI, got {path!r}")
            if stat.S_ISDIR(mode.st_mode):
                left.append(f"{path}/")
            else:
                files.append(path)
    return sorted(files)


def _read_file(path: Path, limit: int, label: str) -> bytes:
    """The bytes of a file, which is neither a link nor longer than a limit."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    flags |= getattr(os, "O_NONBLOCK", 0)  # does not block if the file has become a pipe
    with os.fdopen(os.open(path, flags), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise _too_large(label)
    return data


def _too_large(label: str) -> ValueError:
    return ValueError(f"{label}: expected at most {SKILL_BYTES} bytes in all files together")
