/*
 * vocabulary-t.c - errors, sizes, dtypes, f16 and bf16, layouts, growing arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/half.h"
#include "kernels/layout.h"
#include "kernels/quant.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/tap/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void test_errors(void)
{
    ft_error err;
    is_int(ft_fail(&err, FT_ESHAPE, "%s: expected %d", "x\n\033[1m", 3), FT_ESHAPE,
           "ft_fail returns its status");
    is_str(err.text, "x??[1m: expected 3", "ft_fail replaces control characters");
    is_int(ft_fail(NULL, FT_EIO, "no error structure"), FT_EIO,
           "ft_fail accepts NULL instead of an error");
    errno = ENOENT;
    ft_fail_errno(&err, "model.ft");
    is_str(err.text, "model.ft: No such file or directory",
           "ft_fail_errno appends the message of errno");
    is_str(ft_status_name(FT_ELIMIT), "FT_ELIMIT", "a status has a name");
    is_str(ft_status_name((ft_status) 99), "unknown", "an unknown status has the name unknown");
}

static void test_tensors(void)
{
    ft_tensor t = { .dtype = FT_F16, .ndim = 2, .dim = { 3, 5 } };
    is_int((long long) ft_tensor_bytes(&t), 30, "a 3 x 5 tensor of F16 has 30 bytes");
    t.dim[0] = INT64_MAX;
    is_int((long long) ft_tensor_bytes(&t), 0,
           "the byte size of a tensor is 0 where it would overflow");
    t.dim[0] = -1;
    is_int((long long) ft_tensor_numel(&t), 0, "a tensor with a negative dimension has 0 elements");
    char text[FT_SHAPE_TEXT];
    is_str(ft_shape_text(text, 2, (int64_t[]){ 768, 3072 }), "[768, 3072]",
           "ft_shape_text prints the dimensions in brackets");
    t = (ft_tensor){ .ndim = 1000, .dim = { 1, 2, 3, 4, 5, 6, 7, 8 }, .data = text };
    is_str(ft_shape_text(text, t.ndim, t.dim), "[1, 2, 3, 4, 5, 6, 7, 8, ...]",
           "ft_shape_text truncates a shape of too many dimensions");
    ft_dtype dtype;
    ok(ft_dtype_parse("BF16", &dtype) && dtype == FT_BF16, "ft_dtype_parse knows BF16");
    ok(!ft_dtype_parse("F8_E4M3", &dtype), "ft_dtype_parse does not know F8_E4M3");
}

static void test_f16(void)
{
    int wrong = 0;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = ft_float_from_f16((uint16_t) bits);
        wrong += value == value && ft_f16_from_float(value) != bits;
        value = ft_float_from_bf16((uint16_t) bits);
        wrong += value == value && ft_bf16_from_float(value) != bits;
    }
    is_int(wrong, 0, "every f16 and bf16 value is unchanged by conversion to float and back");
    is_int(ft_f16_from_float(65520.0f), 0x7c00, "65520 rounds to infinity in f16");
    is_int(ft_f16_from_float(65519.0f), 0x7bff, "65519 rounds to 65504 in f16");
    is_int(ft_f16_from_float(0x1.002p-1f), 0x3800, "an f16 tie above an even value rounds down");
    is_int(ft_f16_from_float(0x1.006p-1f), 0x3802, "an f16 tie below an even value rounds up");
    is_int(ft_f16_from_float(0x1p-25f), 0, "half of the smallest f16 subnormal rounds to 0");
    is_int(ft_f16_from_float(0x1.8p-24f), 2,
           "one and a half of the smallest f16 subnormal rounds to 2 of it");
    ok(ft_float_from_f16(ft_f16_from_float(NAN)) != ft_float_from_f16(0x7e00),
       "NaN stays NaN in f16");
}

/* Every element of a padded matrix must have its own byte. */
static void test_layout(ft_layout layout, size_t rows, size_t cols)
{
    size_t bytes = ft_layout_bytes(layout, rows, cols);
    char *seen = calloc(1, bytes);
    size_t padded_rows = ft_layout_rows(layout, rows), padded_cols = ft_layout_cols(layout, cols);
    int clashes = 0;
    for (size_t r = 0; r < padded_rows; r++)
        for (size_t c = 0; c < padded_cols; c++) {
            size_t offset = ft_offset(layout, r, c, rows, cols);
            clashes += offset >= bytes || seen[offset]++;
        }
    is_int(clashes, 0, "%s maps the elements of a %zu x %zu matrix to distinct bytes",
           ft_layout_name(layout), rows, cols);
    free(seen);
}

static void test_quantization(void)
{
    is_int(ft_quantize(0.5f, 1.0f), 0, "0.5 quantizes to the even 0");
    is_int(ft_quantize(1.5f, 1.0f), 2, "1.5 quantizes to the even 2");
    is_int(ft_quantize(-1e30f, 1.0f), -127, "quantized values saturate at -127");
    is_int(ft_quantize(INFINITY, 1.0f), 127, "quantized values saturate at 127");
    near((double) ft_inverse_scale(0.0f), 0.0, 0.0, "a scale of 0 has the inverse scale 0");
}

static void test_growth(void)
{
    size_t room = 0;
    uint16_t *array = ft_array_grow(NULL, &room, 3, sizeof *array);
    ok(array != NULL && room == 3, "a new array has the requested capacity");
    if (array == NULL)
        bail_out("no memory");
    memcpy(array, (uint16_t[]){ 7, 8, 9 }, 3 * sizeof *array);
    array = ft_array_grow(array, &room, 3, sizeof *array);
    ok(array != NULL && room == 6 && array[0] == 7 && array[1] == 8 && array[2] == 9,
       "growing an array doubles its capacity and keeps its elements");
    free(array);
    room = SIZE_MAX / 2 + 1;
    ok(ft_array_grow(NULL, &room, 3, 1) == NULL && room == SIZE_MAX / 2 + 1,
       "ft_array_grow refuses a capacity that overflows the element count");
    room = SIZE_MAX / 4;
    ok(ft_array_grow(NULL, &room, 3, 4) == NULL && room == SIZE_MAX / 4,
       "ft_array_grow refuses a capacity that overflows the byte count");
}

int main(void)
{
    test_errors();
    test_tensors();
    test_f16();
    for (ft_layout layout = FT_ROW; layout <= FT_COL32_2R_4R4; layout++) {
        test_layout(layout, 1, 1);
        test_layout(layout, 37, 70);
    }
    test_quantization();
    test_growth();
    return done_testing();
}
