"""Arrays in and out: NumPy, or any object with __dlpack__ on the CPU.

NumPy is imported by the first array, not by `import ftruntime`.  Outputs are NumPy arrays, whose
__dlpack__ exports their memory with a deleter in C.

SPDX-License-Identifier: Apache-2.0
"""
from ._library import error, ffi, lib

DTYPES = {
    "float32": lib.FT_F32,
    "int32": lib.FT_I32,
    "int64": lib.FT_I64,
}


def numpy():
    import numpy as np

    return np


def as_array(values, name):
    """A C-contiguous array, without a copy where the values are one already."""
    np = numpy()
    if hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray):
        values = np.from_dlpack(values)
    array = np.ascontiguousarray(values)
    if array.dtype.name not in DTYPES:
        raise error(f"{name}: found dtype {array.dtype.name}, expected int32, int64 or float32",
                    lib.FT_EARG)
    if array.ndim > lib.FT_MAX_DIMS:
        raise error(f"{name}: found {array.ndim} dimensions, expected at most {lib.FT_MAX_DIMS}",
                    lib.FT_EARG)
    return array


def tensor_of(array):
    """A view of an array, which must outlive it."""
    tensor = ffi.new("ft_tensor *")
    tensor.dtype = DTYPES[array.dtype.name]
    tensor.ndim = array.ndim
    for i, size in enumerate(array.shape):
        tensor.dim[i] = size
    tensor.data = ffi.cast("void *", array.ctypes.data)
    return tensor


def shape_of(tensor):
    return tuple(tensor.dim[i] for i in range(tensor.ndim))


def floats(array):
    """A float32 array as a pointer."""
    return ffi.cast("const float *", array.ctypes.data)
