/*
 * weights-t.c - int8 quantization of weights: scales, layout, streaming, errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/weights.h"
#include "kernels/half.h"
#include "kernels/quant.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A matrix of one dtype at an unaligned address, and its values as floats. */
typedef struct matrix {
    unsigned char *bytes;
    float *value;
    ft_weight_matrix weights;
} matrix;

static matrix random_matrix(ft_dtype dtype, size_t rows, size_t cols)
{
    size_t size = ft_dtype_size(dtype);
    matrix m = { .bytes = malloc(rows * cols * size + 1),
                 .value = malloc(rows * cols * sizeof *m.value) };
    m.weights = (ft_weight_matrix){
        .name = "w", .dtype = dtype, .data = m.bytes + 1, .rows = rows, .cols = cols
    };
    uint32_t state = 99;
    for (size_t i = 0; i < rows * cols; i++) {
        state = 1664525u * state + 1013904223u;
        float x = (float) (int32_t) state * 0x1p-31f * (float) (1 + i / cols % 5);
        uint16_t half = dtype == FT_F16 ? ft_f16_from_float(x) : ft_bf16_from_float(x);
        m.value[i] = dtype == FT_F32   ? x
                     : dtype == FT_F16 ? ft_float_from_f16(half)
                                       : ft_float_from_bf16(half);
        memcpy(m.bytes + 1 + i * size, dtype == FT_F32 ? (void *) &x : (void *) &half, size);
    }
    return m;
}

static void set(matrix *m, size_t row, size_t col, float x)
{
    memcpy(m->bytes + 1 + 4 * (row * m->weights.cols + col), &x, sizeof x);
    m->value[row * m->weights.cols + col] = x;
}

static void free_matrix(matrix *m)
{
    free(m->bytes);
    free(m->value);
}

static float *scales_of(const matrix *m)
{
    ft_error err;
    float *scale = malloc(m->weights.rows * sizeof *scale);
    if (ft_weight_matrix_scales(scale, &m->weights, &err) != FT_OK)
        bail_out("%s", err.text);
    return scale;
}

static int8_t *quantized_of(const matrix *m, const float *scale)
{
    size_t block = ft_weight_matrix_block_bytes(&m->weights);
    int8_t *quantized = malloc(block * ft_weight_matrix_blocks(&m->weights));
    for (size_t i = 0; i < ft_weight_matrix_blocks(&m->weights); i++)
        ft_weight_matrix_quantize_i8(quantized + i * block, &m->weights, scale, i);
    return quantized;
}

static float row_amax(const matrix *m, size_t row)
{
    float amax = 0;
    for (size_t col = 0; col < m->weights.cols; col++)
        amax = fmaxf(amax, fabsf(m->value[row * m->weights.cols + col]));
    return amax;
}

/* The reference rounds in double; it may differ by one when the fraction is nearly a half. */
static bool near_reference(float value, float amax, int code)
{
    double exact = (double) value * 127.0 / (double) amax,
           fraction = fabs(exact) - floor(fabs(exact));
    if (code == (int) rint(exact))
        return true;
    return fabs(fraction - 0.5) < 1e-4 && abs(code - (int) rint(exact)) == 1;
}

static void test_matrix(ft_dtype dtype, size_t rows, size_t cols)
{
    matrix m = random_matrix(dtype, rows, cols);
    float *scale = scales_of(&m);
    int8_t *quantized = quantized_of(&m, scale);
    int wrong_scales = 0, wrong_quantized = 0, far_quantized = 0, wrong_pads = 0;
    size_t padded_rows = ft_layout_rows(FT_COL4_4R2_8C, rows);
    for (size_t row = 0; row < padded_rows; row++) {
        float amax = row < rows ? row_amax(&m, row) : 0;
        wrong_scales += row < rows && scale[row] != amax / 127.0f;
        for (size_t col = 0; col < ft_layout_cols(FT_COL4_4R2_8C, cols); col++) {
            int code = quantized[ft_offset(FT_COL4_4R2_8C, row, col, rows, cols)];
            if (row >= rows || col >= cols) {
                wrong_pads += code != 0;
                continue;
            }
            float value = m.value[row * cols + col];
            wrong_quantized += code != ft_quantize(value, 1.0f / scale[row]);
            far_quantized += !near_reference(value, amax, code);
        }
    }
    const char *name = ft_dtype_name(dtype);
    is_int(wrong_scales, 0, "%s %zu x %zu: each row's scale is its exact maximum magnitude / 127",
           name, rows, cols);
    is_int(wrong_quantized, 0, "%s %zu x %zu: quantized values are at the offsets of the layout",
           name, rows, cols);
    is_int(far_quantized, 0, "%s %zu x %zu: quantized values equal round(127 w / amax)", name, rows,
           cols);
    is_int(wrong_pads, 0, "%s %zu x %zu: padding elements are 0", name, rows, cols);
    free(scale);
    free(quantized);
    free_matrix(&m);
}

static void test_pieces(void)
{
    matrix m = random_matrix(FT_F32, 37, 70);
    float *scale = scales_of(&m);
    int8_t *quantized = quantized_of(&m, scale);
    size_t total = ft_weight_matrix_block_bytes(&m.weights) * ft_weight_matrix_blocks(&m.weights);
    static const size_t pieces[] = { 1, 7, 1280, 1281, 100000 };
    is_int((long long) total, (long long) ft_layout_bytes(FT_COL4_4R2_8C, 37, 70),
           "the row blocks of a weight make up the whole layout");
    for (size_t k = 0; k < FT_COUNT(pieces); k++) {
        ft_int8_weight_stream stream;
        ft_error err;
        int8_t *out = malloc(total + pieces[k]);
        size_t done = 0, got;
        if (ft_int8_weight_stream_init(&stream, &m.weights, scale, &err) != FT_OK)
            bail_out("%s", err.text);
        while (done < total &&
               (got = ft_int8_weight_stream_read(&stream, out + done, pieces[k])) > 0)
            done += got;
        ok(stream.block == NULL, "a weight stream frees its row block after the last byte");
        is_int((long long) ft_int8_weight_stream_read(&stream, out, 1), 0,
               "a weight stream returns 0 after the last byte");
        ok(done == total && memcmp(out, quantized, total) == 0,
           "reading a weight stream %zu bytes at a time gives the same bytes", pieces[k]);
        ft_int8_weight_stream_fini(&stream);
        free(out);
    }
    free(scale);
    free(quantized);
    free_matrix(&m);
}

