"""Shadows: the original masked again and again by the intruder, with draws of his own.

He knows the method, its parameters, the strata and the rules, and he sees how the release is rounded; only
the draws are secret. His own seeds are the same at every run, so that a file has one figure everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import registry
from sdckit.core.randomness import stream_generator
from sdckit.core.registry import Stated, function_options, parameters_in_stratum
from sdckit.core.table import Step, decimals_of, decimals_of_steps, usual_step
from sdckit.masking import mask_rows, rounded
from sdckit.progress import each
from sdckit.risk.distances import breaks_rules, cached_value, known_columns, once
from sdckit.risk.facts import units_of_original
from sdckit.rules.rules import Edits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sdckit.arrays import Floats, Ints
    from sdckit.metrics.pair import Pair

USUAL, MORE = 40, 80  # shadows, and where single records have a law of their own
FEW = 10  # in searches
OF_LARGE = 3  # of files above 20,000 records, which show a law that all records share in each
SEED = 0x5DC  # of the intruder's own draws: public, and no stream of a release uses it
FEWEST = 2  # shadows that tell a random masking from one that draws nothing


def masks_again(pair: Pair) -> bool:
    """Return True if the intruder can mask the file himself and sees something random."""
    disclosure = pair.disclosure
    given = disclosure.method is not None or pair.remask is not None
    return given and disclosure.paired and not disclosure.deterministic


def shadows_of(pair: Pair, count: int) -> Floats:
    """Return the known variables of the file masked `count` times: shadow x record x variable."""
    found: list[Floats] = cached_value(pair.cache, "shadows", list)
    remask, steps = pair.remask or _pipeline(pair), published_steps(pair) if pair.remask else None
    for number in each("masking again", range(len(found), count)):
        masked = remask(
            own_draws(number)
        )  # rounded as the release is, so that swapped values are found again
        found.append(known_columns(pair, rounded(masked, steps) if steps else masked))
    return np.stack(found[:count])


def shadows_of_column(pair: Pair, column: int) -> Floats:
    """Return a variable that the intruder does not know, masked a few times: shadow x record x 1."""
    remask, steps = pair.remask or _pipeline(pair), published_steps(pair)
    masked = (rounded(remask(own_draws(number)), steps) for number in range(FEW))
    return np.stack([file[:, [column]] for file in masked])


def own_draws(number: int) -> np.random.Generator:
    """Return the intruder's own random numbers for one shadow: the same at every run, and public."""
    return stream_generator(SEED, (number,))


def _pipeline(pair: Pair) -> Callable[[np.random.Generator], Floats]:
    """Return a function that masks the file as its disclosure says, rounded and repaired as published."""
    record = registry.method_named(pair.disclosure.method)
    names, values = _masked_columns(pair)
    units = units_of_original(pair.original)
    strata: Sequence[tuple[str, Any]] = pair.strata or [("all", np.arange(pair.original.n))]
    steps, edits = published_steps(pair), _edits(pair)
    shared = [name for name in pair.columns if name in names]  # others are published as they are

    def mask(rng: np.random.Generator) -> Floats:
        """Return the file masked with the given draws."""
        masked = np.empty_like(values)
        for name, rows in strata:
            masked[rows] = mask_rows(
                record,
                np.asfortranarray(values[rows]),
                parameters_in_stratum(record, pair.disclosure.parameters, name),
                rng,
                names=names,
                units=None if units is None else units[rows],
            )
        found = pair.original.values.copy()
        for name in shared:
            found[:, pair.columns.index(name)] = masked[:, names.index(name)]
        found = rounded(found, steps)
        return found if edits is None else edits.repaired(found, decimals_of_steps(steps))

    return mask


def _masked_columns(pair: Pair) -> tuple[Sequence[str], Floats]:
    """Return names and original values of the columns that the method masked, measured or not."""
    names, original = pair.disclosure.columns, pair.original
    if not names or set(names) == set(pair.columns):
        return pair.columns, original.values
    if original.table is None or not set(names) <= set(original.table.names):
        names = tuple(name for name in pair.columns if name in names) or tuple(pair.columns)
        return names, original.values[:, [pair.columns.index(name) for name in names]]
    return names, original.matrix(names)


@once
def published_steps(pair: Pair) -> list[Step]:
    """Return the step that all published values of each variable are multiples of, as everybody can see."""
    return [_step_of_all(column) for column in pair.masked.T]


def release_as_shadow(pair: Pair) -> Floats:
    """Return the known variables of the release, rounded as shadows are: long decimals change a bit."""
    return known_columns(pair, rounded(pair.masked, published_steps(pair)))


def _step_of_all(column: Floats) -> Step:
    """Return the usual step of a column if all values are multiples of it, else its number of decimals."""
    step, seen = usual_step(column), column[~np.isnan(column)]
    return step if np.array_equal(step.rounded(seen), seen) else Step(decimals_of(column))


def _edits(pair: Pair) -> Edits | None:
    """Return the published rules as the repair takes them; None where the release breaks them."""
    if pair.rules is None or breaks_rules(pair):
        return None
    places = [pair.columns.index(name) for name in pair.rules.columns]
    return Edits(pair.rules, tuple(pair.columns), np.asfortranarray(pair.original.values[:, places]))


def stated_law(pair: Pair) -> Stated | None:
    """Return the method's own law of the known variables; None where it states none for such a file."""
    disclosure = pair.disclosure
    record = None if disclosure.method is None else registry.METHODS[disclosure.method]
    if record is None or record.law is None or not pair.original.complete:
        return None
    if pair.strata or units_of_original(pair.original) is not None or pair.rules is not None:
        return None  # the formula is that of the file masked as a whole
    options = function_options(
        record, parameters_in_stratum(record, disclosure.parameters, "all"), pair.columns
    )
    law = None if record.changes_nothing(options) else record.law(options, pair.original.values)
    if law is None:
        return None
    known: Ints = np.asarray(pair.known_variables)
    mean, sd = (np.ascontiguousarray(part[:, known]) for part in (law.mean, law.sd))
    steps = np.array([published_steps(pair)[j].size for j in known])
    return _with_rounding(Stated(law.transform, mean, sd, law.correlation[np.ix_(known, known)]), steps)


def _with_rounding(law: Stated, steps: Floats) -> Stated:
    """Return the law of cells that are rounded to steps: each adds a variance of step^2 / 12 of its own."""
    if law.transform is not None:
        return law  # that of ranks, which rounding changes little
    sd = np.sqrt(law.sd**2 + steps**2 / 12)
    kept = np.sqrt((law.sd**2).mean(axis=0) / (sd**2).mean(axis=0))
    correlation = law.correlation * np.outer(kept, kept)
    np.fill_diagonal(correlation, 1.0)
    return Stated(None, law.mean, sd, correlation)
