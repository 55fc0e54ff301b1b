"""What the user wants: intents among the few of one service, among those of all, one by one, and sent on by a rule."""

import random
from dataclasses import replace

from .. import negation, procedural
from ..pool import INTENT_SETS, Pool, is_residual
from ..records import Decision
from ..wordings import INTENT, SERVICE, renamed

# How near a label may be to the right one and still be a wrong choice: beside it, among those of every source, and
# asked for alone, where the right one does not stand beside it to be preferred.
TOO_NEAR, TOO_NEAR_IN_CROWD, TOO_NEAR_ALONE = 0.62, 0.6, 0.5
# Of so many labels of every source at random the wrong ones are chosen.
DRAWN_LABELS = 50


def intent(pool: Pool, rng: random.Random, name: str) -> Decision:
    """A row of the set `name` among its own choices; of sgd_intent, which has two to five, mostly among all."""
    row = rng.choice(pool.sets[name])
    if name != "sgd_intent" or rng.random() < 0.4:
        return pool.with_choices(row, list(row.choices), rng)
    return mixed_intent(pool, row, rng)


def mixed_intent(pool: Pool, row: Decision, rng: random.Random) -> Decision:
    """The row's label among intents of every source."""
    if is_residual(row.label):
        return replace(row, instruction=pool.asked(row, rng))
    labels = pool.all_intents
    if pool.similarity:
        drawn = rng.sample(labels, min(DRAWN_LABELS, len(labels)))
        labels = [label for label in drawn if pool.similarity(row.label, label) < TOO_NEAR]
    return pool.with_choices(row, [row.label, *labels], rng)


def any_intent(pool: Pool, rng: random.Random) -> Decision:
    """A row of any set among intents of every source."""
    row = rng.choice(pool.sets[rng.choice(INTENT_SETS)])
    return mixed_intent(pool, row, rng)


def request(pool: Pool, rng: random.Random) -> Decision:
    """A request to a service among that service's others, or which service it is made to, or whether it is that one."""
    asked = rng.choice(pool.requests)
    near = [r for r in pool.requests if r.service == asked.service and r is not asked]
    row = Decision(rng.choice(asked.said), rng.choice(INTENT), (), rng.choice(asked.names), "requests")
    draw = rng.random()
    if draw < 0.15:
        services = list(dict.fromkeys(r.service for r in pool.requests))
        row = replace(row, instruction=rng.choice(SERVICE), label=asked.service)
        return pool.with_choices(row, services, rng, rename=False)
    if draw < 0.35:
        true = rng.random() < 0.5
        name = row.label if true else rng.choice(rng.choice(near).names)
        return negation.pair_about(row, name, negation.WANTS, negation.WANTS_NOT, true, rng)
    return pool.with_choices(row, [row.label, *(rng.choice(r.names) for r in near)], rng, rename=False)


def crowded(pool: Pool, rng: random.Random) -> Decision:
    """A request among the intents of every source at once; what stage A finds nearest of them is read."""
    row = rng.choice(pool.sets[rng.choice(INTENT_SETS)])
    service = None
    if is_residual(row.label) or rng.random() < 0.6:
        asked = rng.choice(pool.requests)
        service = asked.service
        row = Decision(rng.choice(asked.said), "", (), rng.choice(asked.names), "requests")

    def far(name: str) -> bool:
        return not pool.similarity or pool.similarity(name, row.label) < TOO_NEAR_IN_CROWD

    others = [
        rng.choice(r.names)
        for r in pool.requests
        if row.label not in r.names and (r.service == service or all(map(far, r.names)))
    ]
    choices = [row.label, *others, *(name for name in pool.all_intents if name != row.label and far(name))]
    return replace(row, instruction=rng.choice(INTENT), choices=tuple(dict.fromkeys(choices)))


def intent_yes_no(pool: Pool, rng: random.Random) -> Decision:
    """Whether the user wants one thing: what they want, or another."""
    row = rng.choice(pool.sets[rng.choice(INTENT_SETS)])
    if is_residual(row.label):
        return any_intent(pool, rng)

    def far(name: str) -> bool:
        return not pool.similarity or pool.similarity(name, row.label) < TOO_NEAR_ALONE

    true = rng.random() < 0.5
    asked = row.label if true else rng.choice([c for c in pool.all_intents if c != row.label and far(c)])
    return negation.pair_about(row, renamed(asked, rng), negation.WANTS, negation.WANTS_NOT, true, rng)


def bank_pair(pool: Pool, rng: random.Random) -> Decision:
    """The yes/no questions of nlupp_banking, negated."""
    row = rng.choice(pool.sets["nlupp_banking"])
    asked, true = row.instruction, row.label == "yes"
    for form, opposites in negation.INTENT_QUESTIONS:
        found = form.match(asked)
        if found:
            return negation.pair(row, asked, rng.choice(opposites).format(found[1]), true, rng)
    return negation.pair(row, asked, rng.choice(negation.DENIES_ANSWER).format(asked), true, rng)


def routing(pool: Pool, rng: random.Random) -> Decision:
    """A request, and a rule that says which team gets it."""
    row = rng.choice(pool.sets[rng.choice(INTENT_SETS)])
    if is_residual(row.label):
        return routing(pool, rng)
    labels = [c for c in row.choices if not is_residual(c)] if row.set != "sgd_intent" else pool.all_intents
    others = pool.negatives(row.label, labels, rng.randint(1, 3), rng)
    return procedural.routing(row.input, row.label, others, rng) if others else routing(pool, rng)
