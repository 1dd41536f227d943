"""Schemas in TypeScript: `schema.ts` of the specification, and declarations in `.d.ts` files.

`read` gives the declarations of a file, `document` the JSON Schema that they stand for. The steps:
comments -> parse (text to declarations) -> scope (names and operators) -> json_schema. Declarations
that are written with the types of Zod, as SDKs publish them, go through zod. Needs tree-sitter and
tree-sitter-typescript, which the extra `typescript` brings; imported when a file is parsed.
"""

from __future__ import annotations

from pathlib import Path

from mcpgen import paths
from mcpgen.errors import SchemaError, TypeScriptError
from mcpgen.input_files import is_typescript
from mcpgen.schema.typescript.core_types import with_core, without_core
from mcpgen.schema.typescript.json_schema import Fidelity, document
from mcpgen.schema.typescript.parse import MAX_BYTES, parse
from mcpgen.schema.typescript.syntax import Module

__all__ = ["Fidelity", "document", "is_typescript", "read", "with_core", "without_core"]


def read(path: Path) -> Module:
    """The declarations in a TypeScript file.

    Raises:
        TypeScriptError: The text is too large, is not TypeScript, or cannot be read in full.
        SchemaError: The file cannot be read.
    """
    source = paths.shown_path(path)
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SchemaError(source, "", "a readable file", error.strerror or str(error)) from error
    if len(text) > MAX_BYTES:
        expected = f"TypeScript text of at most {MAX_BYTES} bytes"
        raise TypeScriptError(source, 1, 1, expected, "more")
    return parse(text, source)
