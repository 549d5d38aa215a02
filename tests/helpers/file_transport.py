"""A small engine in memory for tests: blocks in any order, tasks pickled, run twice if asked for."""

import pickle
import random
from collections import Counter
from dataclasses import dataclass

import numpy as np

from sdckit.engines.transport import Block, BlockRef


@dataclass
class Columns:
    """Columns in memory in place of files."""

    original: dict
    masked: dict
    weights: object = None
    strata: object = None

    @property
    def rows(self):
        return len(next(iter(self.original.values())))

    def read(self, ref, reads):
        part = slice(ref.first, ref.first + ref.rows)
        x = {name: self.original[name][part] for name in reads.original}
        y = {name: self.masked[name][part] for name in reads.masked}
        more = (None if column is None else column[part] for column in (self.weights, self.strata))
        return Block(*ref, x, y, *more)


class FileTransport:
    """Run tasks on the blocks of a source, of given sizes; messages reach a stage in order of their origin.

    `largest` is the largest number of values that a bucket got in one array of each of its messages.
    """

    def __init__(self, source, *, blocks=1, bucket_rows=1000, seed=0, retry=0.0, sizes=None, together=True):
        self.source, self.rows, self.bucket_rows, self.together = source, source.rows, bucket_rows, together
        if sizes is None:
            self.refs = source.blocks_of(-(-source.rows // blocks))
        else:
            self.refs = list(map(BlockRef, (np.cumsum(sizes) - sizes).tolist(), sizes))
        self.order, self.retry, self.blocks, self.largest = random.Random(seed), retry, {}, 0

    def _read(self, ref, reads):
        if (ref, reads) not in self.blocks:
            self.blocks[ref, reads] = self.source.read(ref, reads)
        return self.blocks[ref, reads]

    def _shuffled(self, items):
        items = list(items)
        self.order.shuffle(items)
        return items

    def _run(self, task, *arguments):
        """Result of a task as a worker that got it by wire would give it; some tasks are run twice."""
        for _ in range(1 + (self.order.random() < self.retry)):
            found = pickle.loads(pickle.dumps(task))(*arguments)  # noqa: S301 - our own
            found = list(found) if hasattr(found, "__next__") else found
        return found

    def scan(self, task, reads, *, step):
        del step
        refs = list(enumerate(self.refs))
        done = {number: self._run(task, self._read(ref, reads)) for number, ref in self._shuffled(refs)}
        return [done[number] for number, _ in refs]

    def exchange(self, first, reads, stages, last, *, step):
        del step
        made = {}
        for number, ref in self._shuffled(enumerate(self.refs)):
            made[number] = self._run(first, self._read(ref, reads))
        for stage in stages:
            buckets = self._delivered(made)
            made = {bucket: self._run(stage, bucket, buckets[bucket]) for bucket in self._shuffled(buckets)}
        buckets = self._delivered(made)
        found = {bucket: self._run(last, bucket, buckets[bucket]) for bucket in self._shuffled(buckets)}
        return dict(sorted(found.items()))

    def _delivered(self, made):
        buckets, values = {}, Counter()
        for origin in sorted(made):
            for message in made[origin]:
                assert all(array.ndim == 1 for array in message.arrays)
                buckets.setdefault(message.bucket, []).append(message)
                values[message.bucket, message.kind] += max(array.size for array in message.arrays)
        self.largest = max([self.largest, *values.values()])
        return buckets


def engine(**options):
    """What `mask_files` takes as transport."""
    return lambda source: FileTransport(source, **options)