static void test_special_rows(void)
{
    matrix m = random_matrix(FT_F32, 8, 32);
    for (size_t col = 0; col < 32; col++) {
        set(&m, 2, col, col % 2 ? 0.0f : -0.0f);
        set(&m, 3, col, 1e-42f);
        set(&m, 4, col, col == 5 ? -127.0f * 0x1p-126f : 0.0f);
        set(&m, 5, col, col == 5 ? -3e38f : 1.0f);
    }
    float *scale = scales_of(&m);
    int8_t *quantized = quantized_of(&m, scale);
    int others = 0;
    for (size_t col = 0; col < 32; col++)
        others +=
            quantized[ft_offset_col4(2, col, 8)] != 0 || quantized[ft_offset_col4(3, col, 8)] != 0;
    near((double) scale[2], 1.0, 0.0, "a row of zeros has the scale 1");
    near((double) scale[3], 1.0, 0.0, "a row whose scale has no normal reciprocal has the scale 1");
    is_int(others, 0, "rows with the fallback scale quantize to 0");
    is_int(quantized[ft_offset_col4(4, 5, 8)], -127,
           "the extreme of a row with the smallest scale quantizes to -127");
    is_int(quantized[ft_offset_col4(5, 5, 8)], -127,
           "the extreme of a row with the largest scale quantizes to -127");
    free(scale);
    free(quantized);
    free_matrix(&m);
}

static void test_refusals(void)
{
    matrix m = random_matrix(FT_F32, 9, 70);
    float scale[9];
    ft_error err;
    set(&m, 7, 65, NAN);
    set(&m, 8, 0, INFINITY);
    m.weights.name = "layer.3.ffn.up.weight";
    is_int(ft_weight_matrix_scales(scale, &m.weights, &err), FT_EFORMAT,
           "ft_weight_matrix_scales() refuses NaN");
    is_str(err.text, "layer.3.ffn.up.weight: row 7, column 65 is NaN",
           "the NaN error names the matrix and the position");
    set(&m, 7, 65, 0.0f);
    is_int(ft_weight_matrix_scales(scale, &m.weights, &err), FT_EFORMAT,
           "ft_weight_matrix_scales() refuses infinity");
    is_str(err.text, "layer.3.ffn.up.weight: row 8, column 0 is infinite",
           "the infinity error names the matrix and the position");
    m.weights.dtype = FT_I32;
    is_int(ft_weight_matrix_scales(scale, &m.weights, &err), FT_EUNSUPPORTED,
           "ft_weight_matrix_scales() refuses integer weights");
    has(err.text, "dtype I32, expected F32, F16 or BF16",
        "the dtype error states the dtypes found and expected");
    free_matrix(&m);
}

static double sqnr_by_definition(const matrix *m, const float *scale, bool per_tensor)
{
    double signal = 0, noise = 0;
    float widest = 0;
    for (size_t row = 0; row < m->weights.rows; row++)
        widest = fmaxf(widest, row_amax(m, row) / 127.0f);
    for (size_t i = 0; i < m->weights.rows * m->weights.cols; i++) {
        float s = per_tensor ? widest : scale[i / m->weights.cols];
        double error =
            (double) m->value[i] - (double) (s * (float) ft_quantize(m->value[i], 1 / s));
        signal += (double) m->value[i] * (double) m->value[i];
        noise += error * error;
    }
    return 10 * log10(signal / noise);
}

static void test_sqnr(void)
{
    matrix m = random_matrix(FT_F32, 40, 100);
    for (size_t col = 0; col < 100; col++)
        set(&m, 3, col, 0.0f);
    float *scale = scales_of(&m);
    ft_weight_sqnr sqnr = ft_weight_matrix_measure(&m.weights, scale);
    near(sqnr.per_channel, sqnr_by_definition(&m, scale, false), 1e-9,
         "the per-channel SQNR equals its definition");
    near(sqnr.per_tensor, sqnr_by_definition(&m, scale, true), 1e-9,
         "the per-tensor SQNR equals its definition");
    ok(sqnr.per_channel > sqnr.per_tensor + 1,
       "per-channel scales raise the SQNR of rows with different ranges");
    free(scale);

    for (size_t i = 0; i < 4000; i++)
        set(&m, i / 100, i % 100, 0.0f);
    scale = scales_of(&m);
    sqnr = ft_weight_matrix_measure(&m.weights, scale);
    ok(isinf(sqnr.per_channel) && isinf(sqnr.per_tensor), "the SQNR of a zero matrix is infinite");
    free(scale);
    free_matrix(&m);
}

int main(void)
{
    static const ft_dtype dtypes[] = { FT_F32, FT_F16, FT_BF16 };
    for (size_t i = 0; i < FT_COUNT(dtypes); i++) {
        test_matrix(dtypes[i], 1, 1);
        test_matrix(dtypes[i], 37, 70);
        test_matrix(dtypes[i], 64, 96);
    }
    test_pieces();
    test_special_rows();
    test_refusals();
    test_sqnr();
    return done_testing();
}
