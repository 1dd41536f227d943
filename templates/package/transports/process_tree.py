"""A child process and its descendants: started, signalled and awaited together.

On POSIX the child leads a session, so a signal to its process group also reaches its children, even
after its own exit. On Windows a job object does that. Nothing here is asynchronous.

Processes still running when the interpreter exits are ended then.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any

if sys.platform == "win32":
    import shutil

    from .windows_job import Job

_EXIT_SECONDS = 1.0
_running: set[ProcessTree] = set()


class ProcessTree:
    """A process with a session (POSIX) or a job (Windows) of its own.

    Args:
        argv: The command.
        stdin: Descriptor that becomes its standard input; likewise stdout and stderr.

    Attributes:
        pid: Process id; on POSIX also the id of the process group.
        exit_code: Exit code after the exit; negative for a signal.
        reaped: Whether the process is reaped.
        watchers: Threads that end with the process. The interpreter waits for them at exit: a
            thread that is stopped while printing would abort the interpreter.

    Raises:
        OSError: The process could not be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None,
        stdin: int,
        stdout: int,
        stderr: int,
    ) -> None:
        self._popen = subprocess.Popen(
            _resolved(argv, env),
            env=env,
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            **_own_group(),
        )
        self.owner = os.getpid()
        self.pid = self._popen.pid
        self.exit_code: int | None = None
        self.reaped = False
        self.watchers: tuple[Thread, ...] = ()
        self._finished = False
        if sys.platform == "win32":
            self._job = Job(self.pid)
        _running.add(self)

    def wait(self) -> int:
        """Block until the process has ended; return its exit code, negative for a signal.

        Where the system allows that, the process stays a zombie until `reap`: until then no other
        process group can get its id.
        """
        self.exit_code = code = self._wait_for_exit()
        if self._finished:
            self.reap()
        return code

    def terminate(self) -> None:
        """Terminate the whole tree: SIGTERM; on Windows, through the job."""
        self._signal_all(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the whole tree: SIGKILL; on Windows, through the job."""
        self._signal_all(getattr(signal, "SIGKILL", signal.SIGTERM))

    def reap(self) -> None:
        """Reap the process, which has ended; the rest of its tree can still be signalled."""
        self.exit_code = self._popen.wait()
        self.reaped = True
        _running.discard(self)
        if sys.platform == "win32":
            self._job.close()

    if sys.platform == "win32":

        def _wait_for_exit(self) -> int:
            return self._popen.wait()

        def _signal_all(self, number: int) -> None:
            self._job.terminate()
            with suppress(OSError):
                self._popen.terminate()

        def others(self) -> bool:
            """Whether processes of the tree are left; on Windows the job has ended them."""
            return False

    else:

        def _wait_for_exit(self) -> int:
            if not hasattr(os, "waitid"):
                return self._popen.wait()
            try:
                ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            except ChildProcessError:
                return self._popen.wait()
            assert ended is not None  # only WNOHANG returns without a result
            status: int = ended.si_status
            return status if ended.si_code == os.CLD_EXITED else -status

        def _signal_all(self, number: int) -> None:
            # The group is empty, or its processes run as another user.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

        def others(self) -> bool:
            """Whether processes of the tree are left, once the first has been reaped."""
            try:
                os.killpg(self.pid, 0)
            except (ProcessLookupError, PermissionError):
                return False
            return True

    def finish(self) -> None:
        """Kill the rest of the tree; the thread that waits for the process reaps it."""
        if not self.reaped or self.others():
            self.kill()
        self._finished = True
        if self.exit_code is not None and not self.reaped:
            self.reap()

    def end_by(self, deadline: float) -> None:
        """Wait until the deadline of the monotonic clock, then kill the rest of the tree."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(max(0.0, deadline - time.monotonic()))
        self.kill()
        self.reap()
        for thread in self.watchers:
            thread.join(max(0.0, deadline - time.monotonic()))


if sys.platform == "win32":

    def _resolved(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
        # CreateProcess finds neither `npx.cmd` as `npx` nor a program on the child's own PATH.
        return [shutil.which(argv[0], path=env.get("PATH")) or argv[0], *argv[1:]]

    def _own_group() -> dict[str, Any]:
        # Without a console window: a host with a graphical interface has no console.
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}

else:

    def _resolved(argv: Sequence[str], _env: Mapping[str, str]) -> list[str]:
        return list(argv)

    def _own_group() -> dict[str, Any]:
        return {"start_new_session": True}


@atexit.register
def end_all() -> None:
    """End every process tree of this process: terminate, wait a second at most, kill."""
    # A forked process must not end its parent's children.
    trees = [tree for tree in _running if tree.owner == os.getpid()]
    for tree in trees:
        tree.terminate()
    deadline = time.monotonic() + _EXIT_SECONDS
    for tree in trees:
        tree.end_by(deadline)
