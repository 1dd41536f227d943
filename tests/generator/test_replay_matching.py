"""Messages beside the recorded ones: by value, by shape, and by the rules of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.tables import table
from mcpgen.errors import SettingsError
from mcpgen.replay.matching import Bindings, Matcher, Rule, Subject, read_rules

CALL = Subject("tools/call", "add")
FIRST = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
SECOND = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
TABLES: dict[str, Any] = table("matching")
"""Members of recorded results and of others, with the places where they differ."""


def result(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": members}


def text(words: str) -> dict[str, Any]:
    return result(content=[{"type": "text", "text": words}])


def pointers(expected: Any, actual: Any, *rules: Rule, masked: bool = False) -> list[str]:
    found_at = Matcher(rules).differences(expected, actual, CALL, masked=masked)
    return [each.pointer for each in found_at]


@pytest.mark.parametrize(("expected", "actual"), TABLES["same"].values(), ids=TABLES["same"])
def test_values_of_one_session_match_by_shape(expected: Any, actual: Any) -> None:
    assert pointers(result(**expected), result(**actual)) == []


def test_the_id_of_a_request_does_not_count() -> None:
    assert pointers({"id": 1}, {"id": "other"}) == []


@pytest.mark.parametrize(
    ("expected", "actual", "differences"), TABLES["different"].values(), ids=TABLES["different"]
)
def test_other_values_are_differences(expected: Any, actual: Any, differences: list[str]) -> None:
    assert pointers(result(**expected), result(**actual)) == differences


def test_a_tool_that_is_new_moves_no_other() -> None:
    old = result(tools=[{"name": "b", "description": "B"}])
    new = result(tools=[{"name": "a"}, {"name": "b", "description": "C"}])
    assert pointers(old, new) == ["/result/tools/1/description", "/result/tools/0"]


def test_named_items_in_another_order_are_one_difference() -> None:
    old = result(tools=[{"name": "a"}, {"name": "b"}])
    assert pointers(old, result(tools=old["result"]["tools"][::-1])) == ["/result/tools"]


def test_an_id_stands_for_the_same_id_in_later_requests() -> None:
    bindings = Bindings()
    matcher = Matcher((), bindings)
    assert matcher.differences(text(f"order {FIRST}"), text(f"order {SECOND}"), CALL) == []
    assert bindings.apply({"order": FIRST, "note": f"of {FIRST}"}) == {
        "order": SECOND,
        "note": f"of {SECOND}",
    }
    questions = [result(inputRequests={name: {}}) for name in "ab"]
    assert matcher.fits(questions[0], questions[1], CALL)
    assert bindings.names == {}
    assert matcher.differences(questions[0], questions[1], CALL) == []
    assert bindings.apply([{"inputResponses": {"a": 1, "c": FIRST}}, 1, "at 10:00:00"]) == [
        {"inputResponses": {"b": 1, "c": SECOND}},
        1,
        "at 10:00:00",
    ]
    cursors = [result(nextCursor=each) for each in ("a", "b", "c")]
    assert matcher.differences(cursors[0], cursors[1], CALL) == []
    assert matcher.differences(cursors[0], cursors[2], CALL) == []
    assert bindings.apply({"cursor": "a"}) == {"cursor": "c"}
    (other,) = matcher.differences(result(taskId=FIRST), result(taskId="new"), CALL)
    assert other.text == f'expected "{SECOND}", as before'


@pytest.mark.parametrize(
    ("masked", "expected"), [(True, []), (False, ["/result/key", "/result/url"])]
)
def test_masked_values_stand_for_any(masked: bool, expected: list[str]) -> None:
    old = result(key="***", url="https://***@example.com/")
    new = result(key=["a"], url="https://ada:pass@example.com/")
    assert pointers(old, new, masked=masked) == expected
    assert pointers(old, result(key=None, url=new["result"]["url"]), masked=True) == ["/result/key"]
    assert pointers(result(n="a *** c"), result(n="a b d"), masked=True) == ["/result/n"]
    by_first, by_second = (text(f"*** at 09:44:36 by {each}") for each in (FIRST, SECOND))
    assert pointers(by_first, by_second, masked=True) == []


def at_n(way: Any, **more: Any) -> Rule:
    return Rule("/result/n", way, **more)


@pytest.mark.parametrize(
    ("rule", "expected", "actual", "differences"),
    [
        (at_n("ignore"), 1, ..., []),
        (at_n("ignore"), ..., 1, []),
        (at_n("value"), 1, ..., [""]),
        (at_n("shape"), 1, 2, []),
        (at_n("shape"), 1, "2", [""]),
        (at_n("shape"), None, False, [""]),
        (at_n("shape"), {"a": 1}, {"b": 1}, ["/a", "/b"]),
        (at_n("shape"), {"a": 1, "b": {"c": 1}}, {"a": "", "b": {"c": 2}}, ["/a"]),
        (at_n("shape"), {"a": 1}, ["a"], [""]),
        (at_n("shape"), ["a"], {"a": 1}, [""]),
        (at_n("shape"), ["a"], ["b", "c"], []),
        (at_n("shape"), ["a"], ["b", 1], ["/1"]),
        (at_n("shape"), [], [1], []),
        (
            at_n("shape"),
            [{"a": 1}, 1],
            [{"a": 2}, {"b": 1}, {"a": ""}, 2],
            [*("/1/a", "/1/b"), "/2/a"],
        ),
        (at_n("unordered"), [1, 2], [2, 1], []),
        (at_n("unordered"), [1, 2], [2, 2], ["/0", "/1"]),
        (at_n("unordered"), [1], [1, 1], ["/1"]),
        (at_n("unordered"), [1, 2], [2], ["/0"]),
        (at_n("unordered"), [1], 1, [""]),
        (at_n("unordered"), 1, [1], [""]),
        (at_n("number"), 1, 1.5, [""]),
        (at_n("number", tolerance=0.5), 1, 1.5, []),
        (at_n("number", tolerance=0.5), 1, 1.6, [""]),
        (at_n("number", tolerance=0.5), 1, "1", [""]),
        (at_n("number", tolerance=0.5), "1", 9, []),
        (at_n("pattern", pattern=r"\d+ ms"), "1 ms", "22 ms", []),
        (at_n("pattern", pattern=r"\d+ ms"), "1 ms", "soon", [""]),
        (at_n("pattern", pattern=r"\d+"), "1", "1 ms", [""]),
        (at_n("pattern", pattern=r"\d+"), 1, 1, [""]),
        (Rule("/result/**", "ignore"), {"a": 1}, {"a": 2}, []),
        (Rule("/**/a", "ignore"), {"a": 1, "b": 1}, {"a": 2, "b": 2}, ["/b"]),
        (Rule("/result/*/a", "ignore"), {"a": 1}, {"a": 2}, []),
        (Rule("/result/*/a", "ignore"), {"b": {"a": 1}}, {"b": {"a": 2}}, ["/b/a"]),
        (Rule("/result/n/a~1b~0", "ignore"), {"a/b~": 1}, {"a/b~": 2}, []),
        (at_n("ignore", name="multiply"), 1, 2, [""]),
        (at_n("ignore", name="a*"), 1, 2, []),
        (at_n("ignore", method="tools/*"), 1, 2, []),
        (at_n("ignore", method="prompts/*", name="add"), 1, 2, [""]),
    ],
)
def test_rules_say_how_values_are_compared(
    rule: Rule, expected: Any, actual: Any, differences: list[str]
) -> None:
    old, new = (result() if each is ... else result(n=each) for each in (expected, actual))
    assert pointers(old, new, rule) == [f"/result/n{each}" for each in differences]


def test_a_request_is_about_what_it_names() -> None:
    read = {"method": "resources/read", "params": {"uri": "a:b"}}
    assert Subject.of(read) == Subject("resources/read", "a:b")
    assert Subject.of({"method": "ping"}) == Subject("ping")
    assert Subject.of([read]) == Subject()
    assert Subject.of({"params": {"name": 1, "uri": "a:b"}}) == Subject("", "a:b")
    assert Subject.of({"method": "ping", "params": {"name": 1}}) == Subject("ping")


def test_the_last_rule_for_a_place_counts() -> None:
    assert pointers(result(n=1), result(n=2), at_n("ignore"), at_n("value")) == ["/result/n"]


def test_rules_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(
        '[[match]]\npointer = "/result/n"\nby = "number"\ntolerance = 1\nreason = "a clock"\n'
    )
    assert read_rules(file) == (Rule("/result/n", "number", tolerance=1.0),)


@pytest.mark.parametrize(
    ("content", "at"),
    [
        ("[[match]]\nby = 'shape'", "/match/0/pointer"),
        ("[[match]]\npointer = '/a'\nby = 'guess'", "/match/0/by"),
        ("[[match]]\npointer = '/a'\nby = 'pattern'", "/match/0"),
        ("[[match]]\npointer = '/a'\nby = 'pattern'\npattern = '('", "/match/0/pattern"),
        ("[[match]]\npointer = '/a'\nby = 'shape'\nwhy = ''", "/match/0/why"),
        ("[[match]]\npointer = 'a'\nby = 'shape'", "/match/0/pointer"),
        ("[[match]]\npointer = '/a'\nby = 'shape'\npattern = 'a'", "/match/0"),
        ("[[match]]\npointer = '/a'\nby = 'shape'\nname = 1", "/match/0/name"),
        ("[[match]]\npointer = '/a'\nby = 'number'\ntolerance = true", "/match/0/tolerance"),
        ("match = [1]", "/match/0"),
        ("[[ignore]]", ""),
    ],
)
def test_a_wrong_file_of_rules_says_where(tmp_path: Path, content: str, at: str) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(content)
    with pytest.raises(SettingsError) as raised:
        read_rules(file)
    assert raised.value.pointer == at
