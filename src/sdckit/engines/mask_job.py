"""A masking of files as scans and exchanges: what the method needs of the whole file, then the masking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.quoting import quoted
from sdckit.core.settings import function_options
from sdckit.core.text import plural
from sdckit.engines.finishing import total
from sdckit.engines.group_masking import GroupRecords, SendRecords, find_blocks
from sdckit.engines.rank_masking import Runs, SendValues, Swap, stages_of
from sdckit.engines.row_parts import FinishPart, RowParts
from sdckit.engines.tail_scan import with_codes
from sdckit.engines.transport import Reads
from sdckit.engines.value_buckets import find_buckets
from sdckit.engines.whole_columns import matrix_of, strata_in, with_products
from sdckit.masking.mask_matrix import apply, enough_present
from sdckit.masking.swapping import swap_parameters
from sdckit.progress import track

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sdckit.core.in_blocks import InBlocks, WholeColumns
    from sdckit.core.registry import Method
    from sdckit.engines.finishing import Finish, FinishCounts
    from sdckit.engines.transport import Block, Transport
    from sdckit.engines.whole_columns import Counts
    from sdckit.kernels.draws import CellDraws

ROOM = 2 / 3  # share of a bucket's rows that are used: a row with its number and partner takes more memory
CUTTING = 0.2  # share of the progress of masking by ranks at which values are sent
FIRST_STRATUM = 1  # stream of draws of the first stratum; stream 0 is that of cells


@dataclass(frozen=True)
class MaskBlock:
    """Task: mask a block of rows with the method's own function, stratum by stratum, finish and write it."""

    method: Method
    names: tuple[str, ...]
    options: tuple[Mapping[str, Any], ...]
    bases: tuple[Any, ...]
    draws: CellDraws
    finish: Finish

    def __call__(self, block: Block) -> FinishCounts:
        """Return what was counted while the block was finished."""
        values = matrix_of(block, self.names)
        masked = np.empty_like(values)
        for stratum, rows in strata_in(block):
            draws: Any = self.draws.at(block.first + rows)
            masked[rows] = apply(
                self.method,
                np.asfortranarray(values[rows]),
                dict(self.options[stratum]),
                draws,
                names=self.names,
                basis=self.bases[stratum],
            )
        return self.finish(block, masked)


