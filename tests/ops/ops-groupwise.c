/*
 * ops-groupwise.c - linear with group-wise quantized weights, against the oracle.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/ops.h"

#include "kernels/half.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/groupwise.h"
#include "tests/lib/ops/oracle.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct block_case {
    size_t m, n, k;
    blocked_how how;
    ft_dtype dtype; /* of x and y */
    bool bias;
    ft_activation activation;
    ft_rows rows; /* FT_SELECTED: results are F32 */
} block_case;

static const block_case cases[] = {
    { 1, 70, 312, { FT_U4, 32, false, false }, FT_F32, true, FT_ACT_NONE, 0 },
    { 2, 33, 130, { FT_U8, 64, false, false }, FT_F32, false, FT_ACT_SILU, 0 },
    { 5, 45, 513, { FT_U4, 128, true, false }, FT_F32, true, FT_ACT_GELU, 0 },
    { TOKENS, 26, HIDDEN, { FT_U8, 0, true, false }, FT_F32, true, FT_ACT_NONE, 0 },
    { 17, 129, 96, { FT_U4, 0, false, false }, FT_F32, false, FT_ACT_RELU, 0 },
    { 9, 40, 200, { FT_U4, 32, true, false }, FT_F16, true, FT_ACT_NONE, 0 },
    { 70, 31, 65, { FT_U8, 32, false, false }, FT_BF16, false, FT_ACT_GELU_TANH, 0 },
    { 3, 100, 64, { FT_U4, 64, false, false }, FT_F16, false, FT_ACT_NONE, FT_SELECTED },
    { 1, 70, 312, { FT_U8, 32, false, true }, FT_F32, true, FT_ACT_NONE, 0 },
    { 8, 33, 130, { FT_U8, 128, true, true }, FT_F32, false, FT_ACT_SILU, 0 },
    { TOKENS, 26, 513, { FT_U8, 0, false, true }, FT_F32, true, FT_ACT_GELU, 0 },
    { 13, 65, 96, { FT_U4, 64, true, true }, FT_F16, true, FT_ACT_NONE, 0 },
    { 70, 31, 1, { FT_U4, 32, false, true }, FT_BF16, false, FT_ACT_NONE, 0 },
    { 2, 100, 200, { FT_U8, 32, false, true }, FT_BF16, false, FT_ACT_NONE, FT_SELECTED },
};

static uint16_t half_of(float x, ft_dtype dtype)
{
    return dtype == FT_F16 ? ft_f16_from_float(x) : ft_bf16_from_float(x);
}

/* x in its dtype, and its values. */
static void *make_x(const block_case *c, double **value)
{
    size_t n = c->m * c->k;
    float *x = random_floats(20, n, 1.0);
    uint16_t *halves = must_have(n, sizeof *halves);
    *value = must_have(n, sizeof **value);
    for (size_t i = 0; i < n; i++) {
        halves[i] = half_of(x[i], c->dtype);
        (*value)[i] = number_of(c->dtype == FT_F32 ? (void *) x : halves, c->dtype, i);
    }
    free(c->dtype == FT_F32 ? (void *) halves : x);
    return c->dtype == FT_F32 ? (void *) x : halves;
}

/* The error bound of x rounded to integers, by a fraction of the group's largest element. */
static double *rounding_errors(const block_case *c, double fraction, const double *x,
                               const double *w)
{
    size_t group = c->how.group == 0 ? c->k : (size_t) c->how.group;
    double *size = must_have(c->m * c->n, sizeof *size);
    for (size_t i = 0; i < c->m * c->n && !c->how.int8_activations; i++)
        for (size_t first = 0; first < c->k; first += group) {
            double amax = 0.0, sum = 0.0;
            for (size_t k = first; k < ft_min_size(first + group, c->k); k++) {
                amax = fmax(amax, fabs(x[i / c->n * c->k + k]));
                sum += fabs(w[i % c->n * c->k + k]);
            }
            size[i] += sum * amax * fraction;
        }
    return size;
}

/*
 * The other errors of a sum, in roundings of the size of its terms.  Each group has five at most:
 * its sum, two more in long groups, its scale, and the addition, which alone is relative to all of
 * y; the bias is one more.
 */
