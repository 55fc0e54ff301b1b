"""Requests to services, written for the recipe (`lists/requests.txt`): intents of one service lie close together, as in a caller's own catalog."""

from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).parent / "lists" / "requests.txt"


@dataclass(frozen=True)
class Request:
    """A kind of request: the service that it is made to, names of equal meaning, and what people say."""

    service: str
    names: tuple[str, ...]
    said: tuple[str, ...]


def read_requests() -> list[Request]:
    """Every kind of request, in the list's order."""
    found, service = [], ""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            service = line[2:]
        elif not line.startswith("#"):
            names, said = line.split(": ", 1)
            found.append(Request(service, tuple(names.split(" | ")), tuple(said.split(" | "))))
    return found
