"""Wheels of dependencies, on each version of Python that is declared and on six platforms."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import nox

from sessions.environments import PROJECT, ROOT, UV, give_up

VERSIONS = tuple(
    match[1]
    for classifier in PROJECT["project"]["classifiers"]
    if (match := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", classifier))
)
"""The declared versions of Python."""
PLATFORMS = (
    *("x86_64-manylinux_2_28", "aarch64-manylinux_2_28"),
    *("aarch64-apple-darwin", "x86_64-apple-darwin"),
    *("x86_64-pc-windows-msvc", "aarch64-pc-windows-msvc"),
)
WINDOWS_ON_ARM, MACOS_ON_INTEL = "aarch64-pc-windows-msvc", "x86_64-apple-darwin"
GAPS = {
    **{("typescript", "3.15", platform): "tree-sitter" for platform in PLATFORMS},
    **{("all", "3.15", platform): "google-re2" for platform in PLATFORMS},
    ("port", "3.15", MACOS_ON_INTEL): "libcst",
    **{
        (extra, version, WINDOWS_ON_ARM): "cryptography"
        for extra, version in product(("auth-store", "scaling", "all"), VERSIONS)
    },
    ("", "3.11", WINDOWS_ON_ARM): "pyyaml",
    ("port", "3.13", WINDOWS_ON_ARM): "pyyaml-ft",
}
"""Distributions without a wheel, by extra, version of Python and platform.

The extra is empty for mcpgen itself; `all` is that of the installed runtime.
"""
_WITHOUT = re.compile(r"([\w.-]+)(?:[<>=!~][^ ]*)? has no usable wheels")


@dataclass(frozen=True)
class Wanted:
    """A resolution."""

    project: Path
    extras: tuple[str, ...]
    version: str
    platform: str

    def gap(self, extra: str) -> str | None:
        """The listed distribution without a wheel for an extra."""
        return GAPS.get((extra, self.version, self.platform))

    def without_wheel(self, uv: str) -> str | None:
        """A distribution without a wheel; `None` if there is none."""
        extras = (f"--extra={extra}" for extra in self.extras)
        words = (f"--python-version={self.version}", f"--python-platform={self.platform}")
        command = (uv, "pip", "compile", "-q", "--only-binary=:all:", *words, *extras)
        done = subprocess.run([*command, self.project], check=False, capture_output=True, text=True)
        if done.returncode == 0:
            return None
        match = _WITHOUT.search(done.stderr)
        if match is None:
            raise RuntimeError(f"{self}: {done.stderr.strip()}")
        return match[1]


def check_wheels(session: nox.Session) -> None:
    """Fail if wheels are other than `GAPS` says; skip the session without uv."""
    if UV is None:
        give_up(session, "found no uv; `pip install uv` helps")
    if gaps := [*differences(UV)]:
        session.error("\n".join(gaps))


def differences(uv: str) -> Iterator[str]:
    """The resolutions whose outcome is another one than `GAPS` says."""
    wanted = [*_wanted()]
    with ThreadPoolExecutor(8) as pool:
        missing = pool.map(lambda each: each.without_wheel(uv), wanted)
        for each, name in zip(wanted, missing, strict=True):
            expected = {each.gap(extra) for extra in each.extras or ("",)}
            if name not in expected:
                yield f"{each}: expected {expected}, got {name or 'wheels for all'}"


def _wanted() -> Iterator[Wanted]:
    """The resolutions; extras without a gap at once for each version and platform."""
    extras = [*PROJECT["project"]["optional-dependencies"]]
    tool, runtime = ROOT / "pyproject.toml", ROOT / "generated" / "pyproject.toml"
    for version, platform in product(VERSIONS, PLATFORMS):
        yield Wanted(runtime, ("all",), version, platform)
        if ("", version, platform) in GAPS:
            yield Wanted(tool, (), version, platform)
            continue
        gaps = [extra for extra in extras if (extra, version, platform) in GAPS]
        together = tuple(extra for extra in extras if extra not in gaps)
        yield Wanted(tool, together, version, platform)
        yield from (Wanted(tool, (extra,), version, platform) for extra in gaps)
