"""The composite action of the repository: its steps run here, as a runner runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
EXPRESSION = re.compile(r"\$\{\{ inputs\.([a-z-]+) \}\}")
CONDITION = re.compile(r"inputs\.([a-z-]+) != ''")


def action() -> Any:
    """The document of the action."""
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Step:
    """The end of one step."""

    name: str
    code: int
    out: str


def run_steps(
    inputs: Mapping[str, str], work: Path, environment: Mapping[str, str], *names: str
) -> list[Step]:
    """Run steps as a runner does, until one fails."""
    document = action()
    given = {name: each["default"] for name, each in document["inputs"].items()} | {**inputs}
    steps: list[Step] = []
    for step in document["runs"]["steps"]:
        wanted = CONDITION.findall(step.get("if", ""))
        if step["name"] not in names or (wanted and not any(given[name] for name in wanted)):
            continue
        variables = {
            name: EXPRESSION.sub(lambda match: given[match[1]], value)
            for name, value in step.get("env", {}).items()
        }
        bash = shutil.which("bash")
        assert bash is not None
        done = subprocess.run(
            [bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=work,
            env={**os.environ, **environment, **variables},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        steps.append(Step(step["name"], done.returncode, done.stdout + done.stderr))
        if done.returncode:
            break
    return steps


def main() -> None:
    """Run the step that installs."""
    folder, requirement = Path(sys.argv[1]), sys.argv[2]
    path = folder / "path"
    environment = {"RUNNER_TEMP": f"{folder}", "GITHUB_PATH": f"{path}"}
    (step,) = run_steps({"mcpgen": requirement}, folder, environment, "Install mcpgen")
    if step.code:
        sys.exit(step.out)
    print(path.read_text(encoding="utf-8").strip())


if __name__ == "__main__":
    main()
