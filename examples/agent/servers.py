"""Three small servers of an agent: `python servers.py calendar` starts one over stdio."""

from __future__ import annotations

import sys

from pkg import Server, ToolAnnotations, ToolError

READ_ONLY = ToolAnnotations(read_only_hint=True)
calendar, weather, notes = Server("calendar"), Server("weather"), Server("notes")
saved: list[str] = []


@calendar.tool(annotations=READ_ONLY)
def next_trip() -> str:
    """The city of the user's next trip."""
    return "Oslo"


@weather.tool(annotations=READ_ONLY)
def forecast(city: str) -> str:
    """Tomorrow's weather in a city."""
    if city != "Oslo":
        raise ToolError(f"no forecast for {city!r}; there is one for Oslo")
    return "rain"


@notes.tool()
def save(text: str) -> int:
    """Save a note; returns how many there are."""
    saved.append(text)
    return len(saved)


if __name__ == "__main__":
    {"calendar": calendar, "weather": weather, "notes": notes}[sys.argv[1]].run()
