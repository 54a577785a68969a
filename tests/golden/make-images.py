#!/usr/bin/env python3
"""make-images.py FOLDER - small images of many kinds, and what Pillow makes of them.

Writes images that image.t decodes and resizes, and FOLDER/expected.txt, one line each: the file,
the size that it is resized to, the filter's number, how far a sample may be off, and the samples in
hexadecimal digits.  PNG must be equal; JPEG may differ by one where decoders differ.  Columns are
resized first, then rows: so do all versions of Pillow up to 12 and torchvision; Pillow 13 chooses
the order by the sizes, which changes single samples by one.

The pictures are computed: waves of three colours, edges and noise, at odd sizes.  Run where Pillow
and numpy are; the files that the tests read were written by Pillow 13.0.0.

SPDX-License-Identifier: Apache-2.0
"""
import os
import sys

import numpy as np
from PIL import Image

FILTERS = {"lanczos": 1, "bilinear": 2, "bicubic": 3}


def picture(width, height, seed):
    """[height, width, 3] samples: waves, a disc with a sharp edge, and noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 90 * np.sin(x * rng.uniform(0.05, 0.6) + c) * np.cos(y * rng.uniform(0.05, 0.6))
              for c in range(3)]
    image = np.stack(planes, -1) + rng.normal(0, 12, (height, width, 3))
    disc = (x - width / 2) ** 2 + (y - height / 3) ** 2 < (min(width, height) / 4) ** 2
    image[disc] = rng.integers(0, 256, 3)
    return np.clip(image, 0, 255).astype(np.uint8)


def images():
    """(name, Pillow image, arguments of save())."""
    rgb = [Image.fromarray(picture(w, h, i)) for i, (w, h) in enumerate(
        [(40, 30), (17, 53), (64, 64), (31, 7), (5, 90), (1, 1), (33, 48), (200, 3)])]
    yield "rgb.png", rgb[0], {}
    yield "tall.png", rgb[1], {}
    yield "square.png", rgb[2], {}
    yield "flat.png", rgb[3], {}
    yield "thin.png", rgb[4], {}
    yield "one.png", rgb[5], {}
    yield "wide.png", rgb[7], {}
    yield "gray.png", rgb[0].convert("L"), {}
    yield "bits.png", rgb[1].convert("1"), {}
    yield "palette.png", rgb[2].quantize(37), {}
    yield "palette4.png", rgb[6].quantize(11), {"bits": 4}
    alpha = rgb[6].copy()
    alpha.putalpha(Image.fromarray(picture(33, 48, 90)[:, :, 0]))
    yield "alpha.png", alpha, {}
    yield "gray-alpha.png", alpha.convert("LA"), {}
    clear = rgb[2].quantize(16)
    yield "clear.png", clear, {"transparency": 3}
    yield "photo.jpg", rgb[0], {"quality": 90}
    yield "photo-420.jpg", rgb[6], {"quality": 75, "subsampling": 2}
    yield "photo-444.jpg", rgb[1], {"quality": 95, "subsampling": 0}
    yield "progressive.jpg", rgb[2], {"quality": 80, "progressive": True}
    yield "gray.jpg", rgb[3].convert("L"), {"quality": 85}


def write_deep(folder):
    """16 bits a sample, which Pillow does not write: by hand.  Returns what it must become."""
    import struct
    import zlib
    deep = np.random.default_rng(7).integers(0, 65536, (9, 14, 3)).astype(">u2")

    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    lines = b"".join(b"\0" + row.tobytes() for row in deep)
    with open(os.path.join(folder, "deep.png"), "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 14, 9, 16, 2, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
    return Image.fromarray((deep >> 8).astype(np.uint8))


def main():
    folder = sys.argv[1]
    lines = []

    def expect(name, image, size, how):
        image, filter_ = image.convert("RGB"), getattr(Image.Resampling, how.upper())
        done = image.resize((size[0], image.height), filter_).resize(size, filter_)
        slack = 1 if name.endswith(".jpg") else 0
        lines.append(f"{name} {size[0]} {size[1]} {FILTERS[how]} {slack} "
                     f"{np.asarray(done).tobytes().hex()}\n")

    for i, (name, image, how) in enumerate(images()):
        path = os.path.join(folder, name)
        image.save(path, **how)
        expect(name, Image.open(path), ((12, 12), (9, 13))[i % 2], "bilinear")
    expect("deep.png", write_deep(folder), (6, 6), "bilinear")
    square = Image.open(os.path.join(folder, "square.png"))
    for how in FILTERS:
        expect("square.png", square, (11, 7), how)      # smaller
        expect("rgb.png", Image.open(os.path.join(folder, "rgb.png")), (47, 35), how)   # larger
    expect("rgb.png", Image.open(os.path.join(folder, "rgb.png")), (40, 30), "bicubic")
    Image.fromarray(picture(8, 8, 3)).convert("CMYK").save(os.path.join(folder, "bad-cmyk.jpg"))
    with open(os.path.join(folder, "expected.txt"), "w", encoding="ascii") as file:
        file.writelines(lines)


if __name__ == "__main__":
    main()
