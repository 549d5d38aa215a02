"""Several releases of one file together: attacks of an intruder who can align their records.

What one release leaves open another may tell: the facts of all of them hold at once, and the log-likelihoods
of their laws add up, so that noise which is drawn anew for each release averages out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.core.classes import class_numbers
from sdckit.kernels.candidates import Side
from sdckit.metrics.pair import Pair
from sdckit.risk.attack_kinds import DEFAULTS, DIRECTIONS, LINKS
from sdckit.risk.attack_results import AttackResult
from sdckit.risk.facts import CERTAIN, Facts, facts_of
from sdckit.risk.intruder import LawAttack, joint_posterior, reads_law
from sdckit.risk.linkage_scores import BOTH, applicable_attacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.kernels.jit import Ints
    from sdckit.risk.facts import Sides

FILES = ("standardised", "blocks", "breaks rules", "untouched")  # not of the facts
LAWS = ("shadows", "folds")


class JointAttack(NamedTuple):
    """The result of an attack on releases that are known together, and what it attacks."""

    label: str  # such as "dbrl of release 2" or "dbrl of the mean"
    target: str  # such as "release 2" or "the mean of the releases"
    result: AttackResult


def attacks_together(pairs: Sequence[Pair]) -> Iterator[JointAttack]:
    """Yield the results of all attacks on several releases inside the facts that hold for all of them."""
    shared = common_facts([facts_of(pair) for pair in pairs])
    for number, pair in enumerate(pairs, 1):
        for result in applicable_attacks(_inside(pair, shared), BOTH):
            if result.name == "guess":  # the same for all releases
                yield JointAttack("guess", "all releases", result)
            elif result.name not in LAWS:
                yield JointAttack(f"{result.name} of release {number}", f"release {number}", result)
    paired = [pair for pair in pairs if pair.disclosure.paired]
    for by in LAWS if len(paired) > 1 and all(reads_law(pair, "folds") for pair in paired) else ():
        yield from _law_of_all(paired, shared, by)


def _law_of_all(pairs: Sequence[Pair], shared: Facts, by: str) -> Iterator[JointAttack]:
    """Yield the links by the laws of all releases together."""
    cells = np.mean([pair.masked for pair in pairs], axis=0)  # rows that are alike in all releases share
    joint = _inside(Pair(pairs[0].original, np.asfortranarray(cells), table=pairs[0].table), shared)
    found = joint_posterior(pairs, shared.runs[CERTAIN], by)
    for direction in DIRECTIONS:
        for links in LINKS:
            result = AttackResult(joint, by, DEFAULTS | {"direction": direction, **links})
            result.attack = LawAttack(found, direction, links["one_to_one"])
            yield JointAttack(f"{by} of all releases", "all releases", result)


def _inside(pair: Pair, shared: Facts) -> Pair:
    """Return a pair whose attacks run inside the shared facts; its own order and places are kept."""
    own = pair.cache.get("risk: facts")
    kept = {f"risk: {name}": pair.cache[f"risk: {name}"] for name in FILES if f"risk: {name}" in pair.cache}
    facts = shared if own is None else replace(shared, blocks=own.blocks, places=own.places)
    return replace(pair, cache={**kept, "risk: facts": facts})


def common_facts(found: Sequence[Facts]) -> Facts:
    """Return the facts that several releases give together; doubtful columns (case d) are left out."""
    ours, theirs = zip(*(facts.runs[CERTAIN] for facts in found), strict=True)
    n = found[0].n
    labels = [np.concatenate([a.blocks, b.blocks]) for a, b in zip(ours, theirs, strict=True)]
    blocks = np.split(class_numbers(labels, 2 * n), 2)
    sides: Sides = _joined(ours, blocks[0]), _joined(theirs, blocks[1])
    return Facts({CERTAIN: sides})


def _joined(sides: Sequence[Side], blocks: Ints) -> Side:
    """Return one file's part of the facts of all releases, from those of each and the joint blocks."""
    low, high = (
        np.ascontiguousarray(np.concatenate(ends, axis=1))
        for ends in ([side.low for side in sides], [side.high for side in sides])
    )
    return Side(blocks, low, high)
