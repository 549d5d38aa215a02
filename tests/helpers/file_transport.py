"""A small engine in memory for tests: blocks in any order, tasks pickled, run twice if asked for."""

import pickle
import random


class FileTransport:
    """Run tasks on the blocks of a source; messages reach a stage in the order of their origin."""

    together = True

    def __init__(self, source, *, blocks=1, bucket_rows=1000, seed=0, retry=0.0):
        self.source, self.rows, self.bucket_rows = source, source.rows, bucket_rows
        self.refs = source.blocks_of(-(-source.rows // blocks))
        self.order, self.retry, self.blocks = random.Random(seed), retry, {}

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
        done = {ref: self._run(task, self._read(ref, reads)) for ref in self._shuffled(self.refs)}
        return [done[ref] for ref in self.refs]

    def exchange(self, first, reads, stages, last, *, step):
        del step
        made = {}
        for ref in self._shuffled(self.refs):
            made[ref.first] = self._run(first, self._read(ref, reads))
        for stage in stages:
            buckets = self._delivered(made)
            made = {bucket: self._run(stage, bucket, buckets[bucket]) for bucket in self._shuffled(buckets)}
        buckets = self._delivered(made)
        found = {bucket: self._run(last, bucket, buckets[bucket]) for bucket in self._shuffled(buckets)}
        return dict(sorted(found.items()))

    @staticmethod
    def _delivered(made):
        buckets = {}
        for origin in sorted(made):
            for message in made[origin]:
                assert all(array.ndim == 1 for array in message.arrays)
                buckets.setdefault(message.bucket, []).append(message)
        return buckets


def engine(**options):
    """What `mask_files` takes as transport."""
    return lambda source: FileTransport(source, **options)
