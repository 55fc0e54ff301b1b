"""Requests and claims that were written in eighteen languages at once (`../everyday/parallel/`), drawn as decisions.

A file is a domain. Its first line has the domain's questions and, where its rows are requests, the names of its
intents; every other line is a row: one request in every language, or a text with a question and its opposite.
"""

import json
import random
from dataclasses import dataclass
from pathlib import Path

from . import negation
from .everyday import FOLDER
from .mix import Mix, Task
from .records import Decision
from .wordings import INTENT, RESIDUAL

ENGLISH = "en"
# One whole domain, and so many rows of claims, that nothing is trained on.
HELD_DOMAIN, HELD_CLAIMS = "public_and_health", 14
# Of all rows that are not from the everyday corpus.
SHARES = {"far_request": 0.12, "far_request_yes_no": 0.02, "far_claim": 0.05}
# How often the question is in the text's own language; how often the choices are, how often each is in any language
# (English in all other cases).
OWN_QUESTION, OWN_NAMES, MIXED_NAMES = 0.3, 0.25, 0.07
# How often other domains' intents stand beside the domain's own, and how often "none of these" does, and is right then.
CROWDED, NONE, NONE_FITS = 0.3, 0.1, 0.35
MOST_OTHERS = 24


@dataclass(frozen=True)
class Domain:
    """Requests of one matter.

    `questions`: wordings by language; `names`: of each intent by language; `rows`: an intent and its request by
    language.
    """

    name: str
    questions: dict[str, list[str]]
    names: dict[str, dict[str, list[str]]]
    rows: list[tuple[str, dict[str, str]]]


@dataclass(frozen=True)
class Claim:
    """A text, a question and its opposite, each by language; `true`: whether the question is answered with yes."""

    parts: dict[str, dict[str, str]]
    true: bool


def listed(names: str | list[str]) -> list[str]:
    """One name or several, as a list."""
    return [names] if isinstance(names, str) else names


def read(folder: Path) -> tuple[list[Domain], list[Claim]]:
    """The domains of a folder in the order of their files, and all claims."""
    domains, claims = [], []
    for path in sorted(folder.glob("*.jsonl")):
        first, *rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if "intents" not in first:
            claims += [Claim(row, row[ENGLISH]["answer"]) for row in rows]
            continue
        domains.append(
            Domain(
                first["domain"],
                {language: listed(questions) for language, questions in first["questions"].items()},
                {
                    intent: {language: listed(name) for language, name in names.items()}
                    for intent, names in first["intents"].items()
                },
                [(row.pop("intent"), row) for row in rows],
            )
        )
    return domains, claims


