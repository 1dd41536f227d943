"""Edits of one module: those that become rules and give the same module again, and the others."""

from __future__ import annotations

import json
import re
import time

import pytest
from syrupy.assertion import SnapshotAssertion

from mcpgen.errors import AdoptedError
from mcpgen.package.adopted import edits, replay, rules

MODULE = "r2026_07_28/client.py"

WRITTEN = '''\
"""The client."""

from typing import Any, ClassVar

from msgspec import Struct, field

NAMES = ("a", "b")


def connect(url: str, *, timeout: float = 10.0) -> None:
    """Connects."""
    print(url, timeout)


class Tool(Struct):
    """A tool."""

    kind: ClassVar[str] = "tool"
    name: str
    """Its name."""
    title: str | None = None
    read_only: bool | None = field(name="readOnly", default=None)
    size: int = field(name="sizeInBytes")


class Client:
    def ping(self, timeout: float | None = None) -> None: ...

    async def call(self, name: str, retries=0, *, strict: bool) -> Any:
        """Calls a tool.

        Args:
            name: Its name.
        """
        fields = {"name": name}  # as on the wire
        return fields
'''


SECONDS = 10.0
"""Time of the processor that one comparison may take; it takes a fraction of that."""

FROM_PYTHON = re.compile(
    r"(?<=is no Python: ).*(?=; )|(?<=an expression, got ).*|(?<=TOML text, got ).*"
    r"|(?<=Python for the default of Client.call.self., got ).*|(?<=got )\"'.' was never.*"
)
"""What Python says of a text, which differs by its version."""


def without_python(text: str) -> str:
    """A text of mcpgen's without what Python says in it."""
    return FROM_PYTHON.sub("...", text)


def no_uses(name: str) -> str:
    """The package uses no name."""
    return ""


def edited(old: str, new: str) -> str:
    """The module with one edit."""
    assert old in WRITTEN
    return WRITTEN.replace(old, new, 1)


def replayed(text: str, found: edits.Edits) -> str:
    """A module with the rules of edits applied, which go through their file first."""
    named = [(f"rule-{number}", rule) for number, rule in enumerate(found.rules)]
    files = {MODULE: text}
    parsed = rules.parsed(rules.appended("", named), "pkg.adopted.toml")
    assert [(rule.name, rule.text) for rule in parsed] == named
    return replay.replayed(files, parsed, ())[MODULE]


ADOPTED = {
    "docstring of the module": ('"""The client."""', '"""Our client."""'),
    "docstring of a class": ('"""A tool."""', '"""A tool.\n\n    Of ours.\n    """'),
    "docstring of a member": ('"""Its name."""', '"""The \\\\ name."""'),
    "new docstring of a member": ("= None\n    read", '= None\n    """Shown."""\n    read'),
    "new docstring of a class": ("class Client:\n", 'class Client:\n    """Ours."""\n\n'),
    "new docstring on one line": ("None: ...", 'None:\n        """Pings."""\n        ...'),
    "docstring of a method": ("Args:\n            name: Its", "Args:\n            name: The"),
    "default of a parameter": ("float | None = None", "float | None = 5.0"),
    "default without a type": ("retries=0", "retries=(1, 2)"),
    "default of a keyword": ("timeout: float = 10.0", 'timeout: float = float("inf")'),
    "new default of a keyword": ("strict: bool", "strict: bool = True"),
    "new default of a parameter": ("url: str", 'url: str = "x"'),
    "default of a member": ("title: str | None = None", 'title: str | None = "\xe9"'),
    "new default of a member": ("name: str\n", 'name: str = "none"\n'),
    "default in a field": ("default=None", "default=True"),
    "new default in a field": ('"sizeInBytes")', '"sizeInBytes", default=0)'),
    "method": (
        "    def ping",
        "    # Ours.\n    def more(self) -> int:\n        return 1\n\n    def ping",
    ),
    "method with text": (
        "        return fields\n",
        (
            '        return fields\n\n    def more(self):\n        """Two\n\n        lines."""\n'
            '        return """a\n    b"""  # why\n'
        ),
    ),
    "property": (
        "    def ping",
        (
            "    @property\n    def size(self): ...\n\n"
            "    @size.setter\n    def size(self, n): ...\n\n    def ping"
        ),
    ),
    "function": ("class Tool", "async def more() -> None: ...\n\n\nclass Tool"),
    "renamed method": ("def ping", "def is_alive"),
    "renamed coroutine": ("async def call", "async def invoke"),
    "renamed function": ("def connect", "def open_connection"),
    "renamed member": ("read_only:", "readonly:"),
}


@pytest.mark.parametrize(("old", "new"), ADOPTED.values(), ids=ADOPTED)
def test_an_edit_becomes_one_rule_that_gives_the_same_module(old: str, new: str) -> None:
    after = edited(old, new)
    found = edits.compared(MODULE, WRITTEN, after, no_uses)
    assert found.refusals == []
    [rule] = found.rules
    again = replayed(WRITTEN, found)
    assert again != WRITTEN
    movable = [rule.target] if rule.kind == "add" else []
    left = edits.compared(MODULE, again, after, no_uses, movable)
    assert (left.rules, left.refusals) == ([], [])


