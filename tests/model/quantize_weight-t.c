/*
 * quantize_weight-t.c - fake-quantized weights equal those that calibration writes.
 *
 * A calibration report measures a plan with weights fake-quantized from the float artifact; it is
 * valid only if the int8 artifact has the same quantized values and scales.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/weights.h"
#include "runtime/model/quantize_weight.h"
#include "tests/lib/ops/oneop.h"
#include "tests/lib/ops/oracle.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 45, COLS = 77 };

static void must(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        bail_out("%s", err->text);
}

/* Rows of zeros, of subnormal values, and of one large value among small ones. */
static ft_weight odd_weight(ft_dtype dtype)
{
    double *value;
    ft_weight weight = random_weight(70, ROWS, COLS, dtype, &value);
    free(value);
    if (dtype == FT_F32) {
        float *row = (float *) (uintptr_t) weight.data;
        for (size_t i = 0; i < COLS; i++) {
            row[i] = 0.0f;
            row[COLS + i] = (float) i * 1e-41f;
            row[2 * COLS + i] = (float) i * 0x1p-126f; /* no normal reciprocal */
            row[3 * COLS + i] = i == 5 ? -1e30f : 1.0f;
        }
    } else
        memset((void *) (uintptr_t) weight.data, 0, COLS * 2);
    return weight;
}

/* The int8 weight that calibration makes of a float weight. */
static ft_weight calibrated(const ft_weight *weight)
{
    ft_weight_matrix w = { .name = "w",
                           .dtype = weight->dtype,
                           .data = weight->data,
                           .rows = weight->rows,
                           .cols = weight->cols };
    size_t block = ft_weight_matrix_block_bytes(&w);
    float *scale = must_have(weight->rows, sizeof *scale);
    int8_t *quantized = must_have(ft_weight_matrix_blocks(&w), block);
    ft_error err;
    must(ft_weight_matrix_scales(scale, &w, &err), &err);
    for (size_t i = 0; i < ft_weight_matrix_blocks(&w); i++)
        ft_weight_matrix_quantize_i8(quantized + i * block, &w, scale, i);
    return (ft_weight){ .name = "w",
                        .rows = weight->rows,
                        .cols = weight->cols,
                        .dtype = FT_I8,
                        .layout = FT_COL4_4R2_8C,
                        .scale = scale,
                        .data = quantized };
}

static void test_dtype(ft_dtype dtype, const char *name)
{
    void *memory, *memory_int8;
    ft_error err;
    ft_weight fake = odd_weight(dtype), original = fake, int8 = calibrated(&fake), stored = int8;
    must(ft_fake_quantize_weight(&fake, NULL, &memory, &err), &err);
    must(ft_fake_quantize_weight(&int8, NULL, &memory_int8, &err), &err);
    ok(fake.dtype == FT_F32 && fake.layout == FT_ROW && fake.data == memory && fake.scale != NULL,
       "%s: a fake-quantized weight stores its quantized values as row-major float32", name);
    ok(memcmp(fake.scale, int8.scale, ROWS * sizeof *fake.scale) == 0,
       "%s: the scales of a fake-quantized weight equal those that calibration writes", name);
    const float *quantized = fake.data, *others = int8.data;
    int differ = 0, outside = 0;
    for (size_t i = 0; i < ROWS * COLS; i++) {
        differ += !(quantized[i] == others[i]);
        outside += !(quantized[i] >= -127.0f && quantized[i] <= 127.0f);
    }
    is_int(differ + outside, 0,
           "%s: the values of a fake-quantized weight equal those that calibration writes", name);

    int8_t *again = must_have(oracle_col4(NULL, NULL, ROWS, COLS, 0), 1);
    int8_t *narrow = must_have(ROWS * COLS, 1);
    for (size_t i = 0; i < ROWS * COLS; i++)
        narrow[i] = (int8_t) others[i];
    size_t bytes = oracle_col4(again, narrow, ROWS, COLS, 0);
    ok(memcmp(again, stored.data, bytes) == 0,
       "%s: fake quantization unpacks int8 weights from their stored layout", name);

    ft_weight in_memory = original;
    void *memory_now;
    must(ft_int8_quantize_weight(&in_memory, NULL, &memory_now, &err), &err);
    ok(in_memory.dtype == FT_I8 && in_memory.layout == FT_COL4_4R2_8C &&
           memcmp(in_memory.data, stored.data, bytes) == 0 &&
           memcmp(in_memory.scale, stored.scale, ROWS * sizeof *stored.scale) == 0,
       "%s: int8 weights quantized in memory have the bytes that calibration writes", name);
    free(memory_now);
    free(again);
    free(narrow);
    free(memory);
    free(memory_int8);
    free_weight(&original);
    free_weight(&stored);
    free((void *) (uintptr_t) stored.scale);
}

int main(void)
{
    test_dtype(FT_F32, "F32");
    test_dtype(FT_F16, "F16");
    test_dtype(FT_BF16, "BF16");
    return done_testing();
}
