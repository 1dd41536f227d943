"""Records of sessions without an engine: bytes, expiry, versions, and changes of two workers."""

from __future__ import annotations

import anyio
import pytest
from msgspec.structs import replace

from kit.simulation import ASYNCIO
from mcpgen_runtime import REVISIONS, MemorySessionStore, SessionRecord
from mcpgen_runtime.server.shared.session_store import decode_record, encode_record, merge_records
from mcpgen_runtime.server.shared.shared_streams import is_listening, lost_message, stream_name

pytestmark = [pytest.mark.processes, pytest.mark.workers]

RECORD = SessionRecord("2025-06-18", {"roots": {}}, {"name": "c"}, ("a", "b", None))
RULE = (0, frozenset({"k"}), frozenset({"t"}), True)


@pytest.mark.parametrize(
    "record",
    [
        RECORD,
        replace(
            RECORD,
            version=7,
            is_ready=True,
            is_confirmed=True,
            log_level="info",
            subscriptions=frozenset({"memo://one"}),
            listener="worker",
            rules=(RULE,),
        ),
    ],
)
def test_a_record_is_read_from_its_bytes(record: SessionRecord) -> None:
    data = encode_record(record)
    assert decode_record(data) == record
    assert [decode_record(other) for other in (b"", b"\x02" + data[1:], data[:-1])] == [None] * 3


@pytest.mark.parametrize("anyio_backend", [ASYNCIO])
@pytest.mark.parametrize(
    ("now", "alive"),
    [
        (9.5, ["ever", "used", "touched", "changed"]),
        (10.0, ["ever", "used", "touched"]),
        (18.5, ["ever", "used", "touched"]),
        (19.0, ["ever", "touched"]),
        (20.0, ["ever"]),
    ],
)
async def test_a_record_in_memory_expires_after_its_last_use(now: float, alive: list[str]) -> None:
    store = MemorySessionStore()
    for name, seconds in (("ever", None), ("used", 10.0), ("touched", 10.0), ("changed", 10.0)):
        await store.create(name, RECORD, seconds)
    await anyio.sleep(9)
    assert await store.load("used", 10.0) == RECORD
    await store.touch("touched", 11.0)
    assert await store.change("changed", replace(RECORD, version=2))
    await anyio.sleep(now - 9)
    names = ("ever", "used", "touched", "changed")
    assert [name for name in names if await store.load(name, 1.0)] == alive


async def test_the_next_version_of_a_record_is_stored_alone() -> None:
    store = MemorySessionStore()
    await store.create("a", RECORD, None)
    for version, is_stored in ((1, False), (3, False), (2, True), (2, False), (3, True)):
        assert await store.change("a", replace(RECORD, version=version)) is is_stored
    assert not await store.change("b", replace(RECORD, version=2))
    loaded = await store.load("a", None)
    assert loaded is not None
    assert loaded.version == 3
    await store.end("a")
    await store.end("a")
    assert await store.load("a", None) is None


def test_changes_of_two_workers_are_merged() -> None:
    before = replace(RECORD, subscriptions=frozenset("ab"), log_level="info")
    stored = replace(before, version=5, subscriptions=frozenset("abc"), is_ready=True)
    ours = replace(before, subscriptions=frozenset("bd"), log_level="error", is_confirmed=True)
    assert merge_records(stored, before, ours) == replace(
        stored, subscriptions=frozenset("bcd"), log_level="error", is_confirmed=True
    )


@pytest.mark.parametrize(
    ("stored", "before", "ours", "merged"),
    [
        ("", "", "0a 1b 0c", "0a 1b 0c"),
        ("0a 1b", "0a", "0a 0c", "0a 0c 1b"),
        ("0a 0b 1d", "0a 0b", "0b", "0b 1d"),
        ("0a 0b", "0a", "0b", "0b"),
        ("1a 0b", "1a", "1a 0c", "0b 0c 1a"),
    ],
)
def test_rules_of_two_workers_keep_their_order_by_server(
    stored: str, before: str, ours: str, merged: str
) -> None:
    records = [
        replace(
            RECORD,
            rules=tuple(
                (int(word[0]), frozenset({word[1]}), frozenset[str](), True)
                for word in words.split()
            ),
        )
        for words in (stored, before, ours)
    ]
    rules = merge_records(*records).rules
    assert " ".join(f"{number}{''.join(keys)}" for number, keys, _, _ in rules) == merged


@pytest.mark.parametrize("listening", [True, False])
def test_the_name_of_a_stream_says_whether_a_get_opened_it(listening: bool) -> None:
    for prefix in ("w.s", "w-1.s-2"):
        assert is_listening(stream_name(prefix, 3, listening=listening)) is listening


def test_requests_of_a_lost_worker_fail_one_by_one_or_as_a_batch() -> None:
    revision = REVISIONS["2025-03-26"]
    one, other = (lost_message([identifier], revision) for identifier in (1, "b"))
    assert one.startswith(b"{")
    assert lost_message([1, "b"], revision) == b"[" + one + b"," + other + b"]"
    assert lost_message([], revision) == b""
