"""Messages survive packing: any types and shapes, any size, in the order of their origin."""

import numpy as np

from sdckit.engines import spark_worker as packing
from sdckit.engines.transport import Message

ARRAYS = [
    np.array([1.5, -0.0, np.nan]),
    np.array([True, False, True]),
    np.arange(7, dtype=np.int32),
    np.arange(12.0).reshape(3, 4)[:, ::2],
    np.array([], np.uint8),
    np.array(4.0),
]


def sent(messages, origin=3):
    """Messages as a receiver sees them."""
    batches = list(packing.batches_of(packing.packed_rows(origin, messages)))
    return {bucket: list(some) for bucket, some in packing.messages_by_bucket(batches)}


def test_arrays_come_as_they_went():
    (found,) = sent([Message(5, 2, (array, np.arange(3))) for array in ARRAYS]).values()
    for array, message in zip(ARRAYS, found, strict=True):
        got, other = message.arrays
        assert (message.bucket, message.kind) == (5, 2)
        assert (got.dtype, got.shape) == (array.dtype, array.shape)
        assert got.tobytes() == array.tobytes()
        assert other.tolist() == [0, 1, 2]
    assert sent([Message(0, 1, ())]) == {0: [Message(0, 1, ())]}


def test_large_messages_are_cut_and_joined(monkeypatch):
    monkeypatch.setattr(packing, "PART", 64)
    monkeypatch.setattr(packing, "BATCH", 100)
    arrays = [np.arange(n, dtype=float) for n in (1, 100, 0, 33)]
    messages = [Message(0, 9, (one,)) for one in arrays]
    batches = list(packing.batches_of(packing.packed_rows(0, messages)))
    assert max(batch.nbytes for batch in batches) < 100 + 64 + 5 * 40
    (found,) = sent(messages).values()
    assert [one.arrays[0].tolist() for one in found] == [one.tolist() for one in arrays]
