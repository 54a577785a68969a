/*
 * amax_in.h - reads the ranges of all calibration points from a file.
 *
 * The content of the file tells its format:
 *
 *   amax.tsv, as ft-calibrate writes it;
 *   an artifact, whose amax.tsv is read;
 *   a safetensors file with the _amax tensors of ModelOpt or pytorch-quantization;
 *   FasterTransformer v3.0's amaxList of all layers, one after the other, as raw float32.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_AMAX_IN_AMAX_IN_H
#define FT_CALIBRATE_AMAX_IN_AMAX_IN_H

#include "calibrate/weights/quantized.h"
#include "runtime/base/messages.h"

/* The largest amax.tsv or amaxList that is read. */
enum { FT_AMAX_FILE_MAX_BYTES = 64 << 20 };

typedef struct ft_amax_input {
    const ft_model *model;          /* float, with the calibration points of its graph */
    ft_quantized_weight *quantized; /* [count], the matrices and their schemes */
    size_t count;

    /* Whether the int8 model quantizes a point ; ft_point_use_of(). */
    bool (*is_quantized)(const void *user, const char *point);
    const void *user;

    ft_messages *notes; /* receives warnings, which have a code, and notes, which have FT_OK */
} ft_amax_input;

/*
 * Reads the ranges at `path`. *out has one entry for each calibration point, in the order of the
 * graph; the caller frees it. If the file has one range per row of an int8 matrix, its `scale` is
 * set.
 *
 * Points that the int8 model does not quantize may be missing if a bound of their values is known.
 * Errors, which name the file: FT_EFORMAT for missing points (with their names), an invalid range,
 * or content of no known format; FT_EUNSUPPORTED for an amaxList of a model that has none; FT_EIO;
 * FT_ELIMIT; FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_amax_input_read(ft_amax_table **out, const char *path,
                                         const ft_amax_input *input, ft_error *err);

/* The same for the bytes of a file that is neither an artifact nor safetensors. */
FT_MUST_USE ft_status ft_amax_input_parse(ft_amax_table **out, const char *path, const void *bytes,
                                          size_t size, const ft_amax_input *input, ft_error *err);

#endif
