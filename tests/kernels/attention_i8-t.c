/*
 * attention_i8-t.c - int8 self-attention: every instruction set against a naive reference.
 *
 * The reference follows the specified arithmetic step by step, so that bytes must agree; its result
 * is then compared with the softmax in double precision.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/attention/attention_i8.h"
#include "kernels/quant.h"
#include "kernels/softmax.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64 };

static const float q_scale = 0.02f, k_scale = 0.025f, v_scale = 0.03f;

static uint32_t random_state = 7;

static uint32_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

typedef struct lengths {
    const char *name;
    size_t sequences, heads, head_size;
    int32_t starts[8];
} lengths;

static const lengths all_lengths[] = {
    { "one token", 1, 1, 4, { 0, 1 } },
    { "12 heads of 26", 5, 12, 26, { 0, 7, 7, 8, 40, 57 } },
    { "heads of 64", 2, 2, 64, { 0, 128, 195 } },
    { "heads of 80", 2, 2, 80, { 0, 33, 99 } },
    { "a long sequence", 1, 1, 32, { 0, 517 } },
};

typedef struct batch {
    const char *name;
    size_t sequences, heads, head_size;
    const int32_t *starts;
    size_t stride, width, tokens; /* of one matrix that holds q, k and v in adjacent columns */
    int8_t *qkv;
} batch;

static batch batch_new(const lengths *l)
{
    batch b = {
        .name = l->name,
        .sequences = l->sequences,
        .heads = l->heads,
        .head_size = l->head_size,
        .starts = l->starts,
        .width = l->heads * l->head_size,
        .stride = 3 * l->heads * l->head_size,
        .tokens = (size_t) l->starts[l->sequences],
    };
    b.qkv = malloc(b.tokens * b.stride);
    for (size_t i = 0; i < b.tokens * b.stride; i++)
        b.qkv[i] = (int8_t) ((int) (random_bits() % 255) - 127);
    return b;
}

static const int8_t *element(const batch *b, size_t which, size_t token, size_t head)
{
    return b->qkv + token * b->stride + which * b->width + head * b->head_size;
}

static ft_attention_i8 described(const batch *b, ft_isa isa, int threads, float out_inverse)
{
    return (ft_attention_i8){
        .isa = isa,
        .threads = threads,
        .sequences = b->sequences,
        .heads = b->heads,
        .head_size = b->head_size,
        .starts = b->starts,
        .q = b->qkv,
        .k = b->qkv + b->width,
        .v = b->qkv + 2 * b->width,
        .q_stride = b->stride,
        .k_stride = b->stride,
        .v_stride = b->stride,
        .score_scale = q_scale * k_scale / sqrtf((float) b->head_size),
        .value_scale = v_scale,
        .out_inverse = out_inverse,
        .y_stride = b->width + 3,
    };
}

/* Quantizes one row of scores as specified; returns the largest distance from the exact values. */
static double softmax_quantize(int8_t *quantized, int32_t *total, const int32_t *scores,
                               size_t length, float scale)
{
    float step = ft_softmax_step(scale);
    int32_t most = scores[0];
    double worst = 0.0;
    for (size_t i = 1; i < length; i++)
        most = scores[i] > most ? scores[i] : most;
    *total = 0;
    for (size_t i = 0; i < length; i++) {
        double exact = 127.0 * exp((scores[i] - most) * (double) scale);
        quantized[i] = (int8_t) ft_softmax_code((float) (most - scores[i]), step);
        *total += quantized[i];
        worst = fmax(worst, fabs(quantized[i] - exact));
    }
    return worst;
}

