"""Messages survive packing: any types and shapes, any size, in the order of their origin."""

import numpy as np
import pytest

from sdckit.engines import spark_worker as packing
from sdckit.engines.transport import Message


def sent(messages, origin=3):
    """Messages as a receiver sees them."""
    batches = list(packing.batches_of(packing.packed_rows(origin, messages)))
    found = {}
    for bucket, some in packing.messages_by_bucket(batches):
        found.setdefault(bucket, []).extend(some)
    return found


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.5, -0.0, np.nan]),
        np.array([True, False, True]),
        np.arange(7, dtype=np.int32),
        np.arange(12.0).reshape(3, 4)[:, ::2],
        np.array([], np.uint8),
        np.array(4.0),
    ],
)
def test_arrays_come_as_they_went(array):
    (message,) = sent([Message(5, 2, (array, np.arange(3)))])[5]
    got, other = message.arrays
    assert (message.bucket, message.kind) == (5, 2)
    assert (got.dtype, got.shape) == (array.dtype, array.shape)
    assert got.tobytes() == array.tobytes()
    assert other.tolist() == [0, 1, 2]


def test_messages_without_arrays_arrive():
    assert sent([Message(0, 1, ())]) == {0: [Message(0, 1, ())]}


def test_large_messages_are_cut_and_joined(monkeypatch):
    monkeypatch.setattr(packing, "PART", 64)
    monkeypatch.setattr(packing, "BATCH", 100)
    arrays = [np.arange(n, dtype=float) for n in (1, 100, 0, 33)]
    batches = list(packing.batches_of(packing.packed_rows(0, [Message(0, 9, (one,)) for one in arrays])))
    assert max(batch.nbytes for batch in batches) < 100 + 64 + 5 * 40
    (found,) = sent([Message(0, 9, (one,)) for one in arrays]).values()
    assert [one.arrays[0].tolist() for one in found] == [one.tolist() for one in arrays]
