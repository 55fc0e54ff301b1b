r"""From the form that decisions are written in to the corpus's JSON lines.

    python convert.py FILE.txt ... --out FOLDER [--drop FILE]

The form:

    ## name [kind; field]        a task
    ? a question                 further lines are other wordings of it
    = one | two | three          further lines are other names of the same choices
    b> a text                    its answer is the second choice; "\n" is the end of a line; *> stands for none

A later `?` or `=` asks the rows that follow another question, or gives them other choices. `--drop`: JSON lines
{"file", "task", "text"} of rows that a second reader decided otherwise; they are left out. `--as-test` writes a file a
task in the form of `bench/eval` instead: the wordings and names take turns.
"""

import argparse
import json
import re
from pathlib import Path

# Kinds that writers spell differently.
SPELLED = {
    "intent": "routing",
    "intents": "routing",
    "described choices": "described",
    "yes/no": "yesno",
    "entailment": "entail",
}
HEAD = re.compile(r"## ([a-z0-9_]+) \[([^;\]]+);([^\]]+)\]\s*$")
ROW = re.compile(r"([a-z]{1,2}|\*)> (.*)$")


def place(letters: str) -> int:
    """a -> 0, z -> 25, aa -> 26."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("a") + 1
    return number - 1


def read(path: Path, dropped: set[tuple[str, str]]) -> list[dict]:
    """The groups of a file, without the rows (task, text) that are dropped."""
    groups, head, questions, choices, last, current = [], None, [], [], "", None
    for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
        if found := HEAD.match(line):
            head, questions, choices, last, current = [part.strip() for part in found.groups()], [], [], "#", None
            head[1] = SPELLED.get(head[1], head[1])
        elif line.startswith("? "):
            questions, last, current = [*(questions if last == "?" else []), line[2:].strip()], "?", None
        elif line.startswith("= "):
            choices, last, current = (
                [*(choices if last == "=" else []), [c.strip() for c in line[2:].split(" | ")]],
                "=",
                None,
            )
        elif found := ROW.match(line):
            if current is None:
                current = {
                    "task": head[0],
                    "kind": head[1],
                    "field": head[2],
                    "instructions": questions,
                    "choices": choices,
                    "rows": [],
                }
                groups.append(current)
            text, last = found[2].strip().replace("\\n", "\n"), ">"
            if (head[0], text) not in dropped:
                current["rows"].append([text, None if found[1] == "*" else place(found[1])])
        else:
            raise ValueError(f"{path}: {line[:60]!r} is not of the form")
    return [group for group in groups if group["rows"]]


def as_test(groups: list[dict]) -> dict[str, list[str]]:
    """Lines by task, as `bench/eval/data-sets.ts` reads them. Throws if a row has no answer."""
    files: dict[str, list[str]] = {}

    def line(value: dict) -> str:
        return json.dumps(value, ensure_ascii=False)

    for g in groups:
        meta = {
            "set": g["task"],
            "kind": g["kind"],
            "labels": None,
            "licence": "Apache-2.0",
            "sources": [],
            "notes": f"written for Umpire; {g['field']}",
        }
        rows = files.setdefault(g["task"], [line({"meta": meta})])
        for i, (text, label) in enumerate(g["rows"]):
            names = g["choices"][i % len(g["choices"])]
            rows.append(
                line(
                    {
                        "input": text,
                        "instruction": g["instructions"][i % len(g["instructions"])],
                        "choices": names,
                        "label": names[label],
                    }
                )
            )
    return files


def main() -> None:
    """Converts the files that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--drop", type=Path)
    parser.add_argument("--as-test", action="store_true")
    arguments = parser.parse_args()
    dropped = (
        [json.loads(line) for line in arguments.drop.read_text(encoding="utf-8").splitlines()] if arguments.drop else []
    )
    arguments.out.mkdir(parents=True, exist_ok=True)
    for path in arguments.files:
        groups = read(path, {(row["task"], row["text"]) for row in dropped if row["file"] == path.stem})
        if arguments.as_test:
            for task, lines in as_test(groups).items():
                (arguments.out / f"{task}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
            continue
        lines = [json.dumps(group, ensure_ascii=False, separators=(",", ":")) for group in groups]
        (arguments.out / f"{path.stem}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{path.stem}: {len({g['task'] for g in groups})} tasks, {sum(len(g['rows']) for g in groups)} rows")


if __name__ == "__main__":
    main()
