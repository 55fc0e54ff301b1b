"""Word lists as data: the files of `lists/`, which people read and add to without reading the code.

    # a comment
    = the name of a list
    an entry
    one | two | three              an entry of several parts
    a key: one | two               an entry of a table

Order counts: rows are drawn by places in a list, so an entry that is added or moved changes every row that is drawn
after. Three files have forms of their own, which their first lines tell: `frames.txt`, `requests.txt` and
`negations.txt`.
"""

from pathlib import Path

FOLDER = Path(__file__).parent / "lists"


def lines_of(file: str) -> list[str]:
    """The lines of `lists/<file>.txt`, less comments and empty ones."""
    lines = (FOLDER / f"{file}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


class Lists:
    """The lists of `lists/<file>.txt` by name.

    A name that is not there is a KeyError. A name or a key that stands twice, an entry before the first list and one of
    a table without a key are a ValueError.
    """

    def __init__(self, file: str):
        self.file = file
        self._entries: dict[str, list[str]] = {}
        for line in lines_of(file):
            if line.startswith("= "):
                if line[2:] in self._entries:
                    raise ValueError(f"{file}.txt has two lists of the name {line[2:]!r}")
                current = self._entries[line[2:]] = []
            elif not self._entries:
                raise ValueError(f"{file}.txt has an entry before its first list: {line!r}")
            else:
                current.append(line)

    def names(self) -> list[str]:
        """The names of all lists, in the file's order."""
        return list(self._entries)

    def entries(self, name: str) -> list[str]:
        """The entries as they stand."""
        return self._entries[name]

    def words(self, name: str) -> list[str]:
        """The parts of all entries together: words that share lines."""
        return [part for entry in self._entries[name] for part in entry.split(" | ")]

    def tuples(self, name: str) -> list[tuple[str, ...]]:
        """The parts of each entry."""
        return [tuple(entry.split(" | ")) for entry in self._entries[name]]

    def table(self, name: str) -> dict[str, list[str]]:
        """The parts of each entry by its key."""
        found: dict[str, list[str]] = {}
        for entry in self._entries[name]:
            key, colon, parts = entry.partition(": ")
            if not colon or key in found:
                raise ValueError(f"{self.file}.txt, {name}: no key, or one that stands twice: {entry!r}")
            found[key] = parts.split(" | ")
        return found
