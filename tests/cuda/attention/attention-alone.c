/*
 * attention-alone.c - part of attention.t: the result of a sequence depends on that sequence alone,
 * to the bit, whatever else is in the batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda/attention/attention.h"

#include "kernels/half.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_A_NUMBER = 0x7fff }; /* in f16 and in bf16 */

static const char *name_of_dtype(ft_dtype dtype)
{
    return dtype == FT_F16 ? "f16" : "bf16";
}

static uint16_t *random_halves(size_t n, ft_dtype dtype)
{
    uint16_t *halves = must_have(n * sizeof *halves);
    for (size_t i = 0; i < n; i++) {
        float x = (float) (int32_t) draw() * 0x1p-31f;
        halves[i] = dtype == FT_F16 ? ft_f16_from_float(x) : ft_bf16_from_float(x);
    }
    return halves;
}

/* The results of a batch whose first row is row `first` of x. */
static uint16_t *attend(const batch *b, uint16_t *const x[3], size_t first, ft_dtype dtype)
{
    size_t bytes = b->tokens * b->cols * sizeof(uint16_t);
    void *device[4];
    for (int i = 0; i < 4; i++)
        device[i] = upload(i < 3 ? x[i] + first * b->cols : NULL, bytes);
    ft_cuda_attention_args a = { .blocks = b->device_blocks,
                                 .n_query_tiles = b->n_query_tiles,
                                 .heads = b->heads,
                                 .head_size = b->head_size,
                                 .dtype = dtype,
                                 .tokens = b->tokens,
                                 .sequences = b->sequences,
                                 .q = device[0],
                                 .k = device[1],
                                 .v = device[2],
                                 .y = device[3],
                                 .score_scale = 0.5f };
    must(ft_cuda_attention_launch(&props, NULL, &a), "attention");
    must(cudaDeviceSynchronize(), "attention");
    uint16_t *y = download(device[3], bytes);
    for (int i = 0; i < 4; i++)
        cudaFree(device[i]);
    return y;
}

/* The number of elements of a sequence that differ; `other` begins with that sequence's row `at`.
 */
static size_t differing(const batch *b, size_t sequence, const uint16_t *y, const uint16_t *other,
                        size_t at)
{
    size_t differ = 0;
    size_t first = (size_t) b->start[sequence], end = (size_t) b->start[sequence + 1];
    for (size_t i = first * b->cols; i < end * b->cols; i++)
        differ += y[i] != other[i - at * b->cols];
    return differ;
}

static void test_alone(const shape *s, ft_dtype dtype)
{
    batch b;
    size_t differ = 0;
    batch_init(&b, s);
    uint16_t *x[3];
    for (int i = 0; i < 3; i++)
        x[i] = random_halves(b.tokens * b.cols, dtype);
    uint16_t *together = attend(&b, x, 0, dtype);
    for (size_t i = 0; i < b.sequences; i++) {
        batch one;
        shape alone = { s->heads, s->head_size, LENGTHS(b.start[i + 1] - b.start[i]), 0 };
        batch_init(&one, &alone);
        uint16_t *y = attend(&one, x, (size_t) b.start[i], dtype);
        differ += differing(&b, i, together, y, (size_t) b.start[i]);
        free(y);
        batch_fini(&one);
    }
    is_int((long long) differ, 0,
           "%s attention with %s gives each sequence the bits that it has alone",
           name_of_dtype(dtype), name_of(s));
    for (int i = 0; i < 3; i++)
        free(x[i]);
    free(together);
    batch_fini(&b);
}

/* Every other sequence becomes NaN. */
static void test_neighbours(const shape *s, ft_dtype dtype)
{
    batch b;
    size_t differ = 0;
    batch_init(&b, s);
    uint16_t *x[3];
    for (int i = 0; i < 3; i++)
        x[i] = random_halves(b.tokens * b.cols, dtype);
    uint16_t *before = attend(&b, x, 0, dtype);
    for (size_t i = 1; i < b.sequences; i += 2)
        for (size_t j = (size_t) b.start[i] * b.cols; j < (size_t) b.start[i + 1] * b.cols; j++)
            x[0][j] = x[1][j] = x[2][j] = NOT_A_NUMBER;
    uint16_t *after = attend(&b, x, 0, dtype);
    for (size_t i = 0; i < b.sequences; i += 2)
        differ += differing(&b, i, before, after, 0);
    is_int((long long) differ, 0,
           "%s attention with %s gives the same bits where every other sequence is NaN",
           name_of_dtype(dtype), name_of(s));
    for (int i = 0; i < 3; i++)
        free(x[i]);
    free(before);
    free(after);
    batch_fini(&b);
}

void test_sequences_alone(void)
{
    static const shape shapes[] = {
        SHAPE(3, 64, 1, 7, 63, 64, 65, 127, 128, 129),
        SHAPE(12, 64, 384, 1000, 100, 300, 64, 192),
        SHAPE(3, 128, 1, 130, 64, 300, 65, 17),
        SHAPE(2, 32, 129, 63, 257),
        SHAPE(3, 72, 129, 63, 257),
        SHAPE(2, 80, 1, 200, 100),
        SHAPE(2, 96, 70, 128, 140),
    };
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        for (int bf16 = 0; bf16 < (props.capability >= 80 ? 2 : 1); bf16++) {
            test_alone(&shapes[i], bf16 ? FT_BF16 : FT_F16);
            test_neighbours(&shapes[i], bf16 ? FT_BF16 : FT_F16);
        }
}

#else

typedef int ft_nothing_without_cuda;

#endif
