"""The tools of PyPI's mcp-server-time on the generated package."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field
from tzlocal import get_localzone_name

from mcpgen_runtime import Server, ToolAnnotations, ToolError

LOOKUP = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


@dataclass
class Moment:
    timezone: str
    datetime: str
    day_of_week: str
    is_dst: bool


@dataclass
class Conversion:
    source: Moment
    target: Moment
    time_difference: str


def zone_of(name: str) -> ZoneInfo:
    if name not in available_timezones():
        raise ToolError(f"Invalid timezone: {name!r} is no IANA name")
    return ZoneInfo(name)


def moment(when: datetime, zone: str) -> Moment:
    return Moment(
        timezone=zone,
        datetime=when.isoformat(timespec="seconds"),
        day_of_week=when.strftime("%A"),
        is_dst=bool(when.dst()),
    )


def clock_time(text: str) -> time:
    try:
        return datetime.strptime(text, "%H:%M").time()
    except ValueError as error:
        raise ToolError(f"Invalid time format: expected HH:MM, got {text!r}") from error


def at(day: date, clock: time, zone: ZoneInfo) -> datetime:
    """A wall-clock time of a day, which a change of the clocks must not skip."""
    when = datetime.combine(day, clock, zone)
    if datetime.fromtimestamp(when.timestamp(), zone).time() != clock:
        raise ToolError(f"Invalid time: {clock:%H:%M} does not exist in {zone.key} on {day}")
    return when


def hours_between(source: datetime, target: datetime) -> str:
    hours = (
        (target.utcoffset() or timedelta()) - (source.utcoffset() or timedelta())
    ).total_seconds() / 3600
    return f"{hours:+.1f}h" if hours.is_integer() else f"{hours:+.2f}".rstrip("0") + "h"


def create_server(local: str) -> Server:
    server = Server("mcp-time", version="1.0")
    zone = f"an IANA name such as Europe/Oslo; {local} if the user names none"

    @server.tool(annotations=LOOKUP)
    def get_current_time(timezone: Annotated[str, Field(description=zone)]) -> Moment:
        """Get the current time in a timezone."""
        return moment(datetime.now(zone_of(timezone)), timezone)

    @server.tool(annotations=LOOKUP)
    def convert_time(
        source_timezone: Annotated[str, Field(description=f"where the time is from: {zone}")],
        time: Annotated[str, Field(description="a time of today, as HH:MM")],
        target_timezone: Annotated[str, Field(description=f"where it is wanted: {zone}")],
    ) -> Conversion:
        """A time of one timezone in another."""
        here, there = zone_of(source_timezone), zone_of(target_timezone)
        source = at(datetime.now(here).date(), clock_time(time), here)
        target = source.astimezone(there)
        return Conversion(
            source=moment(source, source_timezone),
            target=moment(target, target_timezone),
            time_difference=hours_between(source, target),
        )

    return server


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--local-timezone")
    options = parser.parse_args()
    create_server(options.local_timezone or get_localzone_name() or "UTC").run()
