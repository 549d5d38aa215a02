"""Unique records of files read in blocks: how many stand alone on the columns that are published unmasked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.core.classes import Uniques
from sdckit.engines.transport import Block, Message, Reads
from sdckit.risk.distances import row_marks

if TYPE_CHECKING:
    from sdckit.engines.transport import Transport


class Classes(NamedTuple):
    """Numbers of classes of equal records, and of those with one record only."""

    number: int
    alone: int


@dataclass(frozen=True)
class MarkSending:
    """The first step of an exchange: marks of published records go to the bucket that their mark says."""

    cells: tuple[str, ...]
    buckets: int

    def __call__(self, block: Block) -> Iterator[Message]:
        """Yield the different marks of a block's records, and how many records have each."""
        published = np.column_stack([block.cells[name][1] for name in self.cells])
        marks, counts = np.unique(row_marks(published), return_counts=True)
        bucket = marks % np.uint64(self.buckets)
        for number in np.unique(bucket).tolist():
            chosen = bucket == number
            yield Message(number, 0, (marks[chosen], counts[chosen]))


def count_classes(_bucket: int, messages: Sequence[Message]) -> Classes:
    """Return how many classes the records of a bucket form, and how many have one record."""
    marks, counts = (np.concatenate(part) for part in zip(*(one.arrays for one in messages), strict=True))
    numbers = np.unique(marks, return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(numbers, weights=counts)
    return Classes(sizes.size, int((sizes == 1).sum()))


def find_uniques(transport: Transport, cells: tuple[str, ...]) -> Uniques:
    """Return the share of records alone on the published cells of some columns, and their floor."""
    n = transport.rows
    if not cells:
        return Uniques(0.0, 1 / n)
    task = MarkSending(cells, -(-n // transport.bucket_rows))
    found = transport.exchange(task, Reads(cells=cells), [], count_classes, step="counting equal records")
    number, alone = np.sum([*found.values()], axis=0)
    return Uniques(float(alone / n), float(number / n))
