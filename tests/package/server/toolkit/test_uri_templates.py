"""URI templates read backwards, and URIs that are refused before anything is read."""

from __future__ import annotations

import re
import sys
from timeit import timeit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from kit.faults import refusals
from mcpgen_runtime import MissingExtraError
from mcpgen_runtime.server.toolkit.resources import URI_LIMIT
from mcpgen_runtime.server.toolkit.uri_templates import UriTemplate
from requirements import EVERY_REVISION

MATCHES = [
    ("weather://{city}/now", "weather://S%C3%A3o%20Paulo/now", {"city": "S\u00e3o Paulo"}),
    ("weather://{city}/now", "weather://a/b/now", None),
    ("weather://{city}/now", "weather://Oslo/nowhere", None),
    ("x:{a,b}", "x:1,2", {"a": "1", "b": "2"}),
    ("x:{list*}", "x:1,2,3", {"list": ["1", "2", "3"]}),
    ("file:///{+path}", "file:///a/b%20c,d", {"path": "a/b c,d"}),
    ("x:a{#part}", "x:a#b/c", {"part": "b/c"}),
    ("x:name{.ext}", "x:name.txt", {"ext": "txt"}),
    ("x://h{/a,b}", "x://h/1/2", {"a": "1", "b": "2"}),
    ("x://h{/path*}", "x://h/1/2", {"path": ["1", "2"]}),
    ("x:a{;k,j}", "x:a;k=1;j=2", {"k": "1", "j": "2"}),
    ("x://h{?q,l}", "x://h?l=1&q=2%263", {"q": "2&3", "l": "1"}),
    ("x://h{?q,l}", "x://h", {}),
    ("x://h{?q}", "x://h?q=1&q=2", None),
    ("x://h{?q*}", "x://h?q=1&q=2", {"q": ["1", "2"]}),
    ("x:/a?x=1{&b}", "x:/a?x=1&b=2", {"b": "2"}),
    ("x:{a}aa", "x:baaa", {"a": "ba"}),
    ("x:{a}.{b}", "x:1.2.3", {"a": "1.2", "b": "3"}),
    ("x:{+a}{+b}", "x:123", {"a": "1", "b": "23"}),
    ("x:a{#p}{+q}", "x:a#123", {"p": "1", "q": "23"}),
    ("x:{+a}{/b}", "x:q//b", {"a": "q/", "b": "b"}),
    ("x:a{;k}", "x:a;k", {"k": ""}),
    ("x:a{;k*}", "x:a;k=1;k=2", {"k": ["1", "2"]}),
    ("x://h{?q}", "x://h?", {}),
    ("x:/a?x=1{&b}", "x:/a?x=1&", {}),
]


@pytest.mark.requirement("resources.templates-rfc6570", revisions=EVERY_REVISION)
@pytest.mark.parametrize(("template", "uri", "values"), MATCHES)
def test_a_uri_gives_back_the_values_it_was_made_of(
    template: str, uri: str, values: dict[str, str] | None
) -> None:
    assert UriTemplate(template).match(uri) == values


def test_an_optional_variable_may_be_left_out() -> None:
    template = UriTemplate("x://h{/a,b}", frozenset({"b"}))
    assert template.match("x://h/1") == {"a": "1"}
    assert template.match("x://h/1/2") == {"a": "1", "b": "2"}
    assert UriTemplate("x://h{/a}/end", frozenset({"a"})).match("x://h/end") == {}


def test_a_template_knows_which_variables_are_lists() -> None:
    template = UriTemplate("x:{a}{/b*}{?c,d*}")
    assert (*template.names, *sorted(template.exploded)) == ("a", "b", "c", "d", "b", "d")


@pytest.mark.requirement("resources.custom-schemes-rfc3986", revisions=EVERY_REVISION)
def test_a_malformed_template_is_refused(snapshot: SnapshotAssertion) -> None:
    texts = ["x:{", "x:{}", "x:{{a}}", "x:{a b}", "x:{!a}", "x:{a:3}", "x:{a}/{a}", "x:{a:b}"]
    assert refusals(UriTemplate, [*texts, "{a}", "no scheme/{a}"]) == snapshot


def test_a_template_without_the_library_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "uritemplate", None)
    with pytest.raises(MissingExtraError, match="pip install uritemplate"):
        UriTemplate("x:{a}")


AMBIGUOUS = [
    "x://{+path*}/end",
    "x://h{#frag*}!",
    "x://{+a}/{+b}/{+c}/end",
    "x://{a}{b}{c}{d}/end",
    "x:{a}{.b*}{;c*}{/d*}",
    "x:{+a}{#b}{c*}z",
]


@pytest.mark.parametrize("template", AMBIGUOUS)
@pytest.mark.parametrize("filling", ["a", "a,", "/", ".", ";c", "#", ",", "a/"])
def test_a_uri_that_can_be_divided_in_many_ways_is_matched_soon(
    template: str, filling: str
) -> None:
    parsed = UriTemplate(template)
    uri = template.partition("{")[0] + filling * (URI_LIMIT // len(filling) - 10)
    seconds = timeit(lambda: parsed.match(uri), number=1)
    assert seconds < 1.0  # a matcher that goes back takes hours


PARTS = st.sampled_from(
    ["{a}", "{+b}", "{#c}", "{.d}", "{/e}", "{f*}", "{/g*}", "{;h}", "a", ",", "/"]
)
FORMS = {
    "{a}": "[^/?#,]+",
    "{+b}": ".+?",
    "{#c}": "#.+?",
    "{.d}": r"\.[^./?#,]+",
    "{/e}": "/[^/?#]+",
    "{f*}": "[^/?#,]+(?:,[^/?#,]+)*",
    "{/g*}": "/[^/?#]+(?:/[^/?#]+)*",
    "{;h}": ";h=?[^;/?#]*",
}


@settings(max_examples=400)
@given(parts=st.lists(PARTS, max_size=5, unique=True), uri=st.text("a,/#.;h=", max_size=12))
def test_a_template_matches_what_its_regular_expression_matches(parts: list[str], uri: str) -> None:
    pattern = "x:y" + "".join(FORMS.get(part, re.escape(part)) for part in parts)
    whole = f"x:y{uri}"
    values = UriTemplate("x:y" + "".join(parts)).match(whole)
    assert (values is not None) == (re.fullmatch(pattern, whole) is not None)
