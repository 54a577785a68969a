#!/usr/bin/env python3
"""Make the bad-* files and folders beside this script: each has one defect, and is named by it.

They are kept in the repository; run this after changing the lists.  tests/safetensors-t.c and
tests/checkpoint-t.c say what each must be refused with.

SPDX-License-Identifier: Apache-2.0
"""

import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent


def raw(header, data=b"", length=None):
    """A file with this header text, and the length that it claims to have."""
    header = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def entry(dtype='"F32"', shape="[2]", offsets="[0,8]"):
    return '{"dtype":%s,"shape":%s,"data_offsets":%s}' % (dtype, shape, offsets)


def one(data=bytes(8), **fields):
    """A file with the tensor "w"; without arguments it is a good one."""
    return raw('{"w":%s}' % entry(**fields), data)


def two(first, second, size, names=("a", "b")):
    """Two tensors of bytes at these offsets, in data of this size."""
    def at(begin, end):
        return entry('"U8"', "[%d]" % (end - begin), "[%d,%d]" % (begin, end))
    return raw('{"%s":%s,"%s":%s}' % (names[0], at(*first), names[1], at(*second)), bytes(size))


def named(name):
    """A file whose only tensor has this name, given as the bytes between the quotes."""
    return raw(b'{"' + name + b'":' + entry().encode() + b"}", bytes(8))


FILES = {
    # The length and what it is the length of.
    "file-empty": b"",
    "file-too-short": b"\x02\0\0\0\0",
    "header-too-long": raw("{}", length=100_000_001),
    "header-length-huge": raw("{}", length=2**64 - 1),
    "header-beyond-file": raw("{}", length=3),
    "header-empty": raw(""),
    "header-array": raw("[]"),
    "header-number": raw("8"),
    "header-leading-space": raw(" {}"),
    "header-cut": raw('{"w":{"dtype":"F32","sha'),
    "header-trailing-garbage": raw("{} {}"),
    "header-trailing-nul": raw("{}\0\0"),
    "header-trailing-comma": raw('{"w":%s,}' % entry(), bytes(8)),
    "header-missing-comma": raw('{"a":%s "b":%s}' % (entry(), entry(offsets="[8,16]")), bytes(16)),
    "header-missing-colon": raw('{"w" %s}' % entry(), bytes(8)),
    "header-single-quotes": raw("{'w':%s}" % entry(), bytes(8)),
    "header-comment": raw("{/* none */}"),
    "header-nesting": raw('{"w":' + "[" * 2000 + "]" * 2000 + "}"),
    "header-byte-order-mark": raw(b"\xef\xbb\xbf{}"),
    "header-utf16": raw("{}".encode("utf-16-le")),
    # Keys.
    "duplicate-tensor": two((0, 4), (4, 8), 8, names=("w", "w")),
    "duplicate-tensor-escaped": two((0, 4), (4, 8), 8, names=("w", "\\u0077")),
    "duplicate-field": raw('{"w":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
                           bytes(8)),
    "duplicate-metadata": raw('{"__metadata__":{},"__metadata__":{}}'),
    "duplicate-metadata-key": raw('{"__metadata__":{"format":"pt","x":"","format":"np"}}'),
    "field-unknown": raw('{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"strides":[1]}}',
                         bytes(8)),
    "field-dtype-missing": raw('{"w":{"shape":[2],"data_offsets":[0,8]}}', bytes(8)),
    "field-shape-missing": raw('{"w":{"dtype":"F32","data_offsets":[0,8]}}', bytes(8)),
    "field-offsets-missing": raw('{"w":{"dtype":"F32","shape":[2]}}', bytes(8)),
    "tensor-empty-object": raw('{"w":{}}'),
    "tensor-not-object": raw('{"w":[0,8]}', bytes(8)),
    "tensor-null": raw('{"w":null}'),
    "metadata-not-object": raw('{"__metadata__":"pt"}'),
    "metadata-not-text": raw('{"__metadata__":{"layers":4}}'),
    # Names and strings.
    "name-empty": named(b""),
    "name-with-nul": named(b"w\\u0000x"),
    "utf8-lone-continuation": named(b"w\x80"),
    "utf8-cut": named(b"w\xe2\x82"),
    "utf8-overlong": named(b"w\xc0\xaf"),
    "utf8-overlong-three": named(b"w\xe0\x80\xaf"),
    "utf8-surrogate": named(b"w\xed\xa0\x80"),
    "utf8-beyond-unicode": named(b"w\xf4\x90\x80\x80"),
    "utf8-in-metadata": raw(b'{"__metadata__":{"author":"\xff"}}'),
    "string-control-character": named(b"w\nx"),
    "string-escape-unknown": named(b"w\\x41"),
    "string-escape-not-hex": named(b"w\\u00g0"),
    "string-escape-cut": raw(b'{"w\\u00'),
    "string-surrogate-high-alone": named(b"w\\ud83d"),
    "string-surrogate-low-alone": named(b"w\\ude00"),
    "string-surrogates-swapped": named(b"w\\ude00\\ud83d"),
    "string-without-end": raw('{"w'),
    # Types.
    "dtype-unknown": one(dtype='"F33"'),
    "dtype-lower-case": one(dtype='"f32"'),
    "dtype-not-text": one(dtype="32"),
    "dtype-f8-e4m3": one(dtype='"F8_E4M3"', shape="[8]"),
    "dtype-f8-e5m2": one(dtype='"F8_E5M2"', shape="[8]"),
    "dtype-f8-e8m0": one(dtype='"F8_E8M0"', shape="[8]"),
    "dtype-f4": one(dtype='"F4"', shape="[16]"),
    "dtype-u16": one(dtype='"U16"', shape="[4]"),
    "dtype-u32": one(dtype='"U32"'),
    "dtype-u64": one(dtype='"U64"', shape="[1]"),
    "dtype-c64": one(dtype='"C64"', shape="[1]"),
    # Shapes.
    "shape-negative": one(shape="[-2]"),
    "shape-minus-zero": one(shape="[-0]", offsets="[0,0]", data=b""),
    "shape-fractional": one(shape="[2.0]"),
    "shape-exponent": one(shape="[2e0]"),
    "shape-leading-zero": one(shape="[02]"),
    "shape-text": one(shape='["2"]'),
    "shape-scalar": one(shape="2"),
    "shape-nested": one(shape="[[2]]"),
    "shape-trailing-comma": one(shape="[2,]"),
    "shape-beyond-int64": one(shape="[9223372036854775808]"),
    "shape-wraps-to-2": one(shape="[18446744073709551618]"),
    "shape-overflow": one(shape="[4294967296,4294967296]", offsets="[0,0]", data=b""),
    "shape-overflow-in-bytes": one(shape="[4611686018427387906]"),
    "shape-overflow-before-zero": one(shape="[4294967296,4294967296,0]", offsets="[0,0]", data=b""),
    "shape-nine-dimensions": one(shape="[1,1,1,1,1,1,1,1,2]"),
    # Places.
    "offsets-reversed": one(offsets="[8,0]"),
    "offsets-outside": one(offsets="[0,8]", data=bytes(7)),
    "offsets-far-outside": one(offsets="[9223372036854775799,9223372036854775807]"),
    "offsets-negative": one(offsets="[-8,0]"),
    "offsets-wrap": one(offsets="[18446744073709551608,8]"),
    "offsets-one": one(offsets="[8]"),
    "offsets-three": one(offsets="[0,4,8]"),
    "offsets-none": one(offsets="[]"),
    "offsets-shorter-than-shape": one(offsets="[0,4]", data=bytes(4)),
    "offsets-longer-than-shape": one(offsets="[0,12]", data=bytes(12)),
    "overlap": two((0, 6), (4, 8), 8),
    "overlap-entirely": two((0, 8), (0, 8), 8),
    "overlap-empty-inside": two((0, 8), (4, 4), 8),
    "hole-at-start": two((2, 4), (4, 8), 8),
    "hole-in-middle": two((0, 3), (4, 8), 8),
    "trailing-bytes": two((0, 4), (4, 8), 9),
    "trailing-bytes-no-tensors": raw("{}", b"\0"),
}

