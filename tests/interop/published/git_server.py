"""The tools of PyPI's mcp-server-git on the generated package."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import git
from git.exc import ODBError
from pydantic import Field

from mcpgen_runtime import Server, ToolAnnotations, ToolError

LINES = 3
EXPECTED = (ValueError, LookupError, OSError, git.GitError, ODBError)
ONE_AT_A_TIME = threading.Lock()

Date = Annotated[str | None, Field(description="ISO 8601, `2 weeks ago`, `Jan 15 2024`")]
Sha = Annotated[str | None, Field(description="hash of a commit; nothing for all branches")]
Kind = Annotated[str, Field(description="local, remote or all")]
KINDS = {"local": [], "remote": ["-r"], "all": ["-a"]}


def hints(*, reads: bool = False, destroys: bool = False, again: bool = False) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=reads,
        destructive_hint=destroys,
        idempotent_hint=reads or again,
        open_world_hint=False,
    )


READS = hints(reads=True)
WRITES = hints()


@contextmanager
def git_errors() -> Iterator[None]:
    """One call at a time, since all share the index; the model reads what git refuses."""
    try:
        with ONE_AT_A_TIME:
            yield
    except EXPECTED as error:
        raise ToolError(str(error)) from error


def no_option(what: str, value: str | None) -> None:
    if value and value.startswith("-"):
        raise ToolError(f"Invalid {what}: '{value}' - cannot start with '-'")


def patches(commit: git.Commit) -> Iterator[str]:
    """The changes of a commit, one file after another."""
    before = commit.parents[0] if commit.parents else None
    changes = (
        before.diff(commit, create_patch=True)
        if before
        else commit.diff(git.NULL_TREE, create_patch=True)
    )
    for change in changes:
        old = "/dev/null" if change.new_file or change.a_path is None else f"a/{change.a_path}"
        new = "/dev/null" if change.deleted_file or change.b_path is None else f"b/{change.b_path}"
        text = change.diff or b""
        yield f"\n--- {old}\n+++ {new}\n"
        yield text if isinstance(text, str) else text.decode(errors="replace")


def entry(commit: git.Commit) -> str:
    return (
        f"Commit: {commit.hexsha}\nAuthor: {commit.author}\n"
        f"Date: {commit.authored_datetime}\nMessage: {commit.message!s}\n"
    )


server = Server("mcp-git", version="1.0")
allowed: Path | None = None


def open_repository(repo_path: str) -> git.Repo:
    if allowed is not None and not Path(repo_path).resolve().is_relative_to(allowed.resolve()):
        raise ToolError(
            f"Repository path '{repo_path}' is outside the allowed repository '{allowed}'"
        )
    return git.Repo(repo_path)


@server.tool(structured=False, annotations=READS)
@git_errors()
def git_status(repo_path: str) -> str:
    """Show the changes of the working tree."""
    return f"Repository status:\n{open_repository(repo_path).git.status()}"


@server.tool(structured=False, annotations=READS)
@git_errors()
def git_diff_unstaged(repo_path: str, context_lines: int = LINES) -> str:
    """Changes that are not staged."""
    return f"Unstaged changes:\n{open_repository(repo_path).git.diff(f'--unified={context_lines}')}"


@server.tool(structured=False, annotations=READS)
@git_errors()
def git_diff_staged(repo_path: str, context_lines: int = LINES) -> str:
    """Changes that the next commit will have."""
    changes = open_repository(repo_path).git.diff(f"--unified={context_lines}", "--cached")
    return f"Staged changes:\n{changes}"


@server.tool(structured=False, annotations=READS)
@git_errors()
def git_diff(repo_path: str, target: str, context_lines: int = LINES) -> str:
    """Changes since a branch or commit."""
    no_option("target", target)
    repo = open_repository(repo_path)
    repo.rev_parse(target)
    return f"Diff with {target}:\n{repo.git.diff(f'--unified={context_lines}', target)}"


@server.tool(structured=False, annotations=WRITES)
@git_errors()
def git_commit(repo_path: str, message: str) -> str:
    """Commit what is staged."""
    repo = open_repository(repo_path)
    changed = repo.index.diff(repo.head.commit) if repo.head.is_valid() else repo.index.entries
    if not changed:
        raise ToolError("No changes staged for commit: git_add stages them first")
    return f"Changes committed successfully with hash {repo.index.commit(message).hexsha}"


@server.tool(structured=False, annotations=hints(again=True))
@git_errors()
def git_add(repo_path: str, files: Annotated[list[str], Field(min_length=1)]) -> str:
    """Stage files; `.` stages all."""
    repo = open_repository(repo_path)
    root = Path(repo.working_dir).resolve()
    for file in files:
        if not (root / file).resolve().is_relative_to(root):
            raise ToolError(f"Path '{file}' is outside the repository '{root}'")
    before = repo.git.ls_files("--stage")
    repo.git.add("--", *files)
    if repo.git.ls_files("--stage") == before:
        return "No changes were staged: git_status shows what is modified"
    return "Files staged successfully"


@server.tool(structured=False, annotations=hints(destroys=True, again=True))
@git_errors()
def git_reset(repo_path: str) -> str:
    """Unstage everything."""
    open_repository(repo_path).index.reset()
    return "All staged changes reset"


@server.tool(structured=False, annotations=READS)
@git_errors()
def git_log(
    repo_path: str,
    max_count: int = 10,
    start_timestamp: Date = None,
    end_timestamp: Date = None,
) -> str:
    """The newest commits, also of a span of time."""
    no_option("start_timestamp", start_timestamp)
    no_option("end_timestamp", end_timestamp)
    span = {"since": start_timestamp, "until": end_timestamp}
    options: dict[str, Any] = {name: value for name, value in span.items() if value}
    commits = open_repository(repo_path).iter_commits(max_count=max_count, **options)
    return "Commit history:\n" + "\n".join(map(entry, commits))


@server.tool(structured=False, annotations=WRITES)
@git_errors()
def git_create_branch(repo_path: str, branch_name: str, base_branch: str | None = None) -> str:
    """Create a branch from another one, or from the current one."""
    no_option("branch name", branch_name)
    no_option("base branch", base_branch)
    repo = open_repository(repo_path)
    if base_branch is None and repo.head.is_detached:
        raise ToolError("HEAD is detached: expected a base_branch")
    if any(head.name == branch_name for head in repo.heads):
        raise ToolError(f"Cannot create branch '{branch_name}': it already exists")
    base = repo.references[base_branch] if base_branch else repo.active_branch
    repo.create_head(branch_name, base.commit)
    return f"Created branch '{branch_name}' from '{base.name}'"


@server.tool(structured=False, annotations=WRITES)
@git_errors()
def git_checkout(repo_path: str, branch_name: str) -> str:
    """Switch to a branch or commit."""
    no_option("branch name", branch_name)
    repo = open_repository(repo_path)
    repo.rev_parse(branch_name)
    repo.git.checkout(branch_name)
    if repo.head.is_detached:
        return f"HEAD is now detached at {repo.head.commit.hexsha[:7]}"
    return f"Switched to branch '{repo.active_branch.name}'"


@server.tool(structured=False, annotations=READS)
@git_errors()
def git_show(repo_path: str, revision: str) -> str:
    """A commit, or a file or folder of one as `revision:path`."""
    no_option("revision", revision)
    repo = open_repository(repo_path)
    shown = repo.rev_parse(revision)
    if isinstance(shown, git.Blob):
        text: bytes = shown.data_stream.read()
        return text.decode(errors="replace")
    if isinstance(shown, git.Tree):
        return "\n".join(f"{each.name}{'/' * isinstance(each, git.Tree)}" for each in shown)
    commit = repo.commit(revision)
    author, date = commit.author, commit.authored_datetime.strftime("%Y-%m-%d %H:%M:%S %z")
    message = str(commit.message).rstrip("\n").split("\n")
    head = f"commit {commit.hexsha}\nAuthor: {author.name} <{author.email}>\nDate:   {date}\n\n"
    return head + "".join(f"    {line}\n" for line in message) + "".join(patches(commit))


@server.tool(structured=False, annotations=READS)
@git_errors()
def git_branch(
    repo_path: str, branch_type: Kind, contains: Sha = None, not_contains: Sha = None
) -> str:
    """The branches that have a commit, or do not have it."""
    no_option("contains value", contains)
    no_option("not_contains value", not_contains)
    if branch_type not in KINDS:
        raise ToolError(f"Invalid branch type: {branch_type}")
    options = [*KINDS[branch_type]]
    options += ["--contains", contains] if contains else []
    options += ["--no-contains", not_contains] if not_contains else []
    return str(open_repository(repo_path).git.branch(*options))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-r", "--repository", type=Path)
    allowed = parser.parse_args().repository
    server.run()
