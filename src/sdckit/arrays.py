"""Names of types of arrays and of integers, which kernels and all others use."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Single = np.float32
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
UInt64s = npt.NDArray[np.uint64]
Int = int | np.int64  # an integer in a kernel
