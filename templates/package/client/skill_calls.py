"""The client methods for the skills of a server (SEP-2640).

Only a client of one server has these methods: the same URI may identify another skill elsewhere.

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
from ..runtime.pages import next_cursor, pages_of
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
_LISTING_SECONDS = 60.0

_logger = logging.getLogger(__name__)


class SkillCalls:
    """Adds the methods for skills to a client."""

    session: Session
    _requests: Any  # sends the requests of the client

    async def list_skills(self, *, timeout: float | None = None) -> list[Skill]:
        """The skills that the server lists. `get_skill` also returns skills that are not listed.

        An invalid entry is omitted with a warning.

        Args:
            timeout: Seconds for each request; `None` for no limit.

        Raises:
            MissingCapabilityError: The server has no skills.
            RemoteError: The server answered with an error.
            RemoteProtocolError: The result is not a list.
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
        """The current entry of a skill, which need not be listed.

        Args:
            uri: The URI of its `SKILL.md`.
            timeout: Seconds for the request; `None` for no limit.

        Raises:
            MissingCapabilityError: The server has no skills.
            RemoteError: The server does not have the skill.
            RemoteProtocolError: The entry is invalid.
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

        The file is still untrusted input for a model: state its origin, ignore `allowed-tools`, and
        run no code of it without the user's consent.

        Args:
            skill: The entry of the skill.
            path: The path of the file in the skill, such as `references/FORMS.md`.
            allow_dynamic: Whether to read a skill without digests.
            timeout: Seconds for the request; `None` for no limit.

        Raises:
            MissingExtraError: The file is `SKILL.md`, and PyYAML is not installed.
            RemoteError: The server answered with an error.
            RemoteProtocolError: The file does not match the entry.
            RequestTimeoutError: No response in time.
            ValueError: The entry does not list the file, or has no digests.
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

        Files that the entry of the skill does not list belong to another version of the skill.

        Args:
            uri: The URI of the directory, such as `skill.root`.
            timeout: Seconds for each request; `None` for no limit.

        Raises:
            MissingCapabilityError: The server lists no directories.
            RemoteError: The directory does not exist.
            RemoteProtocolError: The result is not a list.
            RequestTimeoutError: No response in time.
        """
        if self._settings().get(DIRECTORY_READ) is not True:
            raise MissingCapabilityError((CAPABILITY, SKILLS, DIRECTORY_READ), READ_DIRECTORY)
        entries = await self._pages(READ_DIRECTORY, {"uri": uri}, "resources", timeout)
        return [each for each in entries if is_object(each)]

    def _settings(self) -> Mapping[str, Any]:
        """The settings in the server's declaration of skills; clients declare nothing.

        Raises:
            MissingCapabilityError: The server does not declare skills.
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

        async def request(cursor: str | None) -> tuple[list[Any], str | None]:
            place = {} if cursor is None else {"cursor": cursor}
            result = await self._requests.send(method, {**params, **place}, None, timeout)
            page = result.get(member) if is_object(result) else None
            if not is_many(page):
                raise RemoteProtocolError(
                    f"{method}: {member}: expected an array, got {safe_repr(page)}"
                )
            return [*page], next_cursor(result)

        with anyio.move_on_after(_LISTING_SECONDS):
            async for page in pages_of(request, method):
                items += page
            return items
        raise RequestTimeoutError(f"{method}, all pages", _LISTING_SECONDS)


def _bytes_of(contents: Any, uri: str) -> bytes:
    """The bytes of a resource.

    Raises:
        RemoteProtocolError: The contents are neither text nor base64.
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