static double roundings(const block_case *c)
{
    size_t groups = ft_groupwise_groups(&(ft_groupwise){ .group = c->how.group }, c->k);
    return (double) (4 + groups) + 1;
}

static void run(bench *on, const block_case *c, const void *x, const ft_weight *w,
                const float *bias, void *found)
{
    int32_t start[2], *select = must_have(c->m, sizeof *select);
    ft_batch batch = single_batch(c->m, start);
    ft_rows rows = c->rows == FT_SELECTED ? FT_SELECTED : FT_TOKENS;
    oneop t;
    for (size_t i = 0; i < c->m; i++)
        select[i] = (int32_t) i;
    batch.selected_rows = select;
    batch.selected = c->m;
    oneop_begin(&t, on, FT_OP_LINEAR, &batch);
    t.plan.batch_invariant = true;
    t.op.attr.activation = c->activation;
    oneop_in(&t, 0, rows, (int32_t) c->k, c->dtype, 0.0f, x);
    oneop_weight(&t, 0, *w);
    if (c->bias)
        oneop_weight(&t, 1, (ft_weight){ .rows = 1, .cols = c->n, .data = bias });
    oneop_out_as(&t, rows, (int32_t) c->n, rows == FT_SELECTED ? FT_F32 : c->dtype);
    oneop_run(&t, found, NULL);
    oneop_end(&t);
    free(select);
}

static void test_case(bench *on, const block_case *c)
{
    size_t n = c->m * c->n;
    ft_dtype to = c->rows == FT_SELECTED ? FT_F32 : c->dtype;
    double *wide_x, *wide_w, *y = must_have(n, sizeof *y), *size = must_have(n, sizeof *size);
    float *bias = random_floats(21, c->n, 3.0);
    double *wide_bias = doubles_of(bias, c->n);
    void *x = make_x(c, &wide_x), *found = must_have(n, sizeof(float));
    ft_weight w = random_blocked(22, c->n, c->k, &c->how, &wide_w);
    if (strcmp(on->backend->name, "cpu") != 0)
        round_weights_for_gpu(wide_w, c->n * c->k, &c->how, c->dtype);
    double *x_errors = rounding_errors(c, groupwise_rounding(on), wide_x, wide_w);
    size_t wrong = 0;
    for (size_t i = 0; i < c->m && c->how.int8_activations; i++)
        round_to_int8_groups(wide_x + i * c->k, c->k, c->how.group);
    oracle_linear(y, size, wide_x, wide_w, c->bias ? wide_bias : NULL, c->m, c->n, c->k);
    run(on, c, x, &w, bias, found);
    for (size_t i = 0; i < n; i++) {
        /* No activation is steeper than 1.13, and the worst of them adds 1.6e-6 and six roundings
         * of its own (kernels/activation.h).
         */
        double bound = (1.13 * roundings(c) + 6) * ROUNDING * size[i] + 1.13 * x_errors[i];
        double v = oracle_activation(ft_activation_name(c->activation), y[i]);
        bound += (to == FT_F32 ? 0.0 : rounding_in(to) * (fabs(v) + bound)) +
                 (c->activation == FT_ACT_NONE ? 0.0 : 1.6e-6);
        wrong += is_far(number_of(found, to, i), v, bound);
    }
    is_int((long long) wrong, 0,
           "%s: linear %zu x %zu by %zu in %s with %s%s in groups of %d%s and activation %s "
           "matches the oracle",
           on->name, c->m, c->k, c->n, ft_dtype_name(c->dtype), ft_dtype_name(c->how.dtype),
           c->how.asymmetric ? " and zero points" : "", c->how.group,
           c->how.int8_activations ? ", int8 activations" : "", ft_activation_name(c->activation));
    void *all[] = { wide_x, wide_w, wide_bias, y, size, x_errors, bias, x, found };
    for (size_t i = 0; i < FT_COUNT(all); i++)
        free(all[i]);
    free_blocked(&w);
}

void test_blocks(bench *on)
{
    for (size_t i = 0; i < FT_COUNT(cases); i++)
        test_case(on, &cases[i]);
}
