"""A slow, obvious intruder: attacks a published file by the facts that its release discloses.

Tables are dicts of column name to list of cells (float, str, date, or None for a missing one); in a masked
column a str is the code of a missing cell. Row i of the published table belongs to row i of the original.
Everything is a loop over all pairs, for files of up to a few hundred records.

Readings, where the definitions leave a choice:

Facts
 1. A relation is a fact only if it holds for all true pairs of the file at hand; one that the method states
    (zeros, window, order, base) and that a true pair breaks is left out as a whole, for that variable, and
    named in `Facts.failed`.
 2. Cases (a) to (e) of an untouched column are tried in this order; a missing cell is a value like others in
    (a), (b) and (d). Any function counts for (b), also one seen on distinct originals only, but a one-to-one
    map between two columns of distinct cells counts only when monotone (a change of scale): else it is a
    fresh numbering, which tells nothing.
 3. Conversion: numbers and texts that Python reads as finite numbers are compared as floats, dates and
    texts in ISO form as dates, all else as text, exactly. "007" equals 7.
 4. Case (c) is about published cells that are missing; an original cell that was imputed breaks it.
 5. Several columns of case (d): one run with all of them, one with none; the one with the larger mean counts.
 6. Missing places: the relations "missing stays missing" and "observed stays observed" are tested one by one,
    without and with codes, and all that hold are used; both together are "in both or in neither".
 7. A missing cell fits the facts on zeros, windows and bases; only the facts on places speak about it.
 8. Window: ranks from 0 among the observed cells of the stratum, original and published file each by itself;
    first and last rank of a value's ties; a pair fits where the two blocks, one of them widened by the
    window, overlap. Pairs across strata are not judged by it. Where a column of `by` is not known there is no
    window. Columns under edit rules are exempt from windows, order and bases (repair moves them).
 9. Half a base is widened by 1e-9 of the larger of half a base and the two values.
10. Run again: equal in all known masked cells. Needs all masked columns and those of `by` known; for methods
    that treat variables one by one, those of `by`.
11. Re-paired rows: only untouched columns and places of missing cells are facts, and no distance is used,
    row order neither. Not measurable (None) where these facts exclude no pair.

Distances
12. The definitions name none but row order. Taken: "euclid" (differences in standard deviations of
    the original's observed cells, divisor n - 1; 1 for a constant variable), "ranks" (mid-ranks of each file
    and variable by itself, from 1/2, as shares of its observed cells), over known masked variables. Not per
    stratum.
13. Missing cells: p times the mean squared difference over the cells that both records have; infinite without
    any. Where all candidates are infinitely far, all tie.
14. Ties: squared distance at most (1 + 1e-9) times the smallest, so that beside 0 only 0 is equal.
15. Queries are equal if their coordinates of the attack are equal to the last bit and their candidates are
    the same set. Means are taken over them last.
16. Row order: known columns and the key, their original cells; positions are those of the published file.
    Ranks over rows where both files have the cell; Spearman's correlation over the file and, where there are
    equality facts (a, b), of ranks within blocks, pooled over the blocks (each centred by its mean). Each
    such variable gives one distance, between rank of the row and mid-rank of the value; it is not combined.
17. `linkage` is the largest mean over plain guess and distances, both directions, and both runs of case (d).
    A record's risk is its credit in that strongest attack.
18. One-to-one matching: cost is the sum of euclid distances; pairs without a common cell are as far
    as the farthest allowed pair. The largest matching comes first, then the cheapest; all optimal ones (costs
    within 1e-9) count the same. It is one more attack, run on request.

Beyond linkage
19. Uniques: classes of the published cells of all known untouched columns, whatever their case; floor: of
    those of the cases a, b and c, since changed cells guarantee no link.
20. Attribute: the largest share over the distances (without any: random links inside F); originals whose
    value is missing are left out; a missing guess is wrong. The constant is the median or the mode (the
    smallest of several) of the published column, the better one. Excess is the difference, negative where
    the attack is worse than a baseline. The confidential variable is no fact, and a method that read it
    cannot be run again.
21. Dominance: absolute original values of a group's records with an observed cell, a missing contributor
    counts 0; cells of groups without a published value are left out.
22. Row to unit: both directions, plain guess included. Unit to unit: two units fit if they have as many rows
    and these can be matched one to one inside F; distances are euclid between means of observed cells and,
    if no unit has more than 20 rows, between sorted cells (each variable by itself, missing ones last); the
    mean is over units. Without the grouping in the published table there is no unit to unit attack (0).
    Columns of case (d) are not used.
23. Several releases: facts are intersected; case (d) is used in the single ones only. Means are over the
    releases that have the cell; where some publish a variable unchanged, they alone count for it.
"""

import numpy as np

from intruder_distances import attack_both, cell_distances, euclid, look, order_distances, plain
from intruder_facts import facts
from intruder_matching import class_credits


def all_credits(candidates, distances):
    """From candidates and distances, a dict of (name, direction) to the shared credits of all records."""
    return {
        (made.name, direction): credit
        for made in distances
        for direction, credit in attack_both(candidates, made).items()
    }


def matching(original, published, release, candidates):
    """From both tables and candidates, a dict of the credits of one-to-one matching."""
    made = euclid(original, published, release)
    queries = [look(*row) for row in zip(made.published, candidates, strict=True)]
    targets = [look(*row) for row in zip(made.original, candidates.T, strict=True)]
    return {("matching", "one_to_one"): class_credits(candidates, np.sqrt(made.squared), queries, targets)}


def means(credit):
    """From a dict of credits, a dict of their means over all records."""
    return {name: float(np.mean(values)) for name, values in credit.items()}


def runs(found):
    """From the Facts, a dict of candidates by run: without and, if there are any, with columns of case d."""
    return {"certain": found.certain} | ({} if found.doubtful is None else {"doubtful": found.doubtful})


def linkage(original, published, release, positions=None, *, one_to_one=False):
    """From both tables, the release and row numbers as published (None: shuffled), a dict of the attacks.

    `credits` has them by (name, direction, run), one credit per record; `linkage` is the largest mean,
    `without_order` the largest without row order, `risk` the credits of the strongest attack.
    """
    found = facts(original, published, release)
    distances = [plain(len(found.certain)), *cell_distances(original, published, release)]
    ordered = order_attacks(original, published, release, found, positions)
    credit = {}
    for run, candidates in runs(found).items():
        made = all_credits(candidates, [*distances, *ordered])
        made |= matching(original, published, release, candidates) if one_to_one else {}
        credit |= {(*name, run): values for name, values in made.items()}
    return summary(credit, found, release, {made.name for made in ordered})


def order_attacks(original, published, release, found, positions):
    """From both tables, the facts and row numbers, the distances of row order; none for shuffled rows."""
    if positions is None or release.re_paired:
        return []
    return order_distances(original, published, release, found, positions)


def summary(credit, found, release, ordered):
    """From all credits, the dict that `linkage` returns."""
    value = means(credit)
    strongest = max(value, key=value.__getitem__)
    measurable = not (release.re_paired and all(run.all() for run in runs(found).values()))
    return {
        "facts": found,
        "credits": credit,
        "means": value,
        "linkage": value[strongest] if measurable else None,
        "without_order": max(m for name, m in value.items() if name[0] not in ordered)
        if measurable
        else None,
        "strongest": strongest,
        "risk": credit[strongest],
    }
