"""Images as the input of vision models, and forward passes over them in batches.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import os
from functools import lru_cache

from ._arrays import as_array, numpy
from ._library import FOLDER, call, error, ffi, lib
from ._rows import MAX_SEQUENCES, MAX_TOKENS

TYPE_CHECKING = False  # as in typing, whose import takes longer than the rest
if TYPE_CHECKING:
    from typing import Union

    import numpy as np

    Image = Union[str, os.PathLike, np.ndarray]


@lru_cache(maxsize=None)
def library():
    """The decoders and the preprocessing, which need libraries that texts do not."""
    return ffi.dlopen(os.path.join(FOLDER, "lib", "libftimages.so"))


def listed(images):
    """A single path counts as a list of one."""
    return [images] if isinstance(images, (str, os.PathLike)) else list(images)


def pixel_values(model, images):
    """float32 [images, 3, height, width] of paths or arrays uint8 [height, width, 3]."""
    reader = ffi.new("ft_image_reader *")
    call(library().ft_image_reader_init, reader, model._model)
    shape = len(images), 3, model.config["image_height"], model.config["image_width"]
    values = numpy().empty(shape, "float32")
    for i, image in enumerate(images):
        out = ffi.cast("float *", values[i].ctypes.data)
        if isinstance(image, (str, os.PathLike)):
            call(library().ft_image_reader_read, reader, os.fsencode(image), out)
        else:
            _convert(reader, numpy().ascontiguousarray(image), f"image {i}", out)
    return values


def _convert(reader, array, label, out):
    if array.dtype.name != "uint8" or array.ndim != 3 or array.shape[2] != 3 or array.size == 0:
        raise error(f"{label}: found {array.dtype.name} {list(array.shape)}, expected uint8 "
                    "[height, width, 3]", lib.FT_ESHAPE)
    image = ffi.new("ft_image *", {"width": array.shape[1], "height": array.shape[0],
                                   "rgb": ffi.cast("uint8_t *", array.ctypes.data)})
    call(library().ft_image_reader_convert, reader, image, label.encode(), out)


def class_logits(model, images):
    """The logits of each image; images may be pixel values already."""
    if model.problem_type is None or "image_height" not in model.config:
        raise error(f"{model.path}: found a model that classifies no images (family "
                    f"{model.family})", lib.FT_EUNSUPPORTED)
    tokens = model.config["positions"]
    most = max(1, min(MAX_SEQUENCES, MAX_TOKENS // tokens))
    is_pixels = getattr(images, "dtype", None) == "float32"
    images = images if is_pixels else listed(images)
    for first in range(0, len(images), most):
        part = images[first:first + most]
        values = as_array(part, "pixel_values") if is_pixels else pixel_values(model, part)
        session = model._sessions.take(model, {"max_tokens": len(part) * tokens,
                                               "max_sequences": len(part)})
        yield from session.run({"pixel_values": values})["logits"]
        model._sessions.put(session)