W = one()
V = raw('{"v":%s}' % entry(), bytes(8))
A, B = "model-1.safetensors", "model-2.safetensors"


def index(mapping):
    return json.dumps({"metadata": {"total_size": 16}, "weight_map": mapping}, indent=1).encode()


def folder(weight_map, **shards):
    """A folder whose index is this map, or these bytes, with the two usual shards or others."""
    text = weight_map if isinstance(weight_map, bytes) else index(weight_map)
    return {"model.safetensors.index.json": text, **(shards or {A: W, B: V})}


def leads_to(path):
    return {"model.safetensors.index.json": index({"w": path, "v": path}), A: W}


FOLDERS = {
    "index-shard-missing": folder({"w": A, "v": B}, **{A: W}),
    "index-shard-broken": folder({"w": A, "v": B}, **{A: W, B: V[:-1]}),
    "index-other-shard": folder({"w": B, "v": A}),
    "index-tensor-nowhere": folder({"w": A, "v": B, "u": B}),
    "index-tensor-unlisted": folder({"w": A}, **{A: two((0, 4), (4, 8), 8, names=("w", "v"))}),
    "index-tensor-in-two-shards": folder({"w": A, "v": B},
                                         **{A: W, B: two((0, 4), (4, 8), 8, names=("w", "v"))}),
    "index-path-absolute": leads_to("/etc/model-1.safetensors"),
    "index-path-parent": leads_to("../index-other-shard/model-1.safetensors"),
    "index-path-subfolder": leads_to("shards/model-1.safetensors"),
    "index-path-backslash": leads_to("..\\model-1.safetensors"),
    "index-path-dots": leads_to(".."),
    "index-path-empty": leads_to(""),
    "index-path-nul": leads_to("model-1.safetensors\0"),
    "index-path-not-text": folder({"w": 1, "v": B}),
    "index-duplicate-key": folder(b'{"weight_map": {"w": "%s", "w": "%s"}}'
                                  % (A.encode(), B.encode())),
    "index-not-json": folder(b"weight_map:\n  w: model-1.safetensors\n"),
    "index-not-object": folder(b'["model-1.safetensors"]'),
    "index-cut": folder(index({"w": A, "v": B})[:-4]),
    "index-without-map": folder(b'{"metadata": {"total_size": 16}}'),
    "index-map-not-object": folder(b'{"weight_map": ["model-1.safetensors"]}'),
    "index-map-empty": folder({}),
    "folder-pickle-only": {"config.json": b"{}", "pytorch_model.bin": b"PK\3\4",
                           "training_args.bin": b"PK\3\4"},
    "folder-without-weights": {"config.json": b"{}"},
    "folder-other-name": {"config.json": b"{}", "adapter_model.safetensors": W},
    "folder-broken-model": {"model.safetensors": W[:-1], **folder({"w": A, "v": B})},
}


def main():
    for name, content in FILES.items():
        (HERE / f"bad-{name}.safetensors").write_bytes(content)
    for name, content in FOLDERS.items():
        for file, text in content.items():
            (HERE / f"bad-{name}").mkdir(exist_ok=True)
            (HERE / f"bad-{name}" / file).write_bytes(text)


main()
