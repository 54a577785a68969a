/*
 * vocabulary-t.c - errors, sizes, dtypes, half floats, layouts, arrays that grow.
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
           "ft_fail returns its code");
    is_str(err.text, "x??[1m: expected 3", "control characters never reach a terminal");
    is_int(ft_fail(NULL, FT_EIO, "nobody listens"), FT_EIO, "err may be NULL");
    errno = ENOENT;
    ft_fail_errno(&err, "model.ft");
    is_str(err.text, "model.ft: No such file or directory", "ft_fail_errno says why");
    is_str(ft_status_name(FT_ELIMIT), "FT_ELIMIT", "statuses have names");
    is_str(ft_status_name((ft_status) 99), "unknown", "an unknown status has one too");
}

static void test_tensors(void)
{
    ft_tensor t = { .dtype = FT_F16, .ndim = 2, .dim = { 3, 5 } };
    is_int((long long) ft_tensor_bytes(&t), 30, "3 x 5 F16 are 30 bytes");
    t.dim[0] = INT64_MAX;
    is_int((long long) ft_tensor_bytes(&t), 0, "an overflowing size is 0");
    t.dim[0] = -1;
    is_int((long long) ft_tensor_numel(&t), 0, "a negative dimension counts 0");
    char text[FT_SHAPE_TEXT];
    is_str(ft_shape_text(text, 2, (int64_t[]){ 768, 3072 }), "[768, 3072]", "shapes print");
    t = (ft_tensor){ .ndim = 1000, .dim = { 1, 2, 3, 4, 5, 6, 7, 8 }, .data = text };
    is_str(ft_shape_text(text, t.ndim, t.dim), "[1, 2, 3, 4, 5, 6, 7, 8, ...]",
           "of too many dimensions those that can be there");
    ft_dtype dtype;
    ok(ft_dtype_parse("BF16", &dtype) && dtype == FT_BF16, "BF16 is a dtype");
    ok(!ft_dtype_parse("F8_E4M3", &dtype), "F8_E4M3 is not");
}

static void test_halves(void)
{
    int wrong = 0;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = ft_float_from_f16((uint16_t) bits);
        wrong += value == value && ft_f16_from_float(value) != bits;
        value = ft_float_from_bf16((uint16_t) bits);
        wrong += value == value && ft_bf16_from_float(value) != bits;
    }
    is_int(wrong, 0, "every f16 and bf16 value survives the way to float and back");
    is_int(ft_f16_from_float(65520.0f), 0x7c00, "65520 rounds to infinity");
    is_int(ft_f16_from_float(65519.0f), 0x7bff, "65519 rounds to 65504");
    is_int(ft_f16_from_float(0x1.002p-1f), 0x3800, "a tie rounds to even, down");
    is_int(ft_f16_from_float(0x1.006p-1f), 0x3802, "a tie rounds to even, up");
    is_int(ft_f16_from_float(0x1p-25f), 0, "half the smallest subnormal rounds to even 0");
    is_int(ft_f16_from_float(0x1.8p-24f), 2, "one and a half of it to 2");
    ok(ft_float_from_f16(ft_f16_from_float(NAN)) != ft_float_from_f16(0x7e00), "NaN stays NaN");
}

/* Every element of a padded matrix must get its own byte. */
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
    is_int(clashes, 0, "%s is a bijection of %zu x %zu", ft_layout_name(layout), rows, cols);
    free(seen);
}

static void test_quantization(void)
{
    is_int(ft_quantize(0.5f, 1.0f), 0, "0.5 rounds to even 0");
    is_int(ft_quantize(1.5f, 1.0f), 2, "1.5 rounds to even 2");
    is_int(ft_quantize(-1e30f, 1.0f), -127, "codes stop at -127");
    is_int(ft_quantize(INFINITY, 1.0f), 127, "and at 127");
    near((double) ft_inverse_scale(0.0f), 0.0, 0.0, "a zero scale quantizes all to 0");
}

static void test_growth(void)
{
    size_t room = 0;
    uint16_t *array = ft_array_grow(NULL, &room, 3, sizeof *array);
    ok(array != NULL && room == 3, "an array begins with the room that is asked for");
    if (array == NULL)
        bail_out("no memory");
    memcpy(array, (uint16_t[]){ 7, 8, 9 }, 3 * sizeof *array);
    array = ft_array_grow(array, &room, 3, sizeof *array);
    ok(array != NULL && room == 6 && array[0] == 7 && array[1] == 8 && array[2] == 9,
       "then it has twice as much, and keeps its elements");
    free(array);
    room = SIZE_MAX / 2 + 1;
    ok(ft_array_grow(NULL, &room, 3, 1) == NULL && room == SIZE_MAX / 2 + 1,
       "more elements than can be counted are refused");
    room = SIZE_MAX / 4;
    ok(ft_array_grow(NULL, &room, 3, 4) == NULL && room == SIZE_MAX / 4, "so are more bytes");
}

int main(void)
{
    test_errors();
    test_tensors();
    test_halves();
    for (ft_layout layout = FT_ROW; layout <= FT_COL32_2R_4R4; layout++) {
        test_layout(layout, 1, 1);
        test_layout(layout, 37, 70);
    }
    test_quantization();
    test_growth();
    return done_testing();
}
