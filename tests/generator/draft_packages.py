"""Packages of drafts: changed definitions of known revisions, and programs that use a package."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from generator import selections
from generator.command_line import output_of
from generator.schemas import TEXT, const, obj, ref
from mcpgen import schema
from mcpgen.model import schema_sources
from mcpgen.model.choice import selection
from mcpgen.package import build_request, output, pipeline

SERVER = """
from pkg import Server

server = Server("sums", page_size=1)

@server.tool()
def add(a: int) -> int:
    return a + 1

@server.prompt()
def greet(city: str) -> str:
    return "hi " + city

@server.resource("note://one")
def note() -> str:
    return "one"
"""
"""The beginning of programs that use the server of a draft."""


def definitions_of(name: str) -> dict[str, Any]:
    """The definitions of a known revision, to be changed."""
    document = json.loads((schema.entry(name).folder / "schema.json").read_text())
    text = json.dumps(document.get("$defs") or document["definitions"])
    definitions: dict[str, Any] = json.loads(text.replace("#/definitions/", "#/$defs/"))
    return definitions


def with_request(base: str, name: str, method: str, **more: Any) -> dict[str, Any]:
    """The definitions of a revision with another request of clients."""
    definitions = definitions_of(base)
    message = obj("method params", method=const(method), params=obj(x=TEXT))
    definitions |= {f"{name}Request": message, **more}
    definitions["ClientRequest"]["anyOf"].append(ref(f"{name}Request"))
    return definitions


def save_schema(folder: Path, definitions: Mapping[str, Any]) -> Path:
    """A schema file with these definitions."""
    path = folder / "schema.json"
    path.write_text(json.dumps({"$defs": definitions}))
    return path


def write_package(
    folder: Path,
    definitions: Mapping[str, Any],
    parts: Sequence[str] = (),
    stated: str = "",
    more: Sequence[str] = (),
) -> str:
    """Write the package `pkg` of a schema of these definitions; what was reported."""
    path, facts = save_schema(folder, definitions), folder / "facts.toml"
    facts.write_text(stated)
    features = ("methods", *more) if not parts or "server" in parts else tuple(more)
    request = build_request.BuildRequest(
        "pkg",
        (schema_sources.of_file(path, facts if stated else None),),
        selection=selection(tuple(parts), (), features=features),
    )
    reported: list[str] = []
    files = pipeline.build(request, reported.append, form=dict)
    output.write(folder / "pkg", files)
    selections.write_package(files, folder)  # with byte code
    return "\n".join(reported)


def check_program(folder: Path, program: str) -> None:
    """Run a program beside the package."""
    output_of(program, cwd=folder)
