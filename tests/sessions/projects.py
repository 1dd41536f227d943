"""The projects of `mcpgen new`, and that of the tutorial, checked as their own CI would."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import nox

from .environments import ROOT, UV, fresh, install_into

SKELETONS = {
    "server": ("server", "plain-server"),
    "client": ("client", "plain-client"),
    "server-stdio": ("server", "stdio-server", "-r", "latest", "--transport", "stdio", "--app"),
    "client-stdio": ("client", "stdio-client", "-r", "latest", "--transport", "stdio"),
    "server-mirror": ("server", "mirror-server", "-r", "latest", "--from", "LISTS"),
    "client-mirror": ("client", "mirror-client", "-r", "2025-03-26", "--from", "LISTS"),
}
"""The projects that are checked, by folder: the words of `mcpgen new`."""
TUTORIAL = "tutorial"
"""The folder of the tutorial's project, here and in `examples`."""
HERE_TOO = "--no-respect-gitignore"  # has Ruff look at files below `.nox`, which git ignores


def check_projects(session: nox.Session, work: Path) -> None:
    """Write each project, run the commands of its CI, and serve from what its image would hold."""
    shutil.rmtree(work / "projects", ignore_errors=True)
    (work / "projects").mkdir()
    scripts = fresh(session, work / "user")
    lists = ROOT / "tests" / "generator" / "weather.json"
    with session.chdir(work / "projects"):
        for name, words in SKELETONS.items():
            words = tuple(word.replace("LISTS", f"{lists}") for word in words)
            session.run("mcpgen", "new", *words, "-o", name, "--mcpgen", f"{ROOT}")
        without = shutil.ignore_patterns("protocol")  # which a developer may have there
        shutil.copytree(ROOT / "examples" / TUTORIAL, TUTORIAL, ignore=without)
        with session.chdir(TUTORIAL):
            session.run("mcpgen", "generate", "-q")
    # Of what projects import, one run of mypy leaves its findings to the next.
    mypy_cache = {"MYPY_CACHE_DIR": f"{work / 'mypy'}"}
    # The session's own environment comes before that of the project on the path.
    interpreter = ["--pythonpath", f"{scripts / 'python'}"]
    is_first = True
    names = sorted(SKELETONS, key=lambda name: "stdio" not in name)  # before HTTP is installed
    for name in (*names, TUTORIAL):
        with session.chdir(work / "projects" / name):
            path = os.pathsep.join((f"{scripts}", os.environ["PATH"]))
            for program, *rest in ci_commands(Path(".github/workflows/ci.yml")):
                if program == "pip" and UV:
                    if is_first or f"{ROOT}" not in rest:  # mcpgen is there
                        install_into(session, f"{scripts / 'python'}", *rest[1:])
                    continue
                more = {"ruff": [HERE_TOO], "pyright": interpreter}.get(program, [])
                session.run(f"{scripts / program}", *rest, *more, env={"PATH": path, **mypy_cache})
        is_first = False
    python = fresh(session, work / "container") / "python"
    shutil.rmtree(work / "image", ignore_errors=True)
    project = work / "projects" / "server"
    serve = ("tests/serves_from_image.py", f"{project}", f"{python}", f"{work / 'image'}")
    session.run("python", *serve)


def ci_commands(workflow: Path) -> list[list[str]]:
    """The commands that a workflow runs, as words."""
    lines = re.findall(r"^ +- run: (.+)$", workflow.read_text("utf-8"), re.MULTILINE)
    texts = [json.loads(line) if line.startswith('"') else line for line in lines]
    return [shlex.split(text) for text in texts]