def test_several_edits_become_as_many_rules() -> None:
    after = edited("timeout: float | None = None", "timeout: float | None = 5.0")
    after = after.replace('"""Calls a tool.', '"""Calls one tool.').replace("A tool", "Tools")
    found = edits.compared(MODULE, WRITTEN, after, no_uses)
    assert [rule.kind for rule in found.rules] == ["docstring", "default", "docstring"]
    assert edits.compared(MODULE, replayed(WRITTEN, found), after, no_uses).rules == []


def test_another_layout_is_no_edit() -> None:
    after = edited("url: str, *, timeout", "\n    url: str,\n    *,\n    timeout")
    found = edits.compared(MODULE, WRITTEN, after, no_uses)
    assert (found.rules, found.refusals) == ([], [])


REFUSED = {
    "body": ("print(url, timeout)", "print(url)"),
    "longer body": ("print(url, timeout)\n", "print(url, timeout)\n    print()\n"),
    "signature": ("strict: bool", "strict: int"),
    "further parameter": ("strict: bool", "strict: bool, loud: bool = False"),
    "removed default": ("timeout: float = 10.0", "timeout: float"),
    "removed method": ("    def ping(self, timeout: float | None = None) -> None: ...\n\n", ""),
    "removed docstring": ('    """A tool."""\n', ""),
    "decorator": ("    def ping", "    @staticmethod\n    def ping"),
    "base class": ("class Client:", "class Client(dict):"),
    "further import": ("from typing", "import os\nfrom typing"),
    "changed import": ("import Any, ClassVar", "import ClassVar, Any"),
    "further class": ("class Client:", "class Other: ...\n\n\nclass Client:"),
    "further member": ("    size: int", "    colour: str\n    size: int"),
    "type": ("title: str | None", "title: int | None"),
    "wire name": ('"readOnly"', '"ro"'),
    "constant of a class": ('= "tool"', '= "tools"'),
    "constant": ('("a", "b")', '("a",)'),
    "order": (
        '    name: str\n    """Its name."""\n    title: str | None = None\n',
        '    title: str | None = None\n    name: str\n    """Its name."""\n',
    ),
    "name on the wire": ("    title:", "    heading:"),
    "private name": ("def ping", "def _ping"),
    "second definition": ("    async def call", "    def ping(self): ...\n\n    async def call"),
    "comment": ("    def ping", "    # ours\n    def ping"),
    "removed comment": ("  # as on the wire", ""),
    "statement": ("NAMES =", "print()\nNAMES ="),
    "no Python": ("def ping", "def def"),
    "deep": ("NAMES =", f"NAMES = {'(' * 1000}"),
    "null": ("NAMES =", "\0"),
    "huge": ("NAMES =", "#" * edits.MAX_CHARACTERS),
}


@pytest.mark.parametrize(("old", "new"), REFUSED.values(), ids=REFUSED)
def test_another_edit_is_refused_with_its_place_and_reason(
    old: str, new: str, snapshot: SnapshotAssertion
) -> None:
    found = edits.compared(MODULE, WRITTEN, edited(old, new), no_uses)
    assert found.refusals
    assert [without_python(str(refusal)) for refusal in found.refusals] == snapshot


def test_a_name_that_the_package_uses_is_not_renamed() -> None:
    def uses(name: str) -> str:
        return replay.used({MODULE: WRITTEN, "other.py": f"client.{name}()"}, name)

    after = edited("def ping", "def is_alive")
    [refusal] = edits.compared(MODULE, WRITTEN, after, uses).refusals
    assert refusal.reason == "other.py:1 uses it"


RULE = """
[rules.mine]
kind = "{kind}"
module = "r2026_07_28/client.py"
target = "{target}"
{more}
"""

