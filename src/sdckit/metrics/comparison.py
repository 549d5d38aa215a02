"""What loss metrics ask about an original and a masked file.

`Pair` answers from two files in memory; an engine answers from sums over blocks of records, without holding
either file. The formulas of metrics use nothing else, so that each stands once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from sdckit.core.checks import NotApplicable

if TYPE_CHECKING:
    import numpy as np

    from sdckit.kernels.jit import Floats
    from sdckit.kernels.tie_rules import TieSummary
    from sdckit.metrics.blocks.cell_sums import CellSums, Cost
    from sdckit.metrics.blocks.contributions import Dominance
    from sdckit.metrics.blocks.correlations import Correlations
    from sdckit.metrics.blocks.coupled_columns import QuantileGap
    from sdckit.metrics.blocks.scaled_numbers import Scaled
    from sdckit.metrics.counts import ColumnFacts, Counts, MeanAndSpread
    from sdckit.metrics.pair import Pair


class VariableComparison(Protocol):
    """Answers about one variable, over the records with a value in both files."""

    @property
    def facts(self) -> ColumnFacts:
        """Number of records, which column is constant, and the heaviest weight."""

    def unrelated_cells(self, cost: Cost, zeros: str) -> tuple[float, float]:
        """Return the sums of costs and of weights, as means over permutations of the masked values."""

    def arctan_sum(self, unit: float) -> float:
        """Return the weighted sum of the changes of cells, bounded by the arctangent in this unit."""

    def dominance(self, cost: Cost) -> Dominance:
        """Return the largest contributions of records to the sums that a loss publishes."""

    def distribution_gap(self) -> float:
        """Return the largest distance of the distribution functions in both files."""

    def bin_weights(self) -> tuple[Floats, Floats]:
        """Return the weight of original and of masked values in quantile bins of the original."""

    def quantile_gap(self) -> QuantileGap:
        """Return the mean distance of original and masked values at the same quantile."""

    def means_and_spreads(self) -> tuple[MeanAndSpread, MeanAndSpread]:
        """Return mean and standard deviation in both files, without weights."""


class Comparison(Protocol):
    """Answers about an original and a masked file with aligned rows, as a whole or within a stratum.

    Variables are numbered from 0 in the order of `columns`. Where an engine has no answer, it raises
    NotApplicable, and `evaluate` leaves the metric out with a note.
    """

    # --- records, variables and missing cells ---

    @property
    def n(self) -> int:
        """Number of records."""

    @property
    def p(self) -> int:
        """Number of variables."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the variables."""

    @property
    def weighted(self) -> bool:
        """True if records have survey weights."""

    @property
    def complete(self) -> bool:
        """True if neither file has a missing cell."""

    @property
    def counts(self) -> Counts:
        """Numbers of observed and missing cells of each variable."""

    @property
    def kept_weight(self) -> Floats:
        """Summed weight of the cells that both files have, for each variable."""

    @property
    def suppressed_weight(self) -> Floats:
        """Summed weight of the cells missing in the masked file only, for each variable."""

    @property
    def complete_records(self) -> int:
        """Number of records without a missing cell in either file."""

    @property
    def in_memory(self) -> Pair | None:
        """Both files as arrays; None where an engine holds none."""

    def variable(self, j: int) -> VariableComparison:
        """Return what answers questions about variable j alone."""

    # --- cells ---

    @property
    def spreads(self) -> Floats:
        """Standard deviation (ddof 1, weighted) of each original variable; NaN below two values."""

    @property
    def all_vary(self) -> bool:
        """True where every original variable has a standard deviation above 0."""

    @property
    def scales(self) -> Floats:
        """Divisor of each variable's costs in IL1s: sqrt(2) standard deviations."""

    @property
    def cell_sums(self) -> CellSums:
        """Sums of costs and weights, and counts of cells, of each variable."""

    # --- ranks ---

    def rank_values(self, what: str, ties: str, rng: np.random.Generator | None = None) -> Floats:
        """Return brMAE ("absolute"), brMSE ("squared") or another property of `RankSums` per variable."""

    def tie_summary(self, j: int) -> TieSummary:
        """Return variable j's range of brMAE and brMSE over tie-breakings, and values in unrelated order."""

    def weighted_losses(self, j: int, what: Literal["values", "unrelated_values"]) -> tuple[float, float]:
        """Return weighted brMAE and brMSE of variable j, as measured or in unrelated order."""

    # --- squared errors and moments ---

    @property
    def split_sums(self) -> tuple[Scaled, Scaled]:
        """Each variable's sums of both parts of the squared error, marginal and permutation."""

    @property
    def unrelated_squares(self) -> Scaled:
        """Each variable's squared error for an unrelated order: the mean over all permutations."""

    @property
    def correlations(self) -> Correlations:
        """Correlations of the variables in both files, over the records complete in both."""


def require_in_memory(comparison: Comparison, what: str) -> Pair:
    """Return both files as arrays; raise NotApplicable, saying what needs them, where there are none."""
    pair = comparison.in_memory
    if pair is None:
        raise NotApplicable(f"{what} needs both files in memory and these are read in blocks; leave it out")
    return pair
