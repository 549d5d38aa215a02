"""An engine for tests: blocks of arrays in memory, messages in lists."""

import pickle
from collections import Counter, defaultdict

import numpy as np

from sdckit.engines.transport import Block


class BlockTransport:
    """Runs scans and exchanges on blocks of given sizes; tasks pass through pickle, as on a cluster.

    `largest` is the largest number of values that a bucket got in one array of each of its messages.
    """

    def __init__(self, original, masked, *, sizes, bucket_rows, weights=None, strata=None, together=False):
        self.columns = original, masked
        self.weights, self.strata = weights, strata
        self.rows = sum(sizes)
        self.borders = np.concatenate(([0], np.cumsum(sizes))).tolist()
        self.bucket_rows, self.together = bucket_rows, together
        self.largest = 0

    def _blocks(self, reads):
        for begin, end in zip(self.borders[:-1], self.borders[1:], strict=True):
            part = slice(begin, end)
            wanted = (reads.original, reads.masked)
            columns = (
                {name: file[name][part] for name in names}
                for file, names in zip(self.columns, wanted, strict=True)
            )
            more = (None if column is None else column[part] for column in (self.weights, self.strata))
            yield Block(begin, end - begin, *columns, *more)

    def scan(self, task, reads, *, step):
        del step
        task = copy(task)
        return [copy(task(block)) for block in self._blocks(reads)]

    def exchange(self, first, reads, stages, last, *, step):
        del step
        first, stages, last = copy((first, stages, last))
        found = self._delivered([list(first(block)) for block in self._blocks(reads)])
        for stage in stages:
            found = self._delivered(
                [list(stage(bucket, messages)) for bucket, messages in sorted(found.items())]
            )
        return {bucket: last(bucket, messages) for bucket, messages in found.items()}

    def _delivered(self, sent):
        boxes, values = defaultdict(list), Counter()
        for message in (message for messages in sent for message in messages):
            boxes[message.bucket].append(message)
            values[message.bucket, message.kind] += max(array.size for array in message.arrays)
        self.largest = max([self.largest, *values.values()])
        return boxes


def copy(task):
    """Return a copy made by pickle: what cannot be pickled could not reach a worker."""
    return pickle.loads(pickle.dumps(task))  # noqa: S301 - our own