static int32_t dot(const int8_t *a, const int8_t *b, size_t count)
{
    int32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The context of one query of one head, from its quantized probabilities and their total. */
static void mix(const batch *b, const ft_attention_i8 *a, const int8_t *quantized, int32_t total,
                size_t first, size_t end, size_t head, void *y, size_t token)
{
    float factor = a->value_scale / (float) total;
    for (size_t col = 0; col < b->head_size; col++) {
        int32_t sum = 0;
        for (size_t key = first; key < end; key++)
            sum += quantized[key - first] * element(b, 2, key, head)[col];
        float value = ft_dequantize(sum, factor, 0.0f);
        size_t at = token * a->y_stride + head * b->head_size + col;
        if (a->out_inverse > 0.0f)
            ((int8_t *) y)[at] = ft_quantize(value, a->out_inverse);
        else
            ((float *) y)[at] = value;
    }
}

/* The reference's output; returns the largest distance of quantized values from exact ones. */
static double reference(const batch *b, const ft_attention_i8 *a, void *y)
{
    double worst = 0.0;
    int32_t *scores = malloc(b->tokens * sizeof *scores);
    int8_t *quantized = malloc(b->tokens);
    for (size_t sequence = 0; sequence < b->sequences; sequence++) {
        size_t first = (size_t) b->starts[sequence], end = (size_t) b->starts[sequence + 1];
        for (size_t token = first; token < end; token++)
            for (size_t head = 0; head < b->heads; head++) {
                for (size_t key = first; key < end; key++)
                    scores[key - first] =
                        dot(element(b, 0, token, head), element(b, 1, key, head), b->head_size);
                int32_t total;
                worst = fmax(worst, softmax_quantize(quantized, &total, scores, end - first,
                                                     a->score_scale));
                mix(b, a, quantized, total, first, end, head, y, token);
            }
    }
    free(scores);
    free(quantized);
    return worst;
}

static bool same_bytes(const batch *b, const char *expected, size_t bytes, ft_isa isa, int threads,
                       float out_inverse)
{
    size_t longest = 0;
    for (size_t i = 0; i < b->sequences; i++) {
        size_t length = (size_t) (b->starts[i + 1] - b->starts[i]);
        longest = length > longest ? length : longest;
    }
    ft_attention_i8 a = described(b, isa, threads, out_inverse);
    char *found = malloc(bytes);
    memset(found, 0x5a, bytes);
    a.y = found;
    a.scratch_bytes = ft_attention_i8_scratch(longest, b->head_size, threads);
    a.scratch = ft_calloc_aligned(a.scratch_bytes);
    memset(a.scratch, 0x33, a.scratch_bytes);
    ft_attention_i8_run(&a);
    bool same = memcmp(expected, found, bytes) == 0;
    free(a.scratch);
    free(found);
    return same;
}

static void test_batch(const batch *b, float out_inverse)
{
    ft_attention_i8 a = described(b, FT_ISA_GENERIC, 1, out_inverse);
    size_t element_bytes = out_inverse > 0.0f ? 1 : sizeof(float);
    size_t bytes = b->tokens * a.y_stride * element_bytes + GUARD;
    char *expected = malloc(bytes);
    memset(expected, 0x5a, bytes);
    double error = reference(b, &a, expected);
    const char *kind = out_inverse > 0.0f ? "codes" : "floats";
    /* Half a step of rounding, and the error of the polynomial: kernels/softmax.h. */
    near(error, 0.0, 0.5 + 0.046,
         "%s: %s: the quantized outputs differ from a float64 reference by at most one step",
         b->name, kind);
    for (int isa = 0; isa < FT_ISA_COUNT; isa++) {
        if (!ft_isa_supported((ft_isa) isa)) {
            skip(1, "this machine or this build has no %s", ft_isa_name((ft_isa) isa));
            continue;
        }
        bool same = true;
        for (int threads = 1; threads <= 5; threads += 2)
            same &= same_bytes(b, expected, bytes, (ft_isa) isa, threads, out_inverse);
        ok(same, "%s: %s: %s with 1, 3 and 5 threads equals the reference's bytes", b->name,
           ft_isa_name((ft_isa) isa), kind);
    }
    free(expected);
}

int main(void)
{
    for (size_t i = 0; i < FT_COUNT(all_lengths); i++) {
        batch b = batch_new(&all_lengths[i]);
        test_batch(&b, 0.0f);
        test_batch(&b, 1.0f / 0.02f);
        free(b.qkv);
    }
    return done_testing();
}
