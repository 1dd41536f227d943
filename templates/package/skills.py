"""Skills: the entries of skills that servers serve and clients verify (SEP-2640).

A skill is a directory with a file `SKILL.md`, whose frontmatter has name and description. Each file
is a resource; the entry of the skill names them all, with the digests of their bytes:

    {"uri": "skill://acme/refunds/SKILL.md", "frontmatter": {"name": "refunds", ...},
     "resources": [{"uri": "skill://acme/refunds/SKILL.md", "digest": "sha256:...", "size": 210}]}

A digest shows that content and entry are consistent, not that they can be trusted.

Source: ext-skills/specification/stable/skills; agentskills.io/specification.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, unquote

from ._wire import is_many, is_object
from .errors import RemoteProtocolError
from .foreign_text import has_parent_segment, is_uri, may_escape_directory, safe_repr
from .yaml_text import read_yaml

SKILLS = "io.modelcontextprotocol/skills"
"""The extension's identifier."""

LIST, GET, READ_DIRECTORY = "skills/list", "skills/get", "resources/directory/read"
DIRECTORY_READ = "directoryRead"
"""The setting of servers that support `READ_DIRECTORY`."""
DIRECTORY_TYPE = "inode/directory"
"""The MIME type of directories."""

SKILL_FILE = "SKILL.md"
FILES = 512
"""Most files of a skill."""
SKILL_BYTES = 16 * 1024 * 1024
"""Most bytes of all files of a skill together."""
FRONTMATTER_BYTES = 64 * 1024
"""Most bytes of a frontmatter."""