@dataclass(frozen=True)
class MaskJob:
    """A masking of files: method, columns, names and options of the strata, source of randomness."""

    transport: Transport
    method: Method
    names: tuple[str, ...]
    strata: tuple[str, ...]
    options: tuple[Mapping[str, Any], ...]  # of each stratum
    draws: CellDraws
    stratified: bool

    @property
    def plan(self) -> InBlocks:
        """How the method masks files in blocks."""
        assert self.method.in_blocks is not None  # noqa: S101 - checked before
        return self.method.in_blocks

    @property
    def alike(self) -> bool:
        """True if the records of each group are published alike, without codes in missing cells."""
        applies = self.method.alike
        return applies is not None and any(applies(chosen) for chosen in self.options)

    def function_options(self) -> list[dict[str, Any]]:
        """Return the options of each stratum as the method's function takes them."""
        return [function_options(self.method, chosen, self.names) for chosen in self.options]

    def check_sizes(self, counts: Sequence[Counts]) -> None:
        """Raise ValueError if the file or a stratum has fewer records than the method needs."""
        for name, found, chosen in zip(self.strata, counts, self.options, strict=True):
            what = f"stratum {quoted(name)}" if self.stratified else "the file"
            enough_present(self.method, found.present, len(self.names), chosen, what)
            empty = found.records - found.present
            if self.method.alike is not None and self.method.alike(chosen) and 0 < empty < chosen["k"]:
                raise ValueError(
                    f"{what} has {empty} {plural(empty, 'record')} without any value, too few for a group of "
                    f"k = {chosen['k']}; leave them out, or use engine='memory'"
                )

    def whole_columns(self, counts: Sequence[Counts]) -> list[WholeColumns]:
        """Return the facts on each stratum that the method needs, by further scans."""
        columns = [found.whole(nonzero=self.plan.nonzero) for found in counts]
        if self.plan.needs in ("squares", "products"):
            return with_products(self.transport, self.names, columns, self.plan)
        if self.plan.needs == "codes":
            return with_codes(self.transport, self.names, columns, self.function_options())
        return columns

    def run(self, columns: Sequence[WholeColumns], finish: Finish) -> tuple[FinishCounts, list[list[str]]]:
        """Mask, finish and write all rows; return what was counted, and notes for each stratum."""
        given = self.function_options()
        notes = [self.plan.notes(one, chosen) for one, chosen in zip(columns, given, strict=True)]
        if self.plan.how == "cells":
            return self._mask_cells(columns, finish), notes
        if self.plan.how == "ranks":
            return self._mask_ranks(columns, finish), notes
        counts, more = self._mask_groups(columns, finish)
        return counts, [a + b for a, b in zip(notes, more, strict=True)]

    def _mask_cells(self, columns: Sequence[WholeColumns], finish: Finish) -> FinishCounts:
        """Mask each block of rows by the method's own function."""
        bases = tuple(self.plan.basis(one, chosen) for one, chosen in zip(columns, self.options, strict=True))
        task = MaskBlock(self.method, self.names, self.options, bases, self.draws, finish)
        return total(self.transport.scan(task, finish.reads, step="masking"))

    def _parts(self) -> RowParts:
        """Return the parts of rows that are written by one task each."""
        return RowParts.of(self.transport.rows, len(self.names), self.transport.bucket_rows)

    def _mask_ranks(self, columns: Sequence[WholeColumns], finish: Finish) -> FinishCounts:
        """Mask by ranks: swap the values of ranks, or average runs of them."""
        p, parts = len(self.names), self._parts()
        sizes = [int(n) for one in columns for n in one.seen]
        largest = max(1, int(ROOM * self.transport.bucket_rows))
        with track("masking", 1.0) as report:
            report(0.0, CUTTING)
            buckets = find_buckets(self.transport, self.names, sizes, largest)
            swaps, runs = self._swaps(sizes), self._runs(sizes)
            skipped = frozenset(piece for piece, run in runs.items() if run.n < run.k)
            first = SendValues(self.names, buckets, parts, skipped, swaps)
            stages = stages_of("swap" if swaps else "runs", buckets, parts, p, runs)
            last = FinishPart(finish, parts)
            report(CUTTING, 1.0 - CUTTING)
            found = self.transport.exchange(first, Reads(self.names), stages, last, step="masking")
        return total(list(found.values()))

    def _swaps(self, sizes: Sequence[int]) -> dict[int, Swap]:
        """Return the swapping of each piece; none for a method that draws nothing."""
        if not self.method.random:
            return {}
        found, p = {}, len(self.names)
        for piece, n in enumerate(sizes):
            stratum, column = divmod(piece, p)
            chosen = swap_parameters(**self.options[stratum])
            draws = self.draws.in_stream(FIRST_STRATUM + stratum).of_column(column)
            found[piece] = Swap(n, chosen.window(n)[1], chosen.downwards, draws)
        return found

    def _runs(self, sizes: Sequence[int]) -> dict[int, Runs]:
        """Return the runs of ranks of each piece; none for a method that draws."""
        if self.method.random:
            return {}
        p = len(self.names)
        chosen = [self.options[piece // p] for piece in range(len(sizes))]
        return {
            piece: Runs(n, one["k"], one["aggregate"])
            for piece, (n, one) in enumerate(zip(sizes, chosen, strict=True))
        }

    def _mask_groups(
        self, columns: Sequence[WholeColumns], finish: Finish
    ) -> tuple[FinishCounts, list[list[str]]]:
        """Mask by groups that are formed within blocks of similar records."""
        blocks, notes = find_blocks(self.transport, self.names, columns, self.method, self.options)
        parts = self._parts()
        first = SendRecords(self.names, blocks, parts)
        stage = GroupRecords(self.method, self.names, self.options, blocks, parts)
        last = FinishPart(finish, parts)
        found = self.transport.exchange(first, Reads(self.names), [stage], last, step="masking")
        return total(list(found.values())), notes
