"""Microaggregation of files that do not fit into memory: MDAV within blocks of similar records.

A tree grown on a sample cuts each stratum into blocks; every block goes to one task, which forms its groups
from records in the order of their row numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.engines.record_tree import Node, blocks_of_points, count_blocks, grow, without_small_blocks
from sdckit.engines.row_parts import RowParts, by_bucket, joined
from sdckit.engines.transport import Reads
from sdckit.engines.value_buckets import CHOICE
from sdckit.engines.whole_columns import matrix_of, strata_in
from sdckit.kernels.scaling import deviations_from
from sdckit.masking.mask_matrix import apply
from sdckit.masking.pca_microaggregation import (
    SAMPLE,
    groups_in_block,
    largest_block,
    loss_note,
    sample_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sdckit.core.in_blocks import WholeColumns
    from sdckit.core.registry import Method
    from sdckit.engines.transport import Block, Message, Transport
    from sdckit.kernels.jit import Floats, Ints

EXACT = 1_000_000  # most records among which MDAV forms groups at once
PER_BLOCK, MOST = 400, 500_000  # sampled records for each block, and at most
FULL = 0.95  # share of the largest size of a block that is aimed at: samples miss it now and then


@dataclass(frozen=True)
class Scale:
    """How records of a stratum are compared: columns standardised by mean and deviation (ddof 0) of all."""

    powers: Floats
    centres: Floats
    sizes: Floats

    @classmethod
    def of(cls, whole: WholeColumns) -> Scale:
        """Return the scale that follows from facts on a stratum's columns."""
        assert whole.products is not None  # noqa: S101 - asked for in the registry
        sizes = np.sqrt(np.diag(whole.products) / np.maximum(whole.seen, 1))
        return cls(whole.powers, whole.centres, np.where(sizes > 0, sizes, 1.0))

    def points(self, values: Floats) -> Floats:
        """Return records as MDAV compares them; missing cells stay NaN."""
        centred = deviations_from(values / self.powers, self.centres) / self.sizes
        return np.ascontiguousarray(np.where(np.isnan(values), np.nan, centred))


def present_records(block: Block, names: Sequence[str]) -> Iterator[tuple[int, Ints, Floats]]:
    """Yield number, rows and values of the records of each stratum in a block that have a value."""
    values = matrix_of(block, names)
    present = np.flatnonzero(~np.isnan(values).all(axis=1))
    for stratum, rows in strata_in(block):
        chosen = np.intersect1d(rows, present, assume_unique=True)
        yield stratum, chosen, values[chosen]


@dataclass(frozen=True)
class SampleRecords:
    """Task: records of each stratum that are chosen by their row number alone."""

    names: tuple[str, ...]
    rates: tuple[float, ...]

    def __call__(self, block: Block) -> dict[int, Floats]:
        """Return the sampled records of each stratum in the block."""
        draws = CHOICE.uniforms(np.arange(block.first, block.first + block.rows), 0)
        return {
            stratum: values[draws[rows] < self.rates[stratum]]
            for stratum, rows, values in present_records(block, self.names)
        }


@dataclass(frozen=True)
class Blocks:
    """Trees that say to which block a record goes, by stratum; blocks are numbered through."""

    trees: tuple[Node | int, ...]
    scales: tuple[Scale, ...]

    @property
    def bases(self) -> Ints:
        """Number of the first block of each stratum, and the number of all blocks at the end."""
        return np.cumsum([0, *(count_blocks(tree) for tree in self.trees)])

    def of(self, stratum: int, values: Floats) -> Ints:
        """Return the block of each record of a stratum."""
        found = blocks_of_points(self.trees[stratum], self.scales[stratum].points(values))
        return found + self.bases[stratum]

    def stratum_of(self, number: int) -> int:
        """Return the stratum of a block."""
        return int(np.searchsorted(self.bases, number, "right")) - 1


@dataclass(frozen=True)
class CountRecords:
    """Task: how many records of a block of rows go to each block of similar records."""

    names: tuple[str, ...]
    blocks: Blocks

    def __call__(self, block: Block) -> Ints:
        """Return the number of records for each block of similar ones."""
        total = np.zeros(self.blocks.bases[-1], np.int64)
        for stratum, _, values in present_records(block, self.names):
            total += np.bincount(self.blocks.of(stratum, values), minlength=len(total))
        return total


@dataclass(frozen=True)
class SendRecords:
    """First step: send each record with its row number to its block."""

    names: tuple[str, ...]
    blocks: Blocks
    parts: RowParts

    def __call__(self, block: Block) -> Iterator[Message]:
        """Yield the messages of a block of rows."""
        yield self.parts.touches(block, 0)
        for stratum, rows, values in present_records(block, self.names):
            yield from by_bucket(self.blocks.of(stratum, values), 0, rows + block.first, *values.T)


