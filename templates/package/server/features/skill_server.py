"""Skills: directories of instructions for models, served as resources."""

from __future__ import annotations

from collections.abc import Collection
from os import PathLike

from ..toolkit.cache_hints import NO_CACHING, CacheHint
from ..toolkit.server import ServerKernel


class SkillServer(ServerKernel):
    """A server of skills."""

    def skills(
        self,
        directory: str | PathLike[str],
        *,
        cache: CacheHint = NO_CACHING,
        scopes: Collection[str] = (),
        tags: Collection[str] = (),
    ) -> None:
        """Serve the skills in a directory.

            server.skills("skills")

        Each directory below with a file `SKILL.md` is a skill, served at `skill://` and its path;
        the directory itself may be one, served at its name. The files are read once, now: restart
        the server to serve changes. Files whose names begin with a dot are not served.

        Args:
            directory: Its path.
            cache: The cache hint of files and entries; always private if scopes are needed.
            scopes: Scopes that they need, besides those of every request.
            tags: Names for `enable` and `disable`; they are not sent.

        Raises:
            OSError: Something can't be read.
            ValueError: There are no skills, or one breaks a rule: it has a link, more than 512
                files or 16 MiB, or another name than its directory. Nothing is served then.
            MissingExtraError: PyYAML is not installed.
        """
        from ..toolkit.skill_directories import serve_directory  # loaded only if a server has some

        serve_directory(self._dispatcher, directory, cache, scopes, tags)