class Translated:
    """Draws the rows of its tasks for a mix."""

    def __init__(self, mix: Mix, folder: Path = FOLDER / "parallel"):
        self.mix = mix
        domains, claims = read(folder)
        self.domains = [d for d in domains if d.name != HELD_DOMAIN]
        self.held_domains = [d for d in domains if d.name == HELD_DOMAIN]
        self.claims, self.held_claims = claims[HELD_CLAIMS:], claims[:HELD_CLAIMS]

    def install(self) -> None:
        """Adds the tasks to the mix."""
        total = sum(task.weight for task in self.mix.tasks.values()) / (1 - sum(SHARES.values()))
        shares = SHARES if self.claims else {name: share for name, share in SHARES.items() if name != "far_claim"}
        self.mix.tasks |= {name: Task(getattr(self, name), share * total) for name, share in shares.items()}

    def said(self, rng: random.Random) -> tuple[Domain, str, dict[str, str], str]:
        """Of any domain a request: its intent, its wording in each language, and one of the languages."""
        domain = rng.choice(self.domains)
        intent, texts = rng.choice(domain.rows)
        return domain, intent, texts, rng.choice(sorted(texts))

    def lines(self, rng: random.Random) -> dict[str, str]:
        """A request in English and in another language, as `multilingual` has pairs of lines."""
        while True:
            _, _, texts, language = self.said(rng)
            if language != ENGLISH:
                return {"en": texts[ENGLISH], "other": texts[language]}

    def name(self, domain: Domain, intent: str, language: str, style: float, rng: random.Random) -> str:
        """A name of an intent in the language of the text, in any, or in English."""
        names = domain.names[intent]
        if style < OWN_NAMES:
            return rng.choice(names[language])
        if style < OWN_NAMES + MIXED_NAMES:
            return rng.choice(names[rng.choice(sorted(names))])
        return rng.choice(names[ENGLISH])

    def far_request(self, rng: random.Random) -> Decision:
        """What a request in any language is for, among intents of its domain and of others."""
        domain, intent, texts, language = self.said(rng)
        asked = rng.choice(domain.questions[ENGLISH] if rng.random() < 0.4 else INTENT)
        if rng.random() < OWN_QUESTION:
            asked = rng.choice(domain.questions[language])
        style = rng.random()
        others = [(domain, other) for other in domain.names if other != intent]
        others = rng.sample(others, rng.randint(1, len(others)))
        if rng.random() < CROWDED:
            foreign = [(d, other) for d in self.domains if d is not domain for other in d.names]
            others += rng.sample(foreign, rng.randint(1, MOST_OTHERS))
        label = self.name(domain, intent, language, style, rng)
        choices = [label, *(self.name(d, other, language, style, rng) for d, other in others)]
        if rng.random() < NONE:
            none = rng.choice(RESIDUAL)
            choices.append(none)
            if rng.random() < NONE_FITS and len(choices) > 2:
                choices.remove(label)
                label = none
        return Decision(texts[language], asked, tuple(dict.fromkeys(choices)), label, "requests_far")

    def far_request_yes_no(self, rng: random.Random) -> Decision:
        """Whether a request is for one thing: what it is for, or another of the domain."""
        domain, intent, texts, language = self.said(rng)
        true = rng.random() < 0.5
        asked = intent if true else rng.choice([other for other in domain.names if other != intent])
        row = Decision(texts[language], "", (), "", "requests_far")
        # The first name is plain words; others may be identifiers, which no question holds.
        return negation.pair_about(row, domain.names[asked][ENGLISH][0], negation.WANTS, negation.WANTS_NOT, true, rng)

    def far_claim(self, rng: random.Random) -> Decision:
        """A question on a text that was written with its opposite; in the text's language or in English."""
        claim = rng.choice(self.claims)
        language = rng.choice(sorted(claim.parts))
        asked = claim.parts[language if rng.random() < 0.6 else ENGLISH]
        row = Decision(claim.parts[language]["text"], "", (), "", "claims_far")
        return negation.pair(row, asked["question"], asked["opposite"], claim.true, rng)

    def held_out(self, count: int, seed: int) -> dict[str, list[Decision]]:
        """Requests of a domain that no stage is trained on, and claims, in every language alike."""
        rng = random.Random(seed)
        rows, claims = [], []
        for domain in self.held_domains:
            choices = tuple(names[ENGLISH][0] for names in domain.names.values())
            for intent, texts in domain.rows:
                label = domain.names[intent][ENGLISH][0]
                rows += [
                    Decision(text, domain.questions[ENGLISH][0], choices, label, "far_requests")
                    for language, text in sorted(texts.items())
                    if language != ENGLISH
                ]
        for claim in self.held_claims:
            for language, parts in sorted(claim.parts.items()):
                if language != ENGLISH:
                    for asked, true in (("question", claim.true), ("opposite", not claim.true)):
                        label = "yes" if true else "no"
                        claims.append(Decision(parts["text"], parts[asked], ("yes", "no"), label, "far_claims"))
        return {
            "far_requests": rng.sample(rows, min(count, len(rows))),
            "far_claims": rng.sample(claims, min(count, len(claims))),
        }