@dataclass(frozen=True)
class GroupRecords:
    """Stage: form groups within a block of similar records and hand what is published to their rows."""

    method: Method
    names: tuple[str, ...]
    options: tuple[Mapping[str, Any], ...]
    blocks: Blocks
    parts: RowParts

    def __call__(self, number: int, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the messages of a block of similar records."""
        yield from self.parts.passed_on(messages)
        rows, *columns = joined(messages, 0, 1 + len(self.names))
        if not rows.size:
            return
        order = np.argsort(rows)
        values = np.asfortranarray(np.column_stack(columns)[order])
        stratum = self.blocks.stratum_of(number)
        options = dict(self.options[stratum])
        if "block" in options:
            options["block"] = len(values)
        points = self.blocks.scales[stratum].points(values)
        several = isinstance(self.blocks.trees[stratum], Node)
        groups = groups_in_block(values, options["k"], points) if several else None
        rng = np.random.default_rng(0)  # no method that forms groups draws
        masked = apply(self.method, values, options, rng, names=self.names, basis=points, groups=groups)
        yield from self.parts.sent(0, rows[order].astype(np.int64), *masked.T)


def find_blocks(
    transport: Transport,
    names: tuple[str, ...],
    columns: Sequence[WholeColumns],
    method: Method,
    options: Sequence[Mapping[str, Any]],
) -> tuple[Blocks, list[list[str]]]:
    """Return the blocks in which a method forms groups, and notes on them for each stratum."""
    scales = tuple(Scale.of(one) for one in columns)
    wanted = [
        _blocks_wanted(transport, method, one.present, chosen)
        for one, chosen in zip(columns, options, strict=True)
    ]
    if max(wanted) == 1:
        return Blocks(tuple(0 for _ in wanted), scales), [[] for _ in wanted]
    samples = _samples(transport, names, columns, wanted)
    trees = tuple(
        grow(scale.points(sample), count)
        for scale, sample, count in zip(scales, samples, wanted, strict=True)
    )
    found = Blocks(trees, scales)
    counts = _records_by_block(transport, names, found)
    merged = tuple(
        without_small_blocks(tree, sizes, 3 * chosen["k"])
        for tree, sizes, chosen in zip(trees, counts, options, strict=True)
    )
    if any(count_blocks(one) < len(sizes) for one, sizes in zip(merged, counts, strict=True)):
        found = Blocks(merged, scales)
        counts = _records_by_block(transport, names, found)
    notes = [
        _notes(sample, chosen, sizes) for sample, chosen, sizes in zip(samples, options, counts, strict=True)
    ]
    return found, notes


def _records_by_block(transport: Transport, names: tuple[str, ...], blocks: Blocks) -> list[list[int]]:
    """Return the number of records in each block of each stratum, by a scan."""
    found = transport.scan(CountRecords(names, blocks), Reads(names), step="counting records")
    counts = np.sum(found, axis=0).tolist()
    return [counts[a:b] for a, b in pairwise(blocks.bases)]


def _blocks_wanted(transport: Transport, method: Method, n: int, options: Mapping[str, Any]) -> int:
    """Return into how many blocks n records are cut; ValueError for too many records in one block."""
    if "block" in options:
        largest = largest_block(options["k"], options["block"])
        return 1 if n <= largest else -(-n // max(int(FULL * largest), 1))
    most = min(EXACT, transport.bucket_rows)
    if n > most:
        raise ValueError(
            f"{method.name} would form groups among {n:,} records at once, and {most:,} are the most here; "
            "use blocked_mdav, or strata (by)"
        )
    return 1


def _samples(
    transport: Transport, names: tuple[str, ...], columns: Sequence[WholeColumns], wanted: Sequence[int]
) -> list[Floats]:
    """Return a sample of the records of each stratum that is cut into several blocks; empty for others."""
    sizes = [min(max(SAMPLE, PER_BLOCK * blocks), MOST) for blocks in wanted]
    rates = tuple(
        min(1.0, size / max(one.present, 1)) if blocks > 1 else 0.0
        for size, one, blocks in zip(sizes, columns, wanted, strict=True)
    )
    parts: list[list[Floats]] = [[np.empty((0, len(names)))] for _ in wanted]
    for found in transport.scan(SampleRecords(names, rates), Reads(names), step="sampling"):
        for stratum, values in found.items():
            parts[stratum].append(values)
    return [np.concatenate(some) for some in parts]


def _notes(sample: Floats, options: Mapping[str, Any], sizes: Sequence[int]) -> list[str]:
    """Return notes on the blocks of a stratum and on what they cost, measured on a sample; none for one."""
    if len(sizes) == 1 or options["k"] == 1:
        return []
    rows = np.unique(np.linspace(0, len(sample) - 1, min(SAMPLE, len(sample))).astype(np.int64))
    block = -(-len(rows) // len(sizes))
    said = f"groups were formed within {len(sizes)} blocks of {min(sizes):,} to {max(sizes):,} records"
    return [said, loss_note(sample[rows], options, block, sample_words(len(rows)))]
