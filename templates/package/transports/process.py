"""The client's side of stdio: a server as a child process, with its streams as a channel.

The child and its descendants are started, signalled and awaited together. On POSIX the child leads
a session, so a signal to its process group also reaches its children, even after its own exit. On
Windows a job object does that, which also ends them if this process is killed. Processes still
running when the interpreter exits are ended then.

Two threads watch the process: one reads its standard error, even while the event loop is busy, and
one waits for its exit. The task that calls `close` shuts the process down.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from threading import Event as ThreadEvent
from threading import Thread
from typing import IO, Any

from anyio import CancelScope, Event, Lock, create_task_group, from_thread, move_on_after, sleep
from anyio.lowlevel import EventLoopToken, checkpoint, current_token

from ..channel import MESSAGE_LIMIT, Channel, OutgoingMessage
from ..errors import (
    ConnectionClosedError,
    EndOfChannel,
    ServerStartError,
    TransportError,
    last_lines,
)
from .line_channel import LineChannel, open_sink, open_source

if sys.platform == "win32":
    import ctypes
    import shutil
    from ctypes import wintypes
else:
    import fcntl
    import termios

INHERITED = (
    # POSIX
    *("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ"),
    "USER",
    # Windows
    *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA"),
    *("PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE"),
)
"""Environment variables that a server inherits; others may hold secrets."""

TAIL_LINES = 50
"""Lines of standard error that are kept."""

_LINE_BYTES = 8192
_SETTLE_SECONDS = 0.5
"""Seconds to wait for exit code and standard error after the output ended, and vice versa."""

_EXIT_SECONDS = 1.0
_STDERR_PAUSE = 0.1
_running: set[_ProcessTree] = set()


@dataclass(frozen=True)
class ShutdownTimeouts:
    """Timeouts of closing, in seconds; their sum bounds the time.

    Attributes:
        after_eof: From the end of the server's input to SIGTERM.
        after_terminate: From SIGTERM to SIGKILL; also for processes that the server left running.
        after_kill: From SIGKILL until closing gives up.

    Source: basic/lifecycle (shutdown); 2026-07-28: basic/transports/stdio (shutdown).
    """

    after_eof: float = 2.0
    after_terminate: float = 2.0
    after_kill: float = 1.0


BRIEF = ShutdownTimeouts(0.5, 1.0, 1.0)
"""For a server without a session, which has no work to finish."""


def to_stderr(text: str) -> None:
    """Write one line of a server's standard error to this process's standard error."""
    if sys.stderr is not None:
        print(text, file=sys.stderr, flush=True)


async def open_process(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    on_stderr: Callable[[str], object] | None = to_stderr,
    limit: int = MESSAGE_LIMIT,
    timeouts: ShutdownTimeouts | None = None,
) -> ProcessChannel:
    """Start a server and return the channel to it.

    The server runs in a session of its own, so an interrupt at the terminal does not end it. It
    inherits only the environment variables of `INHERITED`. After a failure no process runs.

    Args:
        argv: The command, not passed through a shell.
        env: Variables to add or replace; `os.environ` passes all variables.
        cwd: Working directory.
        on_stderr: Called in a thread with each line of standard error; `None` drops the lines. The
            last lines are kept in both cases.
        limit: Longest message accepted, in bytes.
        timeouts: Timeouts of closing.

    Raises:
        ServerStartError: The command could not be started.
        ValueError: The command, the directory or a variable is invalid.

    Source: basic/transports (stdio).
    """
    if isinstance(argv, str) or not argv:
        came = f"the text {_masked(argv.split())!r}" if isinstance(argv, str) else "none"
        raise ValueError(f"expected a command as a sequence of arguments, came {came}")
    await checkpoint()
    try:
        tree = _ProcessTree(argv, _child_environment(env), cwd)
        try:
            return ProcessChannel(argv, tree, limit, on_stderr, timeouts or ShutdownTimeouts())
        except BaseException:
            tree.kill()
            tree.reap()
            tree.close_pipes()
            raise
    except OSError as error:
        about = f": {_masked([os.fsdecode(error.filename)])!r}" if error.filename else ""
        reason = f"{(error.strerror or str(error)).lower()}{about}"
        cause = OSError(error.errno, error.strerror)  # without the name, which may have a secret
        raise ServerStartError(_masked(argv), argv, None, (), reason) from cause
    except RuntimeError as error:  # a thread could not be started
        raise ServerStartError(_masked(argv), argv, None, (), str(error)) from error
    except ValueError as error:
        raise ValueError(
            "expected a command, a directory and variables that the system takes, "
            f"came {_masked(argv)!r}: {error}"
        ) from error


class ProcessChannel(Channel):
    """A server process and the channel to it. Created by `open_process`.

    Attributes:
        argv: The command.
        pid: Process id; on POSIX also the id of the process group.
        timeouts: Timeouts of closing; may be set before `close`.

    Source: basic/transports (stdio).
    """

    transport = "stdio"

    def __init__(
        self,
        argv: Sequence[str],
        tree: _ProcessTree,
        limit: int,
        pass_on: Callable[[str], object] | None,
        timeouts: ShutdownTimeouts,
    ) -> None:
        self.argv = tuple(argv)
        self.pid = tree.pid
        self.timeouts = timeouts
        self._tree = tree
        self._sent = 0
        self._took_input = False
        self._has_sent_message = False
        self._closed = False
        self._exited = Event()
        self._closing = Lock()
        self._output_ended = ThreadEvent()
        with ExitStack() as undo:
            self._input, output = (tree.take_pipe(name, undo) for name in ("stdin", "stdout"))
            self._output = open_source(output)
            self._lines = LineChannel(self._output, open_sink(self._input), limit)
            self._stderr = _StderrTail(tree.stderr, pass_on)
            tree.watchers = (self._stderr.thread,)
            watcher = Thread(target=self._watch, args=(current_token(),), name="mcp server exit")
            watcher.daemon = True
            watcher.start()
            undo.pop_all()

    @property
    def exit_code(self) -> int | None:
        """Exit code of the process; negative for a signal; `None` while it runs."""
        return self._tree.exit_code

    @property
    def stderr_tail(self) -> tuple[str, ...]:
        """The last lines that the process wrote to standard error."""
        return tuple(self._stderr.lines)

    async def follow_stderr(self, on_output: Callable[[], object]) -> None:
        """Call a function when the process writes to standard error, until cancelled.

        At most one task may call this. The function is called at most ten times a second.
        """
        while True:
            written = Event()
            self._stderr.on_output = written.set
            await written.wait()
            on_output()
            await sleep(_STDERR_PAUSE)

    @property
    def took_input(self) -> bool:
        """Whether the server has read, or may have read, a part of its input.

        Only some systems can tell; on others this is true after the first message.
        """
        if not self._took_input and not self._closed:
            self._took_input = _unread_bytes(self._input) < self._sent
        return self._took_input

    async def receive(self) -> bytes:
        """Wait for the next line of the server's standard output, whether it is a message or not.

        Raises:
            EndOfChannel: The server closed its output or ended; the text has the reason.
            ServerStartError: The server ended before its first message.
            FrameError: A line exceeded the limit and was dropped.
        """
        try:
            message = await self._lines.receive()
        except EndOfChannel:
            raise await self._end_error(EndOfChannel) from None
        if not self._has_sent_message:
            self._has_sent_message = message.lstrip()[:1] in (b"{", b"[")
        return message

    async def send(self, message: OutgoingMessage) -> None:
        """Write one message to the server's standard input.

        Raises:
            ConnectionClosedError: The server no longer reads, or ended; the text has the reason.
            ServerStartError: The server ended before its first message.
        """
        try:
            await self._lines.send(message)
        except ConnectionClosedError:
            raise await self._end_error(ConnectionClosedError) from None
        self._sent += len(message.data) + 1

    async def close(self) -> None:
        """End the server: close its input, then send SIGTERM, then SIGKILL, each after a timeout.

        Signals go to all processes that the server started, so none remains. Takes at most the sum
        of the timeouts, even if cancelled.
        """
        self._took_input = self.took_input  # unknown once the descriptor is closed
        self._closed = True
        self._output_ended.set()
        self._lines.end_receiving()
        with CancelScope(shield=True):
            async with self._closing:
                if not self._tree.reaped:
                    await self._shut_down()

    async def _shut_down(self) -> None:
        try:
            async with create_task_group() as tasks:
                tasks.start_soon(self._lines.drain)
                await self._lines.end_sending()
                await self._end_process()
                tasks.cancel_scope.cancel()
            if self._exited.is_set():
                await self._end_others()
        finally:
            # Also runs after a native cancellation of asyncio, which no scope shields.
            self._tree.finish()
            await self._lines.close()

    async def _end_process(self) -> None:
        for seconds, then in (
            (self.timeouts.after_eof, self._tree.terminate),
            (self.timeouts.after_terminate, self._tree.kill),
        ):
            with move_on_after(seconds):
                await self._exited.wait()
                return
            then()
        with move_on_after(self.timeouts.after_kill):
            await self._exited.wait()

    async def _end_others(self) -> None:
        self._tree.terminate()
        self._tree.reap()
        with move_on_after(self.timeouts.after_terminate):
            pause = 0.001
            while self._tree.has_others():
                await sleep(pause)  # the system does not report when a group becomes empty
                pause = min(2 * pause, 0.05)
        self._tree.finish()
        with move_on_after(_SETTLE_SECONDS):
            await self._stderr.ended.wait()

    async def _end_error(self, kind: type[TransportError]) -> TransportError:
        if self._closed:
            return kind("the channel is closed")
        self._output_ended.set()
        with move_on_after(_SETTLE_SECONDS):
            await self._exited.wait()
            await self._stderr.ended.wait()
        code = self.exit_code
        command = _masked(self.argv)
        if code is not None and not self._has_sent_message:
            return ServerStartError(command, self.argv, code, self.stderr_tail)
        how = "closed its output" if code is None else f"ended with exit code {code}"
        text = f"server {command!r} {how}"
        return kind("; ".join([text, *last_lines(self.stderr_tail)]))

    def _watch(self, token: EventLoopToken) -> None:
        self._tree.wait()
        with suppress(RuntimeError):  # the event loop has ended
            from_thread.run_sync(self._exited.set, token=token)
            # A child of the server may keep its output open.
            if not self._output_ended.wait(_SETTLE_SECONDS):
                from_thread.run_sync(self._output.stop_waiting, token=token)


class _ProcessTree:
    """A process in its own session (POSIX) or job (Windows), with pipes as standard streams.

    Attributes:
        pid: Process id; on POSIX also the id of the process group.
        stderr: The standard error of the process.
        exit_code: Exit code after the exit; negative for a signal.
        reaped: Whether the process was reaped.
        watchers: Threads that end with the process. The interpreter waits for them at exit: a
            thread that is stopped while it prints would abort the interpreter.

    Raises:
        OSError: The process could not be started.
    """

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: str | os.PathLike[str] | None
    ) -> None:
        pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command = _resolve_command(argv, env)
        self._popen = subprocess.Popen(command, env=env, cwd=cwd, **pipes, **_OWN_GROUP)
        self.owner = os.getpid()
        self.pid = self._popen.pid
        assert self._popen.stderr is not None
        self.stderr = self._popen.stderr
        self.exit_code: int | None = None
        self.reaped = False
        self.watchers: tuple[Thread, ...] = ()
        self._finished = False
        if sys.platform == "win32":
            self._job = _Job(self.pid)
        _running.add(self)

    def take_pipe(self, name: str, undo: ExitStack) -> int:
        """Our end of a pipe, as a descriptor of the caller, which `undo` closes."""
        with getattr(self._popen, name) as stream:
            descriptor = os.dup(stream.fileno())
        undo.callback(os.close, descriptor)
        return descriptor

    def close_pipes(self) -> None:
        """Close our ends of the pipes, unless they were taken; the process has ended."""
        for stream in (self._popen.stdin, self._popen.stdout):
            if stream is not None:
                stream.close()
        if not self.watchers:  # otherwise a thread closes it
            self.stderr.close()

    def wait(self) -> int:
        """Block until the process has ended; return its exit code, negative for a signal.

        If the system supports it, the process stays a zombie until `reap`, so that no other process
        group can get its id before.
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
        """Reap the process after its end; the rest of its tree can still be signalled."""
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

        def has_others(self) -> bool:
            """Return `False`: on Windows the job has ended all processes of the tree."""
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
            # An error means that the group is empty, or its processes run as another user.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

        def has_others(self) -> bool:
            """Whether other processes of the tree still run, after the first was reaped."""
            try:
                os.killpg(self.pid, 0)
            except (ProcessLookupError, PermissionError):
                return False
            return True

    def finish(self) -> None:
        """Kill the rest of the tree; the thread that waits for the process reaps it."""
        if not self.reaped or self.has_others():
            self.kill()
        self._finished = True
        if self.exit_code is not None:
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
    # Without a console window: a host with a graphical interface has no console.
    _OWN_GROUP: Mapping[str, Any] = {
        "creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    }

    def _resolve_command(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
        # CreateProcess finds neither `npx.cmd` as `npx` nor a program on the child's own PATH.
        return [shutil.which(argv[0], path=env.get("PATH")) or argv[0], *argv[1:]]

    def _unread_bytes(_fd: int) -> int:
        return 0  # unknown

    _KILL_ON_JOB_CLOSE = 0x2000
    _EXTENDED_LIMITS = 9
    _SET_QUOTA_AND_TERMINATE = 0x0101

    class _BasicLimits(ctypes.Structure):
        _fields_ = (
            ("PerProcessUserTimeLimit", wintypes.LARGE_INTEGER),
            ("PerJobUserTimeLimit", wintypes.LARGE_INTEGER),
            ("LimitFlags", wintypes.DWORD),
            ("MinimumWorkingSetSize", ctypes.c_size_t),
            ("MaximumWorkingSetSize", ctypes.c_size_t),
            ("ActiveProcessLimit", wintypes.DWORD),
            ("Affinity", ctypes.c_size_t),
            ("PriorityClass", wintypes.DWORD),
            ("SchedulingClass", wintypes.DWORD),
        )

    class _ExtendedLimits(ctypes.Structure):
        _fields_ = (
            ("Basic", _BasicLimits),
            ("IoCounters", ctypes.c_ulonglong * 6),
            ("MemoryLimits", ctypes.c_size_t * 4),
        )

    _kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    for _name, _result, *_arguments in (
        ("CreateJobObjectW", wintypes.HANDLE, wintypes.LPVOID, wintypes.LPCWSTR),
        ("OpenProcess", wintypes.HANDLE, wintypes.DWORD, wintypes.BOOL, wintypes.DWORD),
        (
            *("SetInformationJobObject", wintypes.BOOL, wintypes.HANDLE),
            *(ctypes.c_int, wintypes.LPVOID, wintypes.DWORD),
        ),
        ("AssignProcessToJobObject", wintypes.BOOL, wintypes.HANDLE, wintypes.HANDLE),
        ("TerminateJobObject", wintypes.BOOL, wintypes.HANDLE, wintypes.UINT),
        ("CloseHandle", wintypes.BOOL, wintypes.HANDLE),
    ):
        _function = getattr(_kernel32, _name)
        _function.restype, _function.argtypes = _result, _arguments

    class _Job:
        """A job object with a process, which should have no children yet, and its descendants.

        It ends its processes when its last handle is closed. If the system refuses to create a job,
        only the process itself is ended.

        Source: basic/transports/stdio (shutdown).
        """

        def __init__(self, pid: int) -> None:
            self._handle: int | None = _kernel32.CreateJobObjectW(None, None)
            if self._handle is not None:
                limits = _ExtendedLimits()
                limits.Basic.LimitFlags = _KILL_ON_JOB_CLOSE
                _kernel32.SetInformationJobObject(
                    self._handle, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
                )
                process = _kernel32.OpenProcess(_SET_QUOTA_AND_TERMINATE, False, pid)
                if process is not None:
                    _kernel32.AssignProcessToJobObject(self._handle, process)
                    _kernel32.CloseHandle(process)

        def terminate(self) -> None:
            """End every process of the job."""
            if self._handle is not None:
                _kernel32.TerminateJobObject(self._handle, 1)

        def close(self) -> None:
            """Close the handle, which also ends the processes of the job."""
            if self._handle is not None:
                _kernel32.CloseHandle(self._handle)
            self._handle = None

else:
    _OWN_GROUP: Mapping[str, Any] = {"start_new_session": True}

    def _resolve_command(argv: Sequence[str], _env: Mapping[str, str]) -> list[str]:
        return list(argv)

    def _unread_bytes(fd: int) -> int:
        """The number of unread bytes in a pipe; zero if unknown."""
        try:
            return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)
        except OSError:
            return 0


@atexit.register
def end_all() -> None:
    """End every process tree of this process: terminate, wait at most a second, kill."""
    # A forked process must not end its parent's children.
    trees = [tree for tree in _running if tree.owner == os.getpid()]
    for tree in trees:
        tree.terminate()
    deadline = time.monotonic() + _EXIT_SECONDS
    for tree in trees:
        tree.end_by(deadline)


class _StderrTail:
    """Reads a server's standard error to its end, in a thread; keeps the last lines."""

    def __init__(self, stream: IO[bytes], pass_on: Callable[[str], object] | None) -> None:
        self.lines: deque[str] = deque(maxlen=TAIL_LINES)
        self.ended = Event()
        self.on_output: Callable[[], object] | None = None  # called once, in the event loop
        self._stream = stream
        self._pass_on = pass_on
        self.thread = Thread(
            target=self._pump, args=(current_token(),), name="mcp server stderr", daemon=True
        )
        self.thread.start()

    def _pump(self, token: EventLoopToken) -> None:
        with self._stream as stream:
            while piece := stream.readline(_LINE_BYTES):
                self._take(piece.decode(errors="replace").rstrip("\r\n"))
                on_output, self.on_output = self.on_output, None
                if on_output is not None:
                    with suppress(RuntimeError):  # the event loop has ended
                        from_thread.run_sync(on_output, token=token)
        with suppress(RuntimeError):  # the event loop has ended
            from_thread.run_sync(self.ended.set, token=token)

    def _take(self, text: str) -> None:
        self.lines.append(text)
        if self._pass_on is not None:
            try:
                self._pass_on(text)
            except Exception:
                # The callback is broken. The server must not block on a full pipe.
                self._pass_on = None


def _masked(argv: Sequence[str]) -> str:
    from ..command_masking import masked_command  # its patterns take long to compile

    return masked_command(argv)


def _child_environment(added: Mapping[str, str] | None) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return inherited | dict(added or {})
