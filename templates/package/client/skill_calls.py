"""The methods of clients for the skills of a server (SEP-2640).

They are for a client of one server: the same URI is another skill with another server.

Source: ext-skills/specification/stable/skills.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Mapping
from typing import Any

import anyio

from .._wire import UNSET, is_many, is_object
from ..errors import MissingCapabilityError, RemoteProtocolError, RequestTimeoutError
from ..foreign_text import safe_repr, safe_text
from ..protocol.lifecycle import CAPABILITY, Session, settings_of
from ..skills import (
    DIRECTORY_READ,
    GET,
    LIST,
    READ_DIRECTORY,
    SKILL_BYTES,
    SKILLS,
    Skill,
    skill_of,
    verify,
)

_READ = "resources/read"
_PAGES = 1000  # a server may name a next page forever
_LISTING_SECONDS = 60.0

_logger = logging.getLogger(__name__)


class SkillCalls:
    """The methods."""

    session: Session
    _requests: Any  # sends the requests of the client

    async def list_skills(self, *, timeout: float | None = None) -> list[Skill]:
        """The skills that the server lists. It may have others, which `get_skill` gets.

        An entry that breaks a rule is left out, with a warning.

        Args:
            timeout: Seconds for each request; `None` for no limit.

        Raises:
            MissingCapabilityError: The server has no skills.
            RemoteError: The server answered with an error.
            RemoteProtocolError: The result is no list.
            RequestTimeoutError: No response in time.
        """
        skills: list[Skill] = []
        for entry in await self._pages(LIST, {}, "skills", timeout):
            try:
                skills.append(skill_of(entry))
            except ValueError as error:
                _logger.warning("%s: left out: %s", LIST, error)
        return skills

    async def get_skill(self, uri: str, *, timeout: float | None = None) -> Skill:
        """One skill, whether it is listed or not, as it is now.

        Args:
            uri: The URI of its `SKILL.md`.
            timeout: Seconds for the request; `None` for no limit.

        Raises:
            MissingCapabilityError: The server has no skills.
            RemoteError: The server has no such skill.
            RemoteProtocolError: The entry breaks a rule.
            RequestTimeoutError: No response in time.
        """
        self._settings()
        result = await self._requests.send(GET, {"uri": uri}, None, timeout)
        try:
            skill = skill_of(result.get("skill") if is_object(result) else None)
        except ValueError as error:
            raise RemoteProtocolError(f"{GET}: {error}") from None
        if skill.uri != uri:
            raise RemoteProtocolError(
                f"{GET}: expected the skill {safe_repr(uri)}, got {safe_repr(skill.uri)}"
            )
        return skill

    async def read_skill(
        self,
        skill: Skill,
        path: str = "SKILL.md",
        *,
        allow_dynamic: bool = False,
        timeout: float | None = None,
    ) -> bytes:
        """The bytes of a file of a skill, verified by size, digest and frontmatter.

        They are foreign text for a model all the same: say whose they are, ignore `allowed-tools`,
        and run nothing without the user's consent.

        Args:
            skill: Its entry.
            path: Its path in the skill, such as `references/FORMS.md`.
            allow_dynamic: Whether to read a skill without digests.
            timeout: Seconds for the request; `None` for no limit.

        Raises:
            MissingExtraError: The file is `SKILL.md`, and PyYAML is not installed.
            RemoteError: The server answered with an error.
            RemoteProtocolError: The file is not as the entry says.
            RequestTimeoutError: No response in time.
            ValueError: The entry lists no such file, or no files at all.
        """
        if skill.resources == "dynamic" and not allow_dynamic:
            raise ValueError(
                f"skill {safe_repr(skill.uri)}: expected one with digests, got a dynamic one; "
                "allow_dynamic=True reads it unverified"
            )
        uri = skill.uri_of(path)
        result = await self._requests.send(_READ, {"uri": uri}, None, timeout)  # not cached
        contents = next((each for each in result.contents if each.uri == uri), None)
        if contents is None:
            raise RemoteProtocolError(f"{_READ}: expected contents of {safe_repr(uri)}, got others")
        data = _bytes_of(contents, uri)
        if len(data) > SKILL_BYTES:
            raise RemoteProtocolError(
                f"skill file {safe_repr(uri)}: expected at most {SKILL_BYTES} bytes, "
                f"got {len(data)}"
            )
        verify(skill, path, data)
        return data

    async def read_directory(
        self, uri: str, *, timeout: float | None = None
    ) -> list[Mapping[str, Any]]:
        """The files and directories in a directory of a skill, as wire objects of resources.

        What it lists beside the entry of the skill belongs to another state of the skill.

        Args:
            uri: The URI of the directory, such as `skill.root`.
            timeout: Seconds for each request; `None` for no limit.

        Raises:
            MissingCapabilityError: The server lists no directories.
            RemoteError: There is no such directory.
            RemoteProtocolError: The result is no list.
            RequestTimeoutError: No response in time.
        """
        if self._settings().get(DIRECTORY_READ) is not True:
            raise MissingCapabilityError((CAPABILITY, SKILLS, DIRECTORY_READ), READ_DIRECTORY)
        entries = await self._pages(READ_DIRECTORY, {"uri": uri}, "resources", timeout)
        return [each for each in entries if is_object(each)]

    def _settings(self) -> Mapping[str, Any]:
        """The settings by which the server declares skills; clients declare nothing.

        Raises:
            MissingCapabilityError: It has none.
        """
        settings = settings_of(self.session.peer_capabilities, SKILLS)
        if settings is None:
            raise MissingCapabilityError((CAPABILITY, SKILLS), LIST)
        return settings

    async def _pages(
        self, method: str, params: Mapping[str, Any], member: str, timeout: float | None
    ) -> list[Any]:
        """The items of all pages of a list, within one deadline."""
        self._settings()
        items: list[Any] = []
        with anyio.move_on_after(_LISTING_SECONDS):
            for _ in range(_PAGES):
                result = await self._requests.send(method, params, None, timeout)
                page = result.get(member) if is_object(result) else None
                if not is_many(page):
                    raise RemoteProtocolError(
                        f"{method}: {member}: expected an array, got {safe_repr(page)}"
                    )
                items += page
                cursor = result.get("nextCursor")
                if cursor is None:
                    return items
                params = {**params, "cursor": cursor}
            raise RemoteProtocolError(f"{method}: expected at most {_PAGES} pages")
        raise RequestTimeoutError(f"{method}, all pages", _LISTING_SECONDS)


def _bytes_of(contents: Any, uri: str) -> bytes:
    """The bytes of a resource.

    Raises:
        RemoteProtocolError: There are none.
    """
    text, blob = getattr(contents, "text", None), getattr(contents, "blob", "")
    try:
        if isinstance(text, str):
            return text.encode()
        return base64.b64decode("" if blob is UNSET else blob, validate=True)
    except (binascii.Error, UnicodeEncodeError, TypeError) as error:
        reason = safe_text(str(error))
        raise RemoteProtocolError(
            f"skill file {safe_repr(uri)}: expected text or base64: {reason}"
        ) from None
