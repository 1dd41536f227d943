"""Records in files: modes, encryption, and a lock over processes."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import keyring
import keyring.backend
import pytest
from keyring.backends import fail

from kit.http_server import Asked, Reply
from mcpgen_runtime import AuthorizationError, FileStore, MemoryStore
from package.client.auth.protected import (
    NEWEST,
    Issuer,
    Protected,
    agreeing_user,
    client_of,
    run_issuer,
    run_protected_server,
    serve_script,
)


class Remembering(keyring.backend.KeyringBackend):
    """A keyring in memory."""

    priority = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.passwords: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.passwords.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.passwords[service, username] = password


@pytest.fixture
def ring() -> Iterator[Remembering]:
    before = keyring.get_keyring()
    made = Remembering()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


async def test_a_record_is_kept_replaced_and_removed(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "new", encrypted=False)
    assert await store.load("key") is None
    await store.save("key", b"one")
    await store.save("key", b"two")
    assert await FileStore(tmp_path / "new", encrypted=False).load("key") == b"two"
    assert await store.load("other") is None
    await store.save("key", None)
    await store.save("key", None)
    assert await store.load("key") is None
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="modes are those of POSIX")
async def test_only_the_owner_can_read_a_record(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "new", encrypted=False)
    async with store.lock("key"):
        await store.save("key", b"secret")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


async def test_a_record_that_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    store = FileStore(tmp_path, encrypted=False)
    await store.save("key", b"first")
    (in_its_place,) = tmp_path.iterdir()
    in_its_place.unlink()
    in_its_place.mkdir()
    with pytest.raises(OSError, match="directory"):
        await store.save("key", b"secret")
    assert list(tmp_path.iterdir()) == [in_its_place]


async def test_records_are_encrypted_where_there_is_a_keyring(
    tmp_path: Path, ring: Remembering
) -> None:
    store = FileStore(tmp_path)
    await store.save("key", b"secret")
    (file,) = tmp_path.iterdir()
    assert b"secret" not in file.read_bytes()
    assert await FileStore(tmp_path).load("key") == b"secret"
    await store.save("other", b"secret")
    (other,) = set(tmp_path.iterdir()) - {file}
    file.rename(other)  # a record can't be put in place of another
    assert await store.load("other") is None
    ring.passwords.clear()
    await store.save("key", b"secret")
    assert await FileStore(tmp_path).load("key") is None


async def test_records_are_written_plainly_where_there_is_none(
    tmp_path: Path, ring: Remembering
) -> None:
    keyring.set_keyring(fail.Keyring())
    store = FileStore(tmp_path)
    await store.save("key", b"record")
    assert await store.load("key") == b"record"
    with pytest.raises(AuthorizationError, match="keyring"):
        await FileStore(tmp_path, encrypted=True).save("key", b"record")


HOLDER = """
import sys
import anyio
from mcpgen_runtime import FileStore

async def main():
    async with FileStore(sys.argv[1], encrypted=False).lock("key"):
        print("held", flush=True)
        sys.stdin.readline()

anyio.run(main)
"""


async def test_a_lock_holds_over_processes_and_ends_with_its_process(tmp_path: Path) -> None:
    store = FileStore(tmp_path, encrypted=False)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[4] / "generated",
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with anyio.move_on_after(0.2) as waited:
            async with store.lock("key"):
                pass
        assert waited.cancelled_caught
        holder.kill()
        holder.wait()
        with anyio.fail_after(10):
            async with store.lock("key"):
                pass


async def test_a_lock_is_free_after_a_cancelled_body(tmp_path: Path) -> None:
    store = FileStore(tmp_path, encrypted=False)
    with anyio.CancelScope() as scope:
        async with store.lock("key"):
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    with anyio.fail_after(5):
        async with store.lock("key"):
            pass


async def test_a_store_does_not_show_its_records(tmp_path: Path) -> None:
    assert repr(FileStore(tmp_path, encrypted=False)) == f"<FileStore {str(tmp_path)!r}>"


CALLS = 20
"""Of each client."""


class StrictIssuer(Issuer):
    """An authorization server that ends everything once a refresh token is used twice."""

    def granted_scopes(self, form: dict[str, str]) -> frozenset[str] | None:
        scopes = super().granted_scopes(form)
        if scopes is None:
            self.refresh_tokens.clear()
            self.valid.clear()
        return scopes


class RefusingServer(Protected):
    """A protected server that can hold back all new tokens until a number of calls was refused."""

    to_refuse = 0

    def revoke(self, calls: int) -> None:
        """Refuse the tokens of now; the authorization server waits for as many refused calls."""
        self.issuer.valid.clear()
        self.issuer.gate = anyio.Event()
        self.to_refuse = calls

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        refusing = self.to_refuse > 0 and asked.what == "tools/call"
        await super().__call__(asked, reply)
        if refusing:
            self.to_refuse -= 1
            if not self.to_refuse:
                self.issuer.gate.set()


async def test_scopes_of_another_client_are_used_before_the_user() -> None:
    store = MemoryStore()
    async with run_protected_server() as (script, _):
        async with (
            client_of(script, agreeing_user(script.issuer, store=store)) as first,
            client_of(script, agreeing_user(script.issuer, store=store)) as second,
        ):
            script.needed["tools/call"] = frozenset({"write"})
            await first.call_tool("echo")
            await second.call_tool("echo")
            assert len(script.issuer.visits) == 2
            script.needed["tools/call"] = frozenset({"write", "more"})
            await second.call_tool("echo")
        assert len(script.issuer.visits) == 3


async def test_a_token_that_all_calls_of_two_clients_see_refused_is_renewed_once(
    tmp_path: Path,
) -> None:
    """Two stores of one folder are as far from each other as those of two processes."""
    async with run_issuer(StrictIssuer()) as issuer, AsyncExitStack() as stack:
        script = RefusingServer(issuer, NEWEST)
        await stack.enter_async_context(serve_script(script))
        clients: list[Any] = []
        for _ in range(2):
            auth = agreeing_user(issuer, store=FileStore(tmp_path, encrypted=False))
            clients.append(await stack.enter_async_context(client_of(script, auth)))
            await clients[-1].call_tool("echo")
        for count in range(1, 3):
            script.revoke(2 * CALLS)
            async with anyio.create_task_group() as group:
                for client in clients * CALLS:
                    group.start_soon(client.call_tool, "echo")
            kinds = [form["grant_type"] for form in issuer.forms]
            assert kinds == ["authorization_code"] + ["refresh_token"] * count
        assert len(issuer.visits) == 1
