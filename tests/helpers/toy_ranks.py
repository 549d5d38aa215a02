"""A toy statistic in two exchanges: the sum of |rank in x - rank in y| of rows, by sorting buckets."""

from dataclasses import dataclass

import numpy as np

from sdckit.engines.transport import Message


@dataclass(frozen=True)
class Count:
    """Count the values of both columns in each bucket."""

    cuts: np.ndarray

    def __call__(self, block):
        size = len(self.cuts) + 1
        columns = (block.original["x"], block.masked["y"])
        return [np.bincount(np.searchsorted(self.cuts, one, "right"), minlength=size) for one in columns]


def split(values, cuts, *arrays):
    """Yield bucket and the parts of arrays whose values fall into it."""
    number = np.searchsorted(cuts, values, "right")
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(len(cuts) + 2))
    arrays = [array[order] for array in arrays]
    for bucket in np.flatnonzero(np.diff(ends)).tolist():
        yield bucket, tuple(array[ends[bucket] : ends[bucket + 1]] for array in arrays)


@dataclass(frozen=True)
class SendByX:
    cuts: np.ndarray

    def __call__(self, block):
        x, y = block.original["x"], block.masked["y"]
        for bucket, parts in split(x, self.cuts, x, y):
            yield Message(bucket, 1, parts)


def joined(messages):
    return [np.concatenate(parts) for parts in zip(*(message.arrays for message in messages), strict=True)]


@dataclass(frozen=True)
class RankX:
    """Rank the rows of a bucket by x, and send them by y. Ties keep the order of the file."""

    starts: np.ndarray
    cuts: np.ndarray

    def __call__(self, bucket, messages):
        assert all(message.kind == 1 for message in messages)
        x, y = joined(messages)
        rank = np.empty(len(x), np.int64)
        rank[np.argsort(x, kind="stable")] = self.starts[bucket] + np.arange(len(x))
        for other, parts in split(y, self.cuts, y, rank):
            yield Message(other, 2, parts)


@dataclass(frozen=True)
class SumGaps:
    starts: np.ndarray

    def __call__(self, bucket, messages):
        assert all(message.kind == 2 for message in messages)
        y, rank = joined(messages)
        order = np.lexsort((rank, y))
        return int(np.abs(rank[order] - (self.starts[bucket] + np.arange(len(y)))).sum())
