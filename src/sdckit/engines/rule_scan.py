"""Edit rules on files that do not fit into memory: checked against the original, facts on their columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.decimals import fewest_decimals
from sdckit.core.in_blocks import InBlocks
from sdckit.engines.transport import Reads
from sdckit.engines.whole_columns import Counts, count_columns, matrix_of, with_products
from sdckit.kernels.scaling import spread_of_sums
from sdckit.rules.rules import WholeFile, asks_to_discover, named_columns, rules_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.core.table import Table
    from sdckit.engines.transport import Block, Transport
    from sdckit.kernels.jit import Ints
    from sdckit.rules.rules import Rules


@dataclass(frozen=True)
class CountBroken:
    """Task: how many records of a block break each rule."""

    rules: Rules

    def __call__(self, block: Block) -> Ints:
        """Return the number of records for each rule."""
        return self.rules.violations(matrix_of(block, self.rules.columns))


def declared_rules(given: Any, table: Table, masked: Sequence[str]) -> Rules | None:
    """Return edit rules that were given as text; None if there are none on a masked column.

    Rules are not discovered here: that takes all records at once.
    """
    if given is None:
        return None
    several = given if isinstance(given, (list, tuple)) else [given]
    if any(asks_to_discover(text) for text in several):
        raise ValueError("rules are discovered in memory only; write them out, such as 'total = a + b'")
    names = sorted(dict.fromkeys([*masked, *named_columns(given, table)]), key=table.names.index)
    found = rules_of(given, names, np.empty((0, len(names))))
    return found if found is not None and set(found.columns) & set(masked) else None


def count_broken(transport: Transport, found: Rules) -> Ints:
    """Return the number of original records that break each rule, by a scan."""
    counts = transport.scan(CountBroken(found), Reads(found.columns), step="checking rules")
    return np.sum(counts, axis=0)


def rule_columns(transport: Transport, found: Rules, strata: int) -> WholeFile:
    """Return decimals and spreads of the columns that rules name, over all strata, by two scans."""
    names = found.columns
    counts = reduce(Counts.plus, count_columns(transport, names, strata, decimals=True))
    whole = counts.whole(nonzero=False)
    parts = with_products(transport, names, [whole] * strata, InBlocks(needs="squares"))
    squares = np.sum([np.diag(one.products) for one in parts if one.products is not None], axis=0)
    decimals = {name: fewest_decimals(fits) for name, fits in zip(names, counts.fits, strict=True)}
    return WholeFile(decimals, whole.powers * spread_of_sums(squares, whole.seen))