_FRONTMATTER = re.compile(rb"---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class SkillResource:
    """A file of a skill.

    Attributes:
        uri: The URI of its resource.
        digest: SHA-256 of its bytes, as `sha256:` and 64 lowercase hexadecimal digits.
        size: Number of its bytes.
    """

    uri: str
    digest: str
    size: int


@dataclass(frozen=True)
class Skill:
    """A skill as its server describes it. The same URI at another server is another skill.

    Attributes:
        uri: The URI of its `SKILL.md`.
        frontmatter: The frontmatter of that file, as JSON.
        resources: All files of the skill; `dynamic` if they change too often for digests.
    """

    uri: str
    frontmatter: Mapping[str, Any]
    resources: tuple[SkillResource, ...] | Literal["dynamic"]

    @property
    def name(self) -> str:
        """The name in the frontmatter; several skills of a server may share a name."""
        name: str = self.frontmatter["name"]
        return name

    @property
    def description(self) -> str:
        """The description in the frontmatter."""
        description: str = self.frontmatter["description"]
        return description

    @property
    def root(self) -> str:
        """The URI of the skill's directory."""
        return self.uri.removesuffix(f"/{SKILL_FILE}")

    def resource(self, path: str) -> SkillResource | None:
        """The file at a path such as `references/FORMS.md`; `None` if the skill is dynamic.

        Raises:
            ValueError: The path leads out of the skill, or the entry lists no such file.
        """
        if not path or may_escape_directory(path):
            raise ValueError(f"path: expected one within the skill, got {path!r}")
        if self.resources == "dynamic":
            return None
        start = len(self.root) + 1
        for each in self.resources:
            if unquote(each.uri[start:]) == path:
                return each
        raise ValueError(
            f"path: expected a file that the entry of skill {safe_repr(self.uri)} lists, got "
            f"{path!r}; get_skill reads the entry anew"
        )

    def uri_of(self, path: str) -> str:
        """The URI of the file at a path in the skill; errors are those of `resource`."""
        listed = self.resource(path)
        return f"{self.root}/{quote(path)}" if listed is None else listed.uri


def digest_of(data: bytes) -> str:
    """The digest of the bytes of a file."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def read_frontmatter(data: bytes, label: str) -> Mapping[str, Any]:
    """The frontmatter of a `SKILL.md`, as JSON.

    Args:
        data: The file.
        label: Its name in error texts.

    Raises:
        MissingExtraError: PyYAML is not installed.
        ValueError: The frontmatter is missing, is too large, or lacks name or description.
    """
    match = _FRONTMATTER.match(data)
    if match is None:
        raise ValueError(
            f"{label}: expected a frontmatter between two lines '---' at its beginning"
        )
    if len(match[1]) > FRONTMATTER_BYTES:
        raise ValueError(
            f"{label}: expected a frontmatter of at most {FRONTMATTER_BYTES} bytes, "
            f"got {len(match[1])}"
        )
    try:
        frontmatter = read_yaml(match[1], label, FRONTMATTER_BYTES, "a skill")
    except RecursionError:
        raise ValueError(f"{label}: it is nested too deep") from None
    return _checked_frontmatter(frontmatter, label)


def _checked_frontmatter(frontmatter: Any, label: str) -> Mapping[str, Any]:
    members: Mapping[str, Any] = frontmatter if is_object(frontmatter) else {}
    for name in ("name", "description"):
        value = members.get(name)
        if not isinstance(value, str) or not value:
            raise ValueError(f"{label}: {name}: expected a text, got {safe_repr(value)}")
    return members


def skill_of(wire: Any) -> Skill:
    """The skill that an entry describes.

    Raises:
        ValueError: The entry breaks a rule, or the skill is larger than clients have to support.
    """
    entry: Mapping[str, Any] = wire if is_object(wire) else {}
    uri = _checked_uri(entry.get("uri"), "uri")
    label = f"skill {safe_repr(uri)}"
    root, slash, end = uri.rpartition("/")
    if not slash or end != SKILL_FILE:
        raise ValueError(f"{label}: expected a URI that ends with /{SKILL_FILE}")
    frontmatter = _checked_frontmatter(entry.get("frontmatter"), f"{label}: frontmatter")
    name = unquote(root.rpartition("/")[2])
    if name != frontmatter["name"]:
        raise ValueError(
            f"{label}: frontmatter: name: expected {safe_repr(name)}, as in its URI, got "
            f"{safe_repr(frontmatter['name'])}"
        )
    resources = entry.get("resources")
    if resources == "dynamic":
        return Skill(uri, frontmatter, "dynamic")
    if not is_many(resources):
        raise ValueError(
            f"{label}: resources: expected an array or 'dynamic', got {safe_repr(resources)}"
        )
    if len(resources) > FILES:
        raise ValueError(f"{label}: expected at most {FILES} files, got {len(resources)}")
    files = tuple(_resource_of(each, root, label) for each in resources)
    if len({each.uri for each in files}) < len(files) or uri not in {each.uri for each in files}:
        raise ValueError(f"{label}: resources: expected each file once, {SKILL_FILE} among them")
    if (size := sum(each.size for each in files)) > SKILL_BYTES:
        raise ValueError(f"{label}: expected at most {SKILL_BYTES} bytes, got {size}")
    return Skill(uri, frontmatter, files)


def _resource_of(wire: Any, root: str, label: str) -> SkillResource:
    members: Mapping[str, Any] = wire if is_object(wire) else {}
    uri = _checked_uri(members.get("uri"), f"{label}: resources: uri")
    digest, size = members.get("digest"), members.get("size")
    label = f"{label}: resources: {safe_repr(uri)}"
    if not uri.startswith(f"{root}/"):
        raise ValueError(f"{label}: expected the URI of a file in the directory of the skill")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ValueError(f"{label}: expected a digest sha256:..., got {safe_repr(digest)}")
    if type(size) is not int or size < 0:
        raise ValueError(f"{label}: size: expected a number of bytes, got {safe_repr(size)}")
    return SkillResource(uri, digest, size)


def _checked_uri(uri: Any, label: str) -> str:
    if not isinstance(uri, str) or not is_uri(uri) or has_parent_segment(uri):
        raise ValueError(f"{label}: expected a URI without '..', got {safe_repr(uri)}")
    return uri


def verify(skill: Skill, path: str, data: bytes) -> None:
    """Check a file against the entry of its skill.

    Args:
        skill: The entry.
        path: The file's path in the skill.
        data: Its bytes.

    Raises:
        MissingExtraError: The file is `SKILL.md`, and PyYAML is not installed.
        RemoteProtocolError: Size, digest or frontmatter of the file differs.
        ValueError: The entry lists no such file.
    """
    uri, listed = skill.uri_of(path), skill.resource(path)
    stale = "; the file or the skill changed: get_skill reads the entry anew"
    label = f"skill file {safe_repr(uri)}"
    if listed is not None and len(data) != listed.size:
        raise RemoteProtocolError(f"{label}: expected {listed.size} bytes, got {len(data)}{stale}")
    if listed is not None and (digest := digest_of(data)) != listed.digest:
        raise RemoteProtocolError(f"{label}: expected {listed.digest}, got {digest}{stale}")
    if path == SKILL_FILE:
        try:
            frontmatter = read_frontmatter(data, label)
        except ValueError as error:
            raise RemoteProtocolError(str(error)) from None
        if frontmatter != skill.frontmatter:
            raise RemoteProtocolError(
                f"{label}: expected the frontmatter {safe_repr(skill.frontmatter)}, got "
                f"{safe_repr(frontmatter)}{stale}"
            )
