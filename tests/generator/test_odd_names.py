"""Methods and members with quotes, emoji and accents: readable in Python, the same on the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.schemas import TEXT, const, obj
from generator.test_accounting import spec_of
from generator.test_undecided_unions import check_program, published_definitions, write_package
from mcpgen import names

pytestmark = pytest.mark.lengthy

METHODS = ('say "hi"', "tools/\U0001f3a8", "{{ a }}", "a'b\\c", "/caf\xe9")

CALLS = """
import sys
import anyio
from pkg import Server
from pkg.rdraft.server import ServerHandlers
from pkg.testing import connected

METHODS = {methods!r}

class Handlers(ServerHandlers):
    pass

async def answer(self, params, ctx):
    return {{"text": params.artist_palette + params.ete, {extra}}}

for at in range(len(METHODS)):
    setattr(Handlers, f"odd{{at}}", answer)

server = Server("odd", handlers=[Handlers()])

async def main() -> None:
    async with connected(server) as pair:
        for at, method in enumerate(METHODS):
            result = await getattr(pair.client, f"odd{{at}}")(artist_palette="a", ete="b")
            assert result.text == "ab", result
            sent = [message for message in pair.sent if message.get("method") == method]
            assert {{"\U0001f3a8", "\xe9t\xe9"}} <= sent[-1]["params"].keys(), sent

anyio.run(main)
"""


def with_odd_names(name: str) -> tuple[dict[str, Any], str]:
    """The definitions of a revision with requests of odd names, and the key that holds them."""
    definitions, key = published_definitions(name)
    params = obj("\U0001f3a8 \xe9t\xe9", **{"\U0001f3a8": TEXT, "\xe9t\xe9": TEXT})
    result = obj("text", text=TEXT)
    if name == "2026-07-28":
        params["properties"]["_meta"] = {"$ref": f"#/{key}/RequestMetaObject"}
        params["required"].append("_meta")
        result = obj("text resultType", text=TEXT, resultType=TEXT)
    for at, method in enumerate(METHODS):
        definitions |= {
            f"Odd{at}Request": obj("method params", method=const(method), params=params),
            f"Odd{at}Result": result,
        }
        definitions["ClientRequest"]["anyOf"].append({"$ref": f"#/{key}/Odd{at}Request"})
    return definitions, key


@pytest.mark.parametrize("name", ["2025-06-18", "2026-07-28"])
def test_odd_names_are_called_from_python_and_sent_as_they_are(name: str, tmp_path: Path) -> None:
    definitions, key = with_odd_names(name)
    write_package(tmp_path, key, definitions, ("client", "server"))
    extra = '"resultType": "complete"' if name == "2026-07-28" else ""
    check_program(tmp_path, CALLS.format(methods=METHODS, extra=extra))


@pytest.mark.parametrize(
    ("wire", "python"),
    [
        ("\xe9t\xe9", "ete"),
        ("na\xefve", "naive"),
        ("\U0001f3a8", "artist_palette"),
        ("my \U0001f3a8", "my_artist_palette"),
        ("\u2b50\ufe0f", "white_medium_star"),
        ("\u043f\u043e\u0433\u043e\u0434\u0430", "pogoda"),
        ("\u5de5\u5177", "gong_ju"),
        ("\u044c", "cyrillic_small_letter_soft_sign"),
        ('say "hi"', "say_hi"),
        ("\ue000", "ue000"),
    ],
)
def test_a_name_beyond_ascii_is_spelled_out(wire: str, python: str) -> None:
    assert names.snake(wire) == python


@pytest.mark.parametrize("wire", ['a"b', "a\\b", "a\nb"])
@pytest.mark.parametrize("demand", ["", "other", "all"])
def test_a_member_that_no_field_can_have_is_noted(wire: str, demand: str, tmp_path: Path) -> None:
    definitions, key = published_definitions("2025-06-18")
    required = {"": [], "other": ["c"], "all": [wire, "c"]}[demand]
    definitions["Odd"] = {**obj("", **{wire: TEXT, "c": TEXT}), "required": required}
    built, _ = spec_of({key: definitions}, tmp_path)
    odd = built.models.normal.definitions["Odd"]
    assert list(odd.properties) == ["c"]
    assert wire not in odd.required
    noted = {note.pointer: note.text for note in built.models.normal.notes}
    assert noted[f"/$defs/Odd/properties/{wire}"].startswith("a name that no field can have")
