"""Skills: directories that servers serve, and clients that verify what they read (SEP-2640)."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kit.wire import HANDSHAKE, every, speaking_to
from mcpgen_runtime import (
    CacheHint,
    Client,
    MiddlewareRequest,
    MissingCapabilityError,
    Next,
    Principal,
    ProtocolError,
    RemoteError,
    RemoteProtocolError,
    Server,
    Skill,
    connect,
)
from mcpgen_runtime.testing import connected

SKILLS = "io.modelcontextprotocol/skills"
LIST, GET, READ_DIRECTORY = "skills/list", "skills/get", "resources/directory/read"
REFUNDS = "skill://acme/refunds/SKILL.md"
TEXT = "---\nname: {}\ndescription: Gives money back\nlicense: MIT\nsince: 2026-01-01\n---\n# Do\n"
PICTURE = b"\x89PNG\0\xff"


def put(folder: Path, files: Mapping[str, bytes | str | Path | None]) -> Path:
    """Write files below a folder; a path is a link to it, and `None` a pipe."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            os.mkfifo(path)
        elif isinstance(content, Path):
            path.symlink_to(content)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two skills, one with files; and what is left out."""
    return put(
        tmp_path / "skills",
        {
            "acme/refunds/SKILL.md": TEXT.format("refunds"),
            "acme/refunds/forms/a b.md": "Dear {name},\r\n",
            "acme/refunds/logo.png": PICTURE,
            "acme/refunds/.git/config": "secret",
            "review/SKILL.md": TEXT.format("review"),
            "README.md": "about",
        },
    )


def skills_server(folder: Path, **settings: Any) -> Server:
    server = Server("shop", **settings)
    server.skills(folder)
    return server


@every
async def test_skills_are_listed_with_all_files_and_digests(revision: str, folder: Path) -> None:
    async with connect(skills_server(folder, page_size=1), revision=revision) as client:
        assert client.server_capabilities["extensions"] == {SKILLS: {"directoryRead": True}}
        assert len((await client.request(LIST))["skills"]) == 1
        refunds, review = await client.list_skills()
        assert await client.get_skill(REFUNDS) == refunds
    assert (refunds.uri, refunds.name, review.name) == (REFUNDS, "refunds", "review")
    assert refunds.frontmatter == FRONTMATTER
    assert refunds.resources != "dynamic"
    assert [each.uri.removeprefix(refunds.root) for each in refunds.resources] == [
        "/SKILL.md",
        "/forms/a%20b.md",
        "/logo.png",
    ]
    logo = refunds.resources[-1]
    assert logo.digest == f"sha256:{hashlib.sha256(PICTURE).hexdigest()}"
    assert logo.size == len(PICTURE)


@every
async def test_files_of_skills_are_ordinary_resources(revision: str, folder: Path) -> None:
    async with connect(skills_server(folder), revision=revision) as client:
        listed = {each.uri: each for each in await client.list_resources()}
        skill = await client.get_skill(REFUNDS)
        files = [await client.read_skill(skill, name) for name in ("forms/a b.md", "logo.png")]
        assert await client.read_skill(skill) == TEXT.format("refunds").encode()
    entry = listed[REFUNDS]
    assert (entry.name, entry.description) == ("refunds", "Gives money back")
    assert entry.mime_type == "text/markdown"
    assert files == [b"Dear {name},\r\n", PICTURE]
    assert not [uri for uri in listed if "git" in uri or "README" in uri]


@every
async def test_a_directory_has_its_direct_children(revision: str, folder: Path) -> None:
    async with connect(skills_server(folder, page_size=2), revision=revision) as client:
        children = await client.read_directory("skill://acme/refunds")
        inside = await client.read_directory("skill://acme/refunds/forms")
        for uri in ("skill://acme", REFUNDS, "skill://acme/refunds/", "skill://acme/ref"):
            with pytest.raises(RemoteError) as caught:
                await client.read_directory(uri)
            assert caught.value.code == -32602
    kinds = {each["name"]: each["mimeType"] for each in children}
    assert kinds == {
        "refunds": "text/markdown",
        "forms": "inode/directory",
        "logo.png": "image/png",
    }
    assert [each["uri"] for each in inside] == ["skill://acme/refunds/forms/a%20b.md"]


async def test_results_are_complete_and_say_how_long_they_last(folder: Path) -> None:
    server = Server("shop")
    server.skills(folder, cache=CacheHint(5000, "public"))
    async with connect(server, revision="2026-07-28") as client:
        result = json.loads(bytes(await client.request_raw("skills/get", {"uri": REFUNDS})))
        listed = json.loads(bytes(await client.request_raw("skills/list")))
    hints = {"resultType": "complete", "ttlMs": 5000, "cacheScope": "public"}
    assert {name: result[name] for name in hints} == hints
    assert hints.keys() <= listed.keys()


@every
async def test_mounts_and_proxies_rewrite_the_uris_of_skills(revision: str, folder: Path) -> None:
    outer = skills_server(put(folder.parent / "own", {"SKILL.md": TEXT.format("own")}))
    outer.mount(skills_server(folder), prefix="a")
    outer.mount(Server.proxy(skills_server(folder)), prefix="b")
    shell = Server("without skills of its own")
    shell.mount(outer)
    async with connect(shell, revision=revision) as client:
        skills = {each.uri: each for each in await client.list_skills()}
        assert [*skills] == [
            "skill://own/SKILL.md",
            *(f"skill://{p}/{n}/SKILL.md" for p in "ab" for n in ("acme/refunds", "review")),
        ]
        for prefix in "ab":
            skill = await client.get_skill(f"skill://{prefix}/acme/refunds/SKILL.md")
            assert skill == skills[skill.uri]
            assert await client.read_skill(skill, "logo.png") == PICTURE
            [child] = await client.read_directory(f"{skill.root}/forms")
            assert child["uri"] == f"{skill.root}/forms/a%20b.md"
        with pytest.raises(RemoteError, match="expected the URI of a skill"):
            await client.get_skill("skill://c/review/SKILL.md")


async def test_a_skill_that_is_disabled_is_not_listed(folder: Path) -> None:
    inner, outer = Server("inner"), Server("outer")
    inner.skills(folder / "acme", tags=["money"])
    outer.mount(inner, prefix="in")
    outer.skills(folder / "review")
    async with connect(outer) as client:
        assert len(await client.list_skills()) == 2
        outer.disable(tags=["money"])
        assert [each.uri for each in await client.list_skills()] == ["skill://review/SKILL.md"]
        with pytest.raises(RemoteError, match="expected the URI of a skill"):
            await client.get_skill("skill://in/refunds/SKILL.md")


async def test_a_skill_may_need_scopes(folder: Path) -> None:
    server = Server("shop")
    server.skills(folder, scopes=["skills"], cache=CacheHint(5000, "public"))
    async with connected(server, principal=Principal("ann")) as pair:
        with pytest.raises(RemoteError, match="needs the scopes skills"):
            await pair.client.get_skill(REFUNDS)
    async with connected(server, principal=Principal("ann", scopes=["skills"])) as pair:
        skill = await pair.client.get_skill(REFUNDS)
        assert await pair.client.read_skill(skill, "logo.png") == PICTURE
        assert (await pair.client.read_resource(REFUNDS)).cache_scope == "private"


async def test_a_nested_skill_is_itself_and_part_of_its_outer_one(tmp_path: Path) -> None:
    names = ("outer/SKILL.md", "outer/inner/SKILL.md", "outer/inner/x.txt")
    put(tmp_path, {name: TEXT.format(Path(name).parent.name) for name in names})
    async with connect(skills_server(tmp_path)) as client:
        outer, inner = await client.list_skills()
        assert (outer.name, inner.name) == ("outer", "inner")
        assert {*inner.resources} < {*outer.resources}
        assert len(outer.resources) == 3
        assert await client.read_skill(outer, "inner/x.txt")


ALIASES = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]
)
CODE = "!!python/object/apply:os.system ['true']"
OTHER_KIND = "expected a file or directory, got another kind"
NO_URI = "expected a name that can be part of a URI, got 'acme/refunds/"
HOSTILE: Mapping[str, tuple[Mapping[str, bytes | str | Path | None], str]] = {
    "a link": ({"secret": Path("/etc/hostname")}, f"'acme/refunds/secret': {OTHER_KIND}"),
    "a pipe": ({"pipe": None}, f"'acme/refunds/pipe': {OTHER_KIND}"),
    "a name that climbs": ({"a%2f..%2f..%2fsecret": "x"}, f"{NO_URI}a%2f.."),
    "a name with backslash": ({"a\\..\\secret": "x"}, f"{NO_URI}a"),
    "another name": (
        {"SKILL.md": TEXT.format("other")},
        "skill acme/refunds: name: expected 'refunds', as its directory, got 'other'",
    ),
    "a name in capitals": (
        {"../Bad/SKILL.md": TEXT.format("Bad")},
        "skill acme/Bad: name: expected at most 64 characters a-z",
    ),
    "a long description": (
        {"SKILL.md": f"---\nname: refunds\ndescription: {'d' * 1025}\n---\n"},
        "expected at most 1024 characters",
    ),
    "no UTF-8": ({"SKILL.md": b"\xff"}, "SKILL.md: expected UTF-8: "),
    "no frontmatter": (
        {"SKILL.md": "# Do\n"},
        "SKILL.md: expected a frontmatter between two lines '---'",
    ),
    "no description": (
        {"SKILL.md": "---\nname: refunds\n---\n"},
        "SKILL.md: description: expected a text, got None",
    ),
    "frontmatter that grows": (
        {"SKILL.md": f"---\nname: refunds\n{ALIASES}\n---\n"},
        "expected at most 65536 characters with a copy for each alias",
    ),
    "a value that JSON lacks": (
        {"SKILL.md": f"{TEXT.format('refunds')[:-9]}x: [.inf]\n---\n"},
        "skill acme/refunds: SKILL.md: x[0]: ",
    ),
    "frontmatter with code": (
        {"SKILL.md": f"---\nname: refunds\ndescription: {CODE}\n---\n"},
        "SKILL.md: not YAML: could not determine a constructor",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_a_hostile_directory_gives_nothing(case: str, folder: Path) -> None:
    files, expected = HOSTILE[case]
    put(folder / "acme/refunds", files)
    server = Server("shop")
    with pytest.raises(ValueError, match=re.escape(expected)):
        server.skills(folder)
    async with connect(server) as client:
        assert not client.supports("resources")
        with pytest.raises(MissingCapabilityError, match=f"extensions.{SKILLS}"):
            await client.list_skills()


def server_with_entry(entry: Mapping[str, Any], text: str) -> Server:
    """A server that says of a skill what it wants."""
    server = Server("other", capabilities={"extensions": {SKILLS: {}}})

    @server.method("skills/list")
    async def list_skills() -> dict[str, Any]:
        return {"skills": [entry, {}]}

    @server.method("skills/get")
    async def get_skill(params: dict[str, Any]) -> dict[str, Any]:
        return {"skill": entry}

    @server.resource("skill://{+path}")
    async def read(path: str) -> str:
        return text

    return server


OURS = TEXT.format("refunds")
DIGEST = f"sha256:{hashlib.sha256(OURS.encode()).hexdigest()}"
FILE: dict[str, Any] = {"uri": REFUNDS, "digest": DIGEST, "size": len(OURS)}
FRONTMATTER = {
    "name": "refunds",
    "description": "Gives money back",
    "license": "MIT",
    "since": "2026-01-01",
}
ENTRY: dict[str, Any] = {"uri": REFUNDS, "frontmatter": FRONTMATTER, "resources": [FILE]}


async def read_by(client: Client, **options: Any) -> bytes:
    skill: Skill = await client.get_skill(REFUNDS)
    data: bytes = await client.read_skill(skill, **options)
    return data


@pytest.mark.parametrize(
    ("changes", "text", "expected"),
    [
        ({}, OURS[:-1] + "x", f"expected {DIGEST}, got sha256:"),
        ({}, OURS + "x", f"expected {len(OURS)} bytes, got {len(OURS) + 1}"),
        ({"frontmatter": {**FRONTMATTER, "allowed-tools": "Bash"}}, OURS, "expected the frontm"),
        ({"frontmatter": {**FRONTMATTER, "license": "X"}}, OURS, "got {'name': 'refunds'"),
    ],
)
async def test_skills_that_differ_from_their_entry_are_refused(
    changes: Mapping[str, Any], text: str, expected: str
) -> None:
    async with connect(server_with_entry({**ENTRY, **changes}, text)) as client:
        with pytest.raises(RemoteProtocolError) as caught:
            await read_by(client)
    assert expected in str(caught.value)
    assert str(caught.value).endswith("get_skill reads the entry anew")


async def test_only_listed_files_within_the_skill_are_read() -> None:
    async with connect(server_with_entry(ENTRY, OURS)) as client:
        assert await read_by(client) == OURS.encode()
        for path in ("other.md", "../x", "/etc/passwd", "a/%2e%2e/x", ""):
            with pytest.raises(ValueError, match="path: expected"):
                await read_by(client, path=path)
        with pytest.raises(MissingCapabilityError, match="directoryRead"):
            await client.read_directory("skill://acme/refunds")


async def test_a_dynamic_skill_is_read_only_if_asked_to() -> None:
    async with connect(server_with_entry({**ENTRY, "resources": "dynamic"}, OURS)) as client:
        with pytest.raises(ValueError, match="expected one with digests, got a dynamic one"):
            await read_by(client)
        assert await read_by(client, allow_dynamic=True) == OURS.encode()


OTHER = {**FILE, "uri": "skill://acme/refunds/a.md"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"uri": 1}, "uri: expected a URI"),
        ({"uri": "skill://acme/refunds/x.md"}, "expected a URI that ends with /SKILL.md"),
        ({"uri": "skill://acme/other/SKILL.md"}, "name: expected 'other', as in its URI"),
        ({"frontmatter": {"name": "refunds"}}, "description: expected a text, got None"),
        ({"resources": None}, "resources: expected an array or 'dynamic', got None"),
        ({"resources": [FILE, FILE]}, "expected each file once, SKILL.md among them"),
        ({"resources": [FILE, {**OTHER, "uri": "skill://acme/a.md"}]}, "directory of the skill"),
        ({"resources": [FILE, {**OTHER, "uri": f"{REFUNDS[:20]}/%2e%2e/a"}]}, "without '..'"),
        ({"resources": [{**FILE, "digest": DIGEST.upper()}]}, "expected a digest sha256:..."),
        ({"resources": [{**FILE, "size": -1}]}, "size: expected a number of bytes, got -1"),
        ({"resources": [{**FILE, "size": 16_777_217}]}, "expected at most 16777216 bytes"),
    ],
)
async def test_an_entry_that_breaks_a_rule_is_left_out_or_refused(
    changes: Mapping[str, Any], expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect(server_with_entry({**ENTRY, **changes}, OURS)) as client:
        assert await client.list_skills() == []
        with pytest.raises(RemoteProtocolError) as caught:
            await client.get_skill(REFUNDS)
    assert expected in str(caught.value)
    assert expected in caplog.text


@pytest.mark.parametrize(("data", "is_text"), [(b"a\0b", False), (b"\xff", False), (b"ab", True)])
async def test_a_file_is_text_if_it_is_utf_8_without_nul(
    folder: Path, data: bytes, is_text: bool
) -> None:
    put(folder, {"review/data.txt": data})
    async with connect(skills_server(folder)) as client:
        (contents,) = (await client.read_resource("skill://review/data.txt")).contents
    assert contents.mime_type == "text/plain"
    assert hasattr(contents, "text") == is_text


async def test_skills_are_served_all_or_not_at_all(folder: Path) -> None:
    server = Server("shop")
    server.resource("skill://review/SKILL.md", name="mine")(lambda: "mine")
    with pytest.raises(ValueError, match="registered already"):
        server.skills(folder)
    own = Server("own")
    with pytest.raises(ValueError, match=r"expected a directory with a SKILL\.md below it"):
        own.skills(folder / "acme/refunds/forms")
    own.method(LIST)(lambda: None)
    with pytest.raises(ValueError, match="method 'skills/list' is registered already"):
        own.skills(folder)
    async with connect(server) as client:
        assert "extensions" not in client.server_capabilities
        assert [each.name for each in await client.list_resources()] == ["mine"]


@pytest.mark.parametrize("method", [LIST, GET, READ_DIRECTORY])
async def test_skills_within_take_no_method_of_an_outer_server(folder: Path, method: str) -> None:
    outer, inner = Server("outer"), Server("inner")
    outer.method(method)(lambda: {"mine": True})
    outer.mount(inner, "in")
    with pytest.raises(ValueError, match=f"method '{method}' of server 'outer' exists already"):
        inner.skills(folder)
    async with connect(inner) as client:
        assert "extensions" not in client.server_capabilities
    async with connect(outer) as client:
        assert (await client.request(method, {}))["mine"] is True


@pytest.mark.parametrize(
    ("method", "params", "text"),
    [
        (LIST, {"cursor": 5}, "cursor: expected a text, got 5"),
        (GET, None, "uri: expected a text, got None"),
        (READ_DIRECTORY, {"uri": 5}, "uri: expected a text, got 5"),
        (READ_DIRECTORY, {"uri": "skill://review/no"}, "expected the URI of a directory"),
    ],
)
async def test_params_about_skills_are_texts(
    folder: Path, method: str, params: Any, text: str
) -> None:
    async with speaking_to(skills_server(folder), HANDSHAKE[-1]) as end:
        assert len((await end.ask(LIST))["result"]["skills"]) == 2
        error = (await end.ask(method, params))["error"]
    assert error["code"] == -32602
    assert text in error["message"]


async def test_only_a_proxy_may_fail_to_list_its_skills(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken, outer, behind_proxy = skills_server(folder), Server("outer"), Server("outer")

    @broken.middleware
    async def refuse(request: MiddlewareRequest, next: Next) -> Any:
        if request.method == LIST:
            raise ProtocolError("no list today", code=1001)
        return await next(request)

    outer.mount(broken, prefix="in")
    behind_proxy.mount(Server.proxy(skills_server(folder)), prefix="in")
    behind_proxy.mount(Server.proxy(broken), prefix="gone")
    async with connect(outer) as client:
        with pytest.raises(RemoteError, match="no list today"):
            await client.list_skills()
    async with connect(behind_proxy) as client:
        assert [each.name for each in await client.list_skills()] == ["refunds", "review"]
    assert [each.message for each in caplog.records if "skills of server" in each.message]
