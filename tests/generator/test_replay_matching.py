"""Messages beside the recorded ones: by value, by shape, and by the rules of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.tables import table
from mcpgen.errors import SettingsError, UsageError
from mcpgen.replay.matching import Bindings, Matcher, Rule, Subject, read_rules

CALL = Subject("tools/call", "add")
FIRST = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
SECOND = "6fa459ea-ee8a-4ca4-894e-db77e160355e"


def result(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": members}


def text(words: str) -> dict[str, Any]:
    return result(content=[{"type": "text", "text": words}])


CASES: dict[str, Any] = table("matching")
"""A recorded message and one of now, with the rules of a user."""


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_messages_are_compared_by_value_by_shape_and_by_rules(
    case: dict[str, Any], snapshot: SnapshotAssertion
) -> None:
    matcher = Matcher([Rule(**rule) for rule in case.get("rules", ())])
    masked = case.get("masked", False)
    differences = matcher.differences(case["expected"], case["actual"], CALL, masked=masked)
    shown = [
        f"{each.pointer}: {each.text}: {each.expected!r}, now {each.actual!r}"
        for each in differences
    ]
    assert shown == snapshot


def test_an_id_stands_for_the_same_id_in_later_requests() -> None:
    bindings = Bindings()
    matcher = Matcher((), bindings)
    assert (
        matcher.differences(text(f"order {FIRST}"), text(f"order {SECOND}"), CALL, masked=False)
        == []
    )
    assert bindings.apply({"order": FIRST, "note": f"of {FIRST}"}) == {
        "order": SECOND,
        "note": f"of {SECOND}",
    }
    questions = [result(inputRequests={name: {}}) for name in "ab"]
    assert matcher.fits(questions[0], questions[1], CALL, masked=False)
    assert bindings.names == {}
    assert matcher.differences(questions[0], questions[1], CALL, masked=False) == []
    assert bindings.apply([{"inputResponses": {"a": 1, "c": FIRST}}, 1, "at 10:00:00"]) == [
        {"inputResponses": {"b": 1, "c": SECOND}},
        1,
        "at 10:00:00",
    ]
    cursors = [result(nextCursor=each) for each in ("a", "b", "c")]
    assert matcher.differences(cursors[0], cursors[1], CALL, masked=False) == []
    assert matcher.differences(cursors[0], cursors[2], CALL, masked=False) == []
    assert bindings.apply({"cursor": "a"}) == {"cursor": "c"}
    (other,) = matcher.differences(result(taskId=FIRST), result(taskId="new"), CALL, masked=False)
    assert other.text == f'expected "{SECOND}", as before'


def test_a_request_is_about_what_it_names() -> None:
    read = {"method": "resources/read", "params": {"uri": "a:b"}}
    assert Subject.of(read) == Subject("resources/read", "a:b")
    assert Subject.of({"method": "ping"}) == Subject("ping")
    assert Subject.of([read]) == Subject()
    assert Subject.of({"params": {"name": 1, "uri": "a:b"}}) == Subject("", "a:b")
    assert Subject.of({"method": "ping", "params": {"name": 1}}) == Subject("ping")


RULES = """
[[match]]
pointer = "/result/n"
by = "number"
tolerance = 1
reason = "a clock"
[[match]]
method = "tools/*"
name = "forecast"
pointer = "/result/**"
by = "pattern"
pattern = "[0-9]+"
[[match]]
pointer = "/result"
by = "shape"
"""


def test_rules_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(RULES)
    assert read_rules(file) == (
        Rule("/result/n", "number", tolerance=1.0),
        Rule("/result/**", "pattern", "tools/*", "forecast", "[0-9]+"),
        Rule("/result", "shape", "*", "*", "", 0.0),
    )
    file.write_text("")
    assert read_rules(file) == ()


MATCH = "[[match]]\npointer = '/a'\nby = "
WRONG_RULES = (
    "[[match]]\nby = 'shape'",
    "[[match]]\npointer = 'a'\nby = 'shape'",
    f"{MATCH}'guess'",
    f"{MATCH}'pattern'",
    f"{MATCH}'pattern'\npattern = '('",
    f"{MATCH}'shape'\npattern = 'a'",
    f"{MATCH}'shape'\nwhy = ''",
    f"{MATCH}'shape'\nname = 1",
    f"{MATCH}'number'\ntolerance = true",
    "match = [1]",
    "match = 1",
    "[[match]]\n[[ignore]]",
)


@pytest.mark.parametrize("content", WRONG_RULES)
def test_a_wrong_file_of_rules_says_where(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.toml").write_text(content)
    with pytest.raises(SettingsError) as refused:
        read_rules(Path("rules.toml"))
    assert str(refused.value) == snapshot


def test_a_file_of_rules_that_is_no_toml_or_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text("[[match")
    with pytest.raises(SettingsError, match="expected TOML"):
        read_rules(tmp_path / "rules.toml")
    with pytest.raises(UsageError, match=r"none\.toml: .*No such file"):
        read_rules(tmp_path / "none.toml")
