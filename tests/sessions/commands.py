"""The commands of a workflow."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path


def ci_commands(workflow: Path) -> list[list[str]]:
    """The commands that a workflow runs, as words."""
    lines = re.findall(r"^ +- run: (.+)$", workflow.read_text("utf-8"), re.MULTILINE)
    texts = [json.loads(line) if line.startswith('"') else line for line in lines]
    return [shlex.split(text) for text in texts]