SPOILED = {
    "no TOML": ("rules = [", ""),
    "unknown key": (RULE, 'new = "x"\ncolour = "red"', "docstring", "Tool"),
    "no new": (RULE, "", "docstring", "Tool"),
    "unknown kind": (RULE, 'new = "x"', "delete", "Tool"),
    "path outside": ('[rules.a]\nkind = "docstring"\nmodule = "../a.py"\nnew = "x"', ""),
    "no module": ('[rules.a]\nkind = "docstring"\nmodule = "a.txt"\nnew = "x"', ""),
    "target": (RULE, 'new = "x"', "docstring", "Tool; x"),
    "no target": (RULE, 'new = "x"', "rename", ""),
    "old of an addition": (RULE, 'old = "x"\nnew = "def x(): ..."', "add", "x"),
    "parameter of a docstring": (RULE, 'new = "x"\nparameter = "y"', "docstring", "Tool"),
    "deep": (f"x = {'[' * 5000}", ""),
    "docstring gone": (RULE, 'old = "Another."\nnew = "x"', "docstring", "Tool"),
    "docstring new": (RULE, 'new = "x"', "docstring", "Tool"),
    "target gone": (RULE, 'new = "x"', "docstring", "Toool"),
    "default changed": (RULE, 'old = "1"\nnew = "2"', "default", "Tool.title"),
    "default, no expression": (RULE, 'old = "None"\nnew = "2); x(3"', "default", "Tool.title"),
    "old without an expression": (RULE, 'old = ")"\nnew = "2"', "default", "Tool.title"),
    "default of nothing": (RULE, 'new = "2"', "default", "Tool"),
    "no such parameter": (RULE, 'new = "2"\nparameter = "x"', "default", "Client.ping"),
    "default before none": (RULE, 'new = "2"\nparameter = "self"', "default", "Client.call"),
    "addition of a statement": (RULE, 'new = "print()"', "add", "Client.more"),
    "addition and more": (RULE, 'new = "def more(): ...\\nprint()"', "add", "Client.more"),
    "addition of nothing": (RULE, 'new = ""', "add", "Client.more"),
    "addition of another name": (RULE, 'new = "def x(): ..."', "add", "Client.more"),
    "addition that is no Python": (RULE, 'new = "def more("', "add", "Client.more"),
    "addition with a carriage return": (RULE, 'new = "def more(): ...\\r"', "add", "Client.more"),
    "addition of what is there": (RULE, 'new = "def ping(): ..."', "add", "Client.ping"),
    "addition to nothing": (RULE, 'new = "def x(): ..."', "add", "Clients.x"),
    "name of another": (RULE, 'new = "call"', "rename", "Client.ping"),
    "name that is none": (RULE, 'new = "a b"', "rename", "Client.ping"),
    "renamed class": (RULE, 'new = "Peer"', "rename", "Client"),
    "renamed on the wire": (RULE, 'new = "heading"', "rename", "Tool.title"),
}


@pytest.mark.parametrize("parts", SPOILED.values(), ids=SPOILED)
def test_a_rule_that_is_wrong_or_outdated_is_named(
    parts: tuple[str, ...], snapshot: SnapshotAssertion
) -> None:
    text, more, *rest = parts
    if rest:
        text = text.format(kind=rest[0], target=rest[1], more=more)
    with pytest.raises(AdoptedError) as caught:
        replay.replayed({MODULE: WRITTEN}, rules.parsed(text, "pkg.adopted.toml"), ())
    assert without_python(str(caught.value)) == snapshot


def test_a_rule_for_a_copied_module_is_refused() -> None:
    text = RULE.format(kind="docstring", target="Tool", more='old = "A tool."\nnew = "x"')
    with pytest.raises(AdoptedError, match="expected a rendered module, not a copied one"):
        replay.replayed({MODULE: WRITTEN}, rules.parsed(text, "pkg.adopted.toml"), {MODULE})


HOSTILE_EDITS = {
    "a deeper one": "x = " + "-" * 100_000 + "1",
    "a deep attribute": "x = a" + ".a" * 100_000,
    "statements without end": "x\n" * 50_000,
    "functions without end": "\n".join(f"def f{at}(): pass" for at in range(20_000)),
    "a form feed before a definition": "\x0cdef f(): pass",
}


@pytest.mark.parametrize("case", HOSTILE_EDITS)
def test_a_hostile_edit_is_refused_soon(case: str) -> None:
    text = f"{WRITTEN}\n\n{HOSTILE_EDITS[case]}\n"
    started = time.process_time()
    found = edits.compared(MODULE, WRITTEN, text, lambda name: "")
    assert time.process_time() - started < SECONDS
    assert not found.rules
    assert len(found.refusals) == 1
    assert len(str(found.refusals[0])) < 300


def test_a_default_that_is_nested_deep_is_refused() -> None:
    text = edited("timeout: float = 10.0", f"timeout: float = {'+'.join(['1'] * 970)}")
    [refusal] = edits.compared(MODULE, WRITTEN, text, no_uses).refusals
    assert "nested too deeply" in refusal.reason


def rule_file(kind: str, target: str, new: str, old: str = "None") -> str:
    """A file with one rule."""
    keys = {"kind": kind, "module": MODULE, "target": target, "new": new}
    keys |= {"old": old} if kind == "default" else {}
    return "[rules.a]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


HOSTILE_RULES = {
    "a deep default": rule_file("default", "Tool.title", "+".join(["1"] * 900)),
    "a deep old default": rule_file("default", "Tool.title", "1", "+".join(["1"] * 900)),
    "a deep target": rule_file("default", ".".join(["a"] * 5000), "1"),
    "parentheses": rule_file("default", "Tool.title", "(" * 100_000),
    "too many": "".join(
        rule_file("add", f"f{at}", f"def f{at}(): pass").replace("rules.a", f"rules.r{at}")
        for at in range(rules.MAX_RULES + 1)
    ),
}


@pytest.mark.parametrize("case", HOSTILE_RULES)
def test_a_hostile_rule_is_refused_in_one_short_line(case: str) -> None:
    with pytest.raises(AdoptedError) as raised:
        for rule in rules.parsed(HOSTILE_RULES[case], "x.toml"):
            replay.applied(WRITTEN, rule)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 2000
