/*
 * dtype_convert.c - read, check and convert a block of values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/dtype_convert.h"

#include "kernels/half.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <assert.h>
#include <string.h>

enum { CHUNK = 2048 }; /* values converted at once */

/* ---- Infinity and NaN ----------------------------------------------------------------------- */

/* In every IEEE format, infinity and NaN are the values whose exponent bits are all ones. */
static size_t first_nonfinite16(const unsigned char *in, size_t n, uint16_t exponent)
{
    size_t i = 0;
    while (i < n && (ft_load_le16(in + 2 * i) & exponent) != exponent)
        i++;
    return i;
}

static size_t first_nonfinite32(const unsigned char *in, size_t n, uint32_t exponent)
{
    size_t i = 0;
    while (i < n && (ft_load_le32(in + 4 * i) & exponent) != exponent)
        i++;
    return i;
}

static size_t first_nonfinite64(const unsigned char *in, size_t n, uint64_t exponent)
{
    size_t i = 0;
    while (i < n && (ft_load_le64(in + 8 * i) & exponent) != exponent)
        i++;
    return i;
}

/* Index of the first value that is not finite, or n.  Values may be unaligned. */
static size_t first_nonfinite(ft_dtype dtype, const void *in, size_t n)
{
    switch (dtype) {
    case FT_F16:
        return first_nonfinite16(in, n, 0x7c00);
    case FT_BF16:
        return first_nonfinite16(in, n, 0x7f80);
    case FT_F64:
        return first_nonfinite64(in, n, 0x7ff0000000000000);
    default:
        assert(dtype == FT_F32);
        return first_nonfinite32(in, n, 0x7f800000);
    }
}

/* ---- Conversion between dtypes ------------------------------------------------------------- */

static double double_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void read_values(float *out, ft_dtype dtype, const unsigned char *in, size_t n)
{
    switch (dtype) {
    case FT_F16:
        for (size_t i = 0; i < n; i++)
            out[i] = ft_float_from_f16(ft_load_le16(in + 2 * i));
        break;
    case FT_BF16:
        for (size_t i = 0; i < n; i++)
            out[i] = ft_float_from_bf16(ft_load_le16(in + 2 * i));
        break;
    case FT_F64:
        for (size_t i = 0; i < n; i++)
            out[i] = (float) double_from_bits(ft_load_le64(in + 8 * i)); /* infinity on overflow */
        break;
    default:
        memcpy(out, in, n * sizeof *out);
    }
}

static void write_values(void *out, ft_dtype dtype, const float *in, size_t n)
{
    uint16_t *out16 = out;
    switch (dtype) {
    case FT_F16:
        for (size_t i = 0; i < n; i++)
            out16[i] = ft_f16_from_float(in[i]);
        break;
    case FT_BF16:
        for (size_t i = 0; i < n; i++)
            out16[i] = ft_bf16_from_float(in[i]);
        break;
    default:
        memcpy(out, in, n * sizeof *in);
    }
}

static void cast_values(void *out, ft_dtype to, const unsigned char *in, ft_dtype from, size_t n)
{
    float value[CHUNK];
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t chunk = ft_min_size(n - i, CHUNK);
        read_values(value, from, in + i * ft_dtype_size(from), chunk);
        write_values((unsigned char *) out + i * ft_dtype_size(to), to, value, chunk);
    }
}

size_t ft_dtype_convert_floats(void *out, ft_dtype dtype, const float *in, size_t n)
{
    write_values(out, dtype, in, n);
    return first_nonfinite(dtype, out, n);
}

bool ft_dtype_convert_supports(ft_dtype dtype)
{
    return dtype == FT_F32 || dtype == FT_F16 || dtype == FT_BF16 || dtype == FT_F64;
}

/* ---- The reader ----------------------------------------------------------------------------- */

/* The coordinates of element `index` of a tensor: "[17, 3]". */
static char *format_index(char text[FT_SHAPE_TEXT], const ft_tensor *tensor, size_t index)
{
    int64_t at[FT_MAX_DIMS];
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        size_t size = (size_t) tensor->dim[i];
        at[i] = (int64_t) (index % size);
        index /= size;
    }
    return ft_shape_text(text, tensor->ndim, at);
}

static const char *source_file(const ft_tensor_reader *reader)
{
    return ft_checkpoint_file_of(reader->checkpoint, reader->source);
}

static double value_at(const ft_tensor *tensor, size_t index)
{
    const unsigned char *in = tensor->data;
    in += index * ft_dtype_size(tensor->dtype);
    if (tensor->dtype == FT_F64)
        return double_from_bits(ft_load_le64(in));
    float value;
    read_values(&value, tensor->dtype, in, 1);
    return (double) value;
}

static ft_status fail_nonfinite(const ft_tensor_reader *reader, size_t index, ft_error *err)
{
    char at[FT_SHAPE_TEXT];
    return ft_fail(err, FT_EFORMAT, "%s: %s (%s): %g at %s, expected finite values",
                   source_file(reader), reader->source, reader->name,
                   value_at(reader->tensor, index), format_index(at, reader->tensor, index));
}

ft_status ft_tensor_reader_fail_overflow(const ft_tensor_reader *reader, ft_dtype dtype,
                                         double value, size_t index, ft_error *err)
{
    static const char *const remedy[] = {
        [FT_F32] = "", [FT_F16] = "; try --dtype bf16", [FT_BF16] = "; try --dtype f32"
    };
    char at[FT_SHAPE_TEXT];
    return ft_fail(err, FT_ELIMIT, "%s: %s (%s): %g at %s is too large for %s%s",
                   source_file(reader), reader->source, reader->name, value,
                   format_index(at, reader->tensor, index), ft_dtype_name(dtype), remedy[dtype]);
}

/* Convert values n_read .. n_read + n of the source to `out`. */
static ft_status convert_block(const ft_tensor_reader *reader, const unsigned char *in, void *out,
                               size_t n, ft_error *err)
{
    ft_dtype from = reader->tensor->dtype;
    size_t first_bad = first_nonfinite(from, in, n);
    if (first_bad < n)
        return fail_nonfinite(reader, reader->n_read + first_bad, err);
    if (from == reader->dtype) {
        memcpy(out, in, n * ft_dtype_size(from));
        return FT_OK;
    }
    cast_values(out, reader->dtype, in, from, n);
    first_bad = first_nonfinite(reader->dtype, out, n);
    if (first_bad == n)
        return FT_OK;
    first_bad += reader->n_read;
    return ft_tensor_reader_fail_overflow(reader, reader->dtype,
                                          value_at(reader->tensor, first_bad), first_bad, err);
}

ft_status ft_tensor_reader_read(void *user, void *buffer, size_t bytes, size_t *produced,
                                ft_error *err)
{
    ft_tensor_reader *reader = user;
    size_t from_size = ft_dtype_size(reader->tensor->dtype);
    size_t n = bytes / ft_dtype_size(reader->dtype);
    const unsigned char *in = reader->tensor->data;
    in += reader->n_read * from_size;
    FT_TRY(convert_block(reader, in, buffer, n, err));
    ft_checkpoint_release(reader->checkpoint, in, n * from_size);
    reader->n_read += n;
    *produced = n * ft_dtype_size(reader->dtype);
    return FT_OK;
}
