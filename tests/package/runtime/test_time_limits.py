"""Time limits that restart, are extended and are paused, on a clock that the test sets."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from mcpgen_runtime.runtime.time_limits import PausableLimit, TimeLimit, pausable, pause_limits


class SetClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is set."""

    now = 100.0

    def time(self) -> float:
        """The time that was set."""
        return self.now


@pytest.fixture(params=[("asyncio", {"loop_factory": SetClockLoop})], ids=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


def set_time(now: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SetClockLoop)
    loop.now = now


async def test_a_limit_restarts_with_each_activity_up_to_an_end() -> None:
    limit = TimeLimit(5, 12)
    for now, left, seconds in ((104, 5, 9), (108, 4, 12), (113, 0, 12)):
        set_time(now)
        limit.begin_anew()
        assert (limit.left(), limit.seconds) == (left, seconds)


async def test_a_paused_limit_keeps_the_time_that_was_left() -> None:
    scope = anyio.CancelScope(deadline=110)
    limit = PausableLimit(scope)
    set_time(104)
    limit.pause()
    assert scope.deadline == float("inf")
    set_time(150)
    assert limit.left == 6
    limit.pause()
    limit.resume()
    assert scope.deadline == float("inf")
    limit.resume()
    assert scope.deadline == 156
    limit.pause()
    limit.resume()
    assert scope.deadline == 156


@pytest.mark.parametrize(("seconds", "deadline"), [(3, 206), (6, 206), (7, 207)])
async def test_a_limit_is_extended_to_at_least_some_seconds(
    seconds: float, deadline: float
) -> None:
    scope = anyio.CancelScope(deadline=110)
    limit = PausableLimit(scope)
    set_time(104)
    limit.extend(5)
    assert scope.deadline == 110
    limit.pause()
    set_time(200)
    limit.extend(seconds)
    assert scope.deadline == float("inf")
    limit.resume()
    assert scope.deadline == deadline
    limit.extend(10)
    assert scope.deadline == 210


async def test_all_limits_around_a_pause_stop_and_no_others() -> None:
    outer, inner, other = (anyio.CancelScope(deadline=110) for _ in range(3))
    with pausable(outer) as limit:
        with pausable(other):
            pass
        with pausable(inner), pausable(limit) as same:
            assert same is limit
            with pause_limits():
                deadlines = [scope.deadline for scope in (outer, inner, other)]
                assert deadlines == [float("inf"), float("inf"), 110]
                set_time(150)
            assert [scope.deadline for scope in (outer, inner, other)] == [160, 160, 110]
    with pause_limits():
        assert outer.deadline == 160
