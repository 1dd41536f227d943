"""Recorded answers by method and params, and the places of what a server sends besides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.shop_sessions import write_trace
from mcpgen.replay import recording
from mcpgen.replay.playback import Miss, Playback, SequentialPlayback, UnorderedPlayback
from mcpgen.replay.scenes import Play, play_of

REVISION = "2025-06-18"
OPENING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sent", {"id": 0, "method": "initialize", "params": {"protocolVersion": REVISION}}),
    (
        "received",
        {
            "id": 0,
            "result": {
                "protocolVersion": REVISION,
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "shop", "version": "2"},
                "instructions": "Order first.",
            },
        },
    ),
    ("sent", {"method": "notifications/initialized"}),
)
CHANGED = ("received", {"method": "notifications/tools/list_changed"})


def call(number: int, **params: Any) -> tuple[str, dict[str, Any]]:
    """A call of a tool."""
    return "sent", {"id": number, "method": "tools/call", "params": params}


def answer(number: int, text: str) -> tuple[str, dict[str, Any]]:
    """The result of a call."""
    return "received", {"id": number, "result": {"content": [{"type": "text", "text": text}]}}


def order(number: int, item: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    """A call of the tool `order`."""
    return call(number, name="order", arguments={"item": item}, **more)


def play(folder: Path, *rows: tuple[str, dict[str, Any]], masked: bool = False) -> Play:
    """The play of a trace that a client wrote, after the opening of its session."""
    more = {"masked": True} if masked else {}
    path = write_trace(folder / "trace.jsonl", *OPENING, *rows, **more)
    return play_of(recording.read(str(path)), None)


def take(playback: Playback, item: Any, **more: Any) -> str:
    """The text of the answer to an order; that of the error after a colon."""
    params = order(0, item, **more)[1]["params"]
    taken = playback.take("tools/call", params)
    if isinstance(taken, Miss):
        return f": {taken.text}"
    text: str = taken.answer.value["result"]["content"][0]["text"] if taken.answer else ""
    return text


def test_a_play_has_the_description_of_the_server(tmp_path: Path) -> None:
    recorded = play(tmp_path)
    assert recorded.revision == REVISION
    assert recorded.info == {"name": "shop", "version": "2"}
    assert recorded.capabilities == {"tools": {"listChanged": True}}
    assert recorded.instructions == "Order first."
    assert recorded.scenes == ()
    rows = (OPENING[0], call(1), ("received", {"id": 1, "result": {"capabilities": {}}}))
    (session,) = recording.read(str(write_trace(tmp_path / "unopened.jsonl", *rows)))
    undescribed = play_of([session], None)
    assert (undescribed.info, undescribed.capabilities) == ({}, None)


def methods(messages: tuple[recording.Message, ...]) -> list[str]:
    return [message.method for message in messages]


def test_messages_of_no_request_keep_their_places(tmp_path: Path) -> None:
    updated = ("received", {"method": "notifications/resources/updated", "params": {"uri": "a:b"}})
    rows = (CHANGED, order(1, "fig"), updated, answer(1, "ok"), CHANGED)
    recorded = play(tmp_path, *rows, order(2, "nut"), answer(2, "ok"))
    changed, update = "notifications/tools/list_changed", "notifications/resources/updated"
    assert methods(recorded.opening) == [changed]
    first, second = recorded.scenes
    assert (methods(first.before), methods(first.after)) == ([update], [changed])
    assert (second.before, second.after) == ((), ())


def test_with_two_open_requests_the_newer_one_counts(tmp_path: Path) -> None:
    rows = (order(1, "fig"), order(2, "nut"), answer(1, "one"), CHANGED, answer(2, "two"))
    first, second = play(tmp_path, *rows).scenes
    assert (first.before, first.after) == ((), ())
    assert len(second.before) == 1
    _, unanswered = play(
        tmp_path, order(1, "fig"), order(2, "nut"), CHANGED, answer(1, "one")
    ).scenes
    assert (len(unanswered.before), unanswered.after) == (1, ())


def test_a_cancelled_request_takes_no_messages_of_others(tmp_path: Path) -> None:
    cancelled = ("sent", {"method": "notifications/cancelled", "params": {"requestId": 1}})
    rows = (order(1, "fig"), cancelled, order(2, "nut"), answer(2, "ok"), CHANGED)
    first, second = play(tmp_path, *rows).scenes
    assert (first.answer, first.before, first.after) == (None, (), ())
    assert methods(second.after) == ["notifications/tools/list_changed"]


def test_equal_params_are_preferred_to_the_same_shape(tmp_path: Path) -> None:
    day = "2026-11-01T10:00:00Z"
    rows = (
        *(order(1, day), answer(1, "first")),
        *(order(2, "2026-11-02T10:00:00Z"), answer(2, "second")),
    )
    playback = UnorderedPlayback(play(tmp_path, *rows).scenes)
    assert take(playback, "2026-11-02T10:00:00Z") == "second"
    assert take(playback, "2031-01-01T00:00:00Z") == "first"
    assert playback.unplayed == []


@pytest.mark.parametrize("kind", [UnorderedPlayback, SequentialPlayback])
def test_members_of_meta_do_not_count(kind: Any, tmp_path: Path) -> None:
    rows = (order(1, "fig", _meta={"progressToken": 7}), answer(1, "ok"))
    playback = kind(play(tmp_path, *rows).scenes)
    assert take(playback, "fig", _meta={"com.example/trace": "x"}) == "ok"


def test_answers_in_a_retry_may_be_any(tmp_path: Path) -> None:
    ann, bo, cy = (
        {
            "inputResponses": {"q": {"action": "accept", "content": {"name": name}}},
            "requestState": "s",
        }
        for name in ("Ann", "Bo", "Cy")
    )
    of_ann = (order(1, "fig", **ann), answer(1, "for Ann"))
    rows = (*of_ann, order(2, "fig", **bo), answer(2, "for Bo"))
    playback = UnorderedPlayback(play(tmp_path, *rows).scenes)
    assert take(playback, "fig", **bo) == "for Bo"
    assert take(playback, "fig", **cy) == "for Ann"
    assert take(playback, "fig", **{**cy, "inputResponses": {"other": {}}}).startswith(": ")


def test_masked_values_stand_for_any_text(tmp_path: Path) -> None:
    rows = (order(1, "***"), answer(1, "ok"))
    playback = UnorderedPlayback(play(tmp_path, *rows, masked=True).scenes)
    assert take(playback, "the real secret") == "ok"


def test_a_request_after_the_last_one_is_refused_in_sequence(tmp_path: Path) -> None:
    rows = (order(1, "fig"), answer(1, "ok"), order(2, "nut"), answer(2, "fine"))
    playback = SequentialPlayback(play(tmp_path, *rows).scenes)
    assert (take(playback, "fig"), take(playback, "nut")) == ("ok", "fine")
    assert take(playback, "nut") == ": the trace is at its end, after 2 requests"
    assert (len(playback.missed), len(playback.unplayed)) == (1, 0)


@pytest.mark.parametrize(
    ("kind", "where", "other"),
    [
        (
            UnorderedPlayback,
            "the trace has no request with these params; the nearest one, in line 4, has",
            "the trace has no such request",
        ),
        (
            SequentialPlayback,
            "expected the request of line 4 next, which has",
            "expected tools/call next, as in line 4",
        ),
    ],
)
def test_a_miss_shows_the_nearest_request_and_five_differences(
    kind: Any, where: str, other: str, tmp_path: Path
) -> None:
    arguments: dict[str, Any] = {"a": "x" * 498, **dict.fromkeys("bcdef", 0)}
    playback = kind(play(tmp_path, call(1, name="order", arguments=arguments)).scenes)
    came = {"name": "order", "arguments": {**dict.fromkeys("abcde", 1), "g": 1}}
    taken = playback.take("tools/call", came)
    assert taken.text.startswith(f'{where} "xxx')
    assert taken.text.endswith(" at /params/arguments/a, not 1, and 6 more")
    assert playback.take("tools/list", {}).text == other
    assert playback.missed == [f"tools/call: {taken.text}", f"tools/list: {other}"]
    assert len(playback.unplayed) == 1
    nearest, rows = taken.data["nearest"], taken.data["differences"]
    assert (nearest["line"], nearest["method"]) == (4, "tools/call")
    assert (len(nearest["params"]), nearest["params"][-4:]) == (503, "x...")
    assert rows == [
        {"pointer": f"/params/arguments/{name}", "recorded": arguments[name], "received": 1}
        for name in "abcde"
    ]
