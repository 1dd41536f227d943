"""A package of `--models pydantic`, and code of its user, under pydantic's plugin for mypy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from generator.selections import NAMES, NEWEST, rendered, write_package

pytestmark = pytest.mark.typing

ERROR = re.compile(r"^([^:]+):(\d+): error: ", re.MULTILINE)
MODULE = f"r{NEWEST.replace('-', '_')}"
USER = f"""
from typing import assert_type

from pkg import decoder, encode
from pkg.{MODULE} import models

tool = models.Tool(name="add", input_schema={{"type": "object"}}, title="Add")
assert_type(tool.title, str | None)
text = models.TextContent(text="5", annotations=models.Annotations(priority=1))
result = models.CallToolResult(content=[text], structured_content={{"sum": 5}})
assert_type(decoder(models.CallToolResult)(encode(result)), models.CallToolResult)
models.Tool(input_schema={{"type": "object"}})  # expect: error
models.Tool(name=5, input_schema={{"type": "object"}})  # expect: error
models.Tool(name="add", inputSchema={{"type": "object"}})  # expect: error
models.Tool(name="add", input_schema={{"type": "object"}}, titel="Add")  # expect: error
tool.title = "Sum"  # expect: error
"""
OF_ALL = f"""
from typing import assert_type

from pkg import decoder, models
from pkg.{MODULE} import models as newest


class PricedTool(models.Tool, frozen=True):
    price: int


tool = PricedTool(name="add", input_schema={{"type": "object"}}, price=5)
assert_type(tool.price, int)
assert_type(decoder(models.Tool)(b"{{}}"), models.Tool)
assert_type(models.Tool.model_validate(tool), models.Tool)
block: newest.ContentBlock = newest.TextContent(text="5")
if isinstance(block, newest.ContentBlock):
    print(newest.EmptyResult(), models.Tool.model_json_schema())
PricedTool(name="add", input_schema={{"type": "object"}})  # expect: error
PricedTool(name="add", input_schema={{"type": "object"}}, price="5")  # expect: error
"""
SETTINGS = """
[mypy]
plugins = pydantic.mypy
strict = true

[pydantic-mypy]
init_forbid_extra = true
init_typed = true
warn_required_dynamic_aliases = true
"""


@pytest.mark.parametrize(("revisions", "user"), [((NEWEST,), USER), (NAMES, OF_ALL)])
def test_the_plugin_finds_wrong_lines_of_a_user_alone(
    tmp_path: Path, revisions: tuple[str, ...], user: str
) -> None:
    write_package(rendered("types", "all", revisions, "pydantic"), tmp_path)
    (tmp_path / "user.py").write_text(user, "utf-8")
    (tmp_path / "mypy.ini").write_text(SETTINGS, "utf-8")
    command = ("mypy", f"--cache-dir={os.devnull}", "user.py", "pkg")
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True
    )
    errors = {(file, int(line)) for file, line in ERROR.findall(done.stdout)}
    wrong = {number for number, line in enumerate(user.splitlines(), 1) if "# expect" in line}
    assert not done.stderr
    assert errors == {("user.py", line) for line in wrong}, done.stdout
