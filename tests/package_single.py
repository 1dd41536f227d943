"""Does what the README says, as a user would: generate, write the two files, run the client.

    python tests/package_single.py MCPGEN FOLDER REVISION...

MCPGEN is an installed tool of another environment; the interpreter that runs this has only what
the generated package needs.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
EXAMPLE = re.compile(r"^<!-- example: (\S+) -->\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples() -> dict[str, str]:
    """The README's files by name; each follows a comment that names it."""
    return dict(EXAMPLE.findall(README.read_text("utf-8")))


def run(command: list[str], folder: Path) -> str:
    """What a command prints; its failure ends this run."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, timeout=120)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def main(mcpgen: str, target: str, revisions: list[str]) -> None:
    """Go through the README once per revision, each in a package of its own."""
    if importlib.util.find_spec("mcpgen"):
        sys.exit("expected an environment without mcpgen: the package has to run without it")
    for revision in revisions:
        folder = Path(target) / revision
        folder.mkdir(parents=True, exist_ok=True)
        run([mcpgen, "--revision", revision, "-o", "pkg"], folder)
        for name, text in examples().items():
            (folder / name).write_text(text, "utf-8")
        printed = run([sys.executable, "client.py"], folder).strip()
        if not printed:
            sys.exit(f"{revision}: expected the README's client to print something")
        run([mcpgen, "check", "pkg"], folder)
        print(f"{revision}: {printed.splitlines()[-1]}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
