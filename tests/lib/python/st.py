"""st.py - safetensors files as numpy arrays, for the scripts that compare FT with other software.

The format is 8 bytes of header length (little-endian), a JSON object
{ name: { dtype, shape, data_offsets } }, then the data, offsets counted from its start.
Reading maps the file, so a large checkpoint uses no memory until it is read.  Writing accepts
complete arrays, or for files larger than memory a stream of byte chunks per tensor.

SPDX-License-Identifier: Apache-2.0
"""
import json
import math
import struct

import numpy as np

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
    "I8": "|i1", "U8": "|u1", "BOOL": "|b1",
}
SIZES = {**{name: np.dtype(code).itemsize for name, code in DTYPES.items()}, "BF16": 2}
NAMES = {np.dtype(code): name for name, code in DTYPES.items()}


def widen_bf16(bits):
    """float32 array of the values whose upper 16 bits are in `bits`."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def read(path):
    """{ name: array } of one file; BF16 comes back as float32."""
    raw = np.memmap(path, dtype=np.uint8, mode="r")
    (length,) = struct.unpack("<Q", raw[:8].tobytes())
    header = json.loads(raw[8:8 + length].tobytes())
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        data, dtype = raw[begin:end], entry["dtype"]
        data = widen_bf16(data.view("<u2")) if dtype == "BF16" else data.view(DTYPES[dtype])
        tensors[name] = np.asarray(data).reshape(entry["shape"])
    return tensors


def write(path, tensors):
    """Write { name: array }."""
    write_stream(path, [(name, NAMES[array.dtype.newbyteorder("<")], array.shape,
                         [np.ascontiguousarray(array).data]) for name, array in tensors.items()])


def header_of(tensors):
    """Entries of [(name, dtype, shape)], and the bytes before the data."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, shape in tensors:
        end = offset + math.prod(shape) * SIZES[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return header, struct.pack("<Q", len(text)) + text, offset


def write_zeros(path, tensors):
    """Write [(name, dtype, shape)], all zeros, as a sparse file."""
    _, front, size = header_of(tensors)
    with open(path, "wb") as file:
        file.write(front)
        file.truncate(len(front) + size)


def write_stream(path, tensors):
    """Write [(name, dtype, shape, chunks)]; the chunks of a tensor are bytes-like, in order."""
    header, front, _ = header_of([tensor[:3] for tensor in tensors])
    with open(path, "wb") as file:
        file.write(front)
        for name, _, _, chunks in tensors:
            begin, end = header[name]["data_offsets"]
            written = sum(file.write(chunk) for chunk in chunks)
            if written != end - begin:
                raise ValueError(f"{path}: {name}: {written} bytes, expected {end - begin}")
