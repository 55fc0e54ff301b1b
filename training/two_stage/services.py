"""Requests to services, written for the recipe: intents of one service lie close together, as in a caller's own
catalog.
"""

from dataclasses import dataclass

from .lists import lines_of


@dataclass(frozen=True)
class Request:
    """A kind of request: the service that it is made to, names of equal meaning, and what people say."""

    service: str
    names: tuple[str, ...]
    said: tuple[str, ...]


def read_requests() -> list[Request]:
    """Every kind of request of `lists/requests.txt`, in its order."""
    found, service = [], ""
    for line in lines_of("requests"):
        if line.startswith("= "):
            service = line[2:]
        else:
            names, said = line.split(": ", 1)
            found.append(Request(service, tuple(names.split(" | ")), tuple(said.split(" | "))))
    return found
