/*
 * ops-f16.c - row operations on f16 instead of f32.
 *
 * Arithmetic is in f32 whatever the storage type.  So the same numbers in f16 must give the same
 * results, rounded where they are stored; quantized results come from the stored f16 results if
 * there are any, else from f32.  Other tests check the f32 results.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/ops.h"

#include "kernels/half.h"
#include "kernels/quant.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

enum { COLS = 70, COUNT = TOKENS * COLS };

/* The kind of an operand; HALVES are f32 in the run that computes the expected results. */
typedef enum operand { NONE, HALVES, FLOATS, INT8, FAKED } operand;

/* The results: float values, quantized values, or both. */
enum { REALS = 1, CODES = 2 };

typedef struct half_case {
    ft_op_kind kind;
    operand in[2];
    int writes;
    ft_pooling pooling;
    const char *sentence;
} half_case;

static const half_case cases[] = {
    { FT_OP_NORM, { HALVES }, REALS, 0, "f16 input" },
    { FT_OP_NORM, { HALVES, HALVES }, REALS | CODES, 0, "f16 plus f16, with int8 output" },
    { FT_OP_NORM, { HALVES, INT8 }, CODES, 0, "f16 plus int8, with int8 output only" },
    { FT_OP_NORM, { HALVES, FAKED }, REALS, 0, "f16 plus fake-quantized values" },
    { FT_OP_NORM, { FLOATS, HALVES }, REALS | CODES, 0, "f32 plus f16" },
    { FT_OP_ADD, { HALVES, HALVES }, REALS, 0, "f16 plus f16" },
    { FT_OP_ADD, { HALVES, INT8 }, REALS, 0, "f16 plus int8" },
    { FT_OP_ADD, { FLOATS, HALVES }, REALS, 0, "f32 plus f16" },
    { FT_OP_ACTIVATE, { HALVES }, REALS, 0, "f16 input" },
    { FT_OP_ACTIVATE, { FLOATS }, REALS, 0, "f32 input" },
    { FT_OP_QUANTIZE, { HALVES }, CODES, 0, "f16 input" },
    { FT_OP_DEQUANTIZE, { INT8 }, REALS, 0, "int8 input" },
    { FT_OP_DEQUANTIZE, { FAKED }, REALS, 0, "fake-quantized input" },
    { FT_OP_L2_NORMALIZE, { HALVES }, REALS, 0, "f16 input" },
    { FT_OP_POOL, { HALVES }, REALS, FT_POOL_FIRST, "the first rows of f16 input" },
    { FT_OP_POOL, { HALVES }, REALS, FT_POOL_MEAN, "the means of f16 input" },
};

/* Operands of all kinds: x[i] has exactly the values of half[i]. */
typedef struct stock {
    float *x[2], *faked, *weight, *bias;
    uint16_t *half[2];
    int8_t *quantized;
} stock;

static stock make_stock(void)
{
    stock s = { .quantized = random_int8(82, COUNT),
                .weight = random_floats(83, COLS, 1.0),
                .bias = random_floats(84, COLS, 0.5) };
    s.faked = fake_quantized(s.quantized, COUNT);
    for (int i = 0; i < 2; i++) {
        s.x[i] = random_floats(80 + (uint64_t) i, COUNT, 1.0);
        s.half[i] = must_have(COUNT, sizeof *s.half[i]);
        for (size_t k = 0; k < COUNT; k++) {
            s.half[i][k] = ft_f16_from_float(s.x[i][k]);
            s.x[i][k] = ft_float_from_f16(s.half[i][k]);
        }
    }
    return s;
}

static void free_stock(stock *s)
{
    void *all[] = { s->x[0],  s->x[1],      s->half[0], s->half[1],
                    s->faked, s->quantized, s->weight,  s->bias };
    for (size_t i = 0; i < FT_COUNT(all); i++)
        free(all[i]);
}

static void add_operand(oneop *t, const stock *s, int slot, operand what, bool halves)
{
    if (what == HALVES && halves)
        oneop_in(t, slot, FT_TOKENS, COLS, FT_F16, 0.0f, s->half[slot]);
    else if (what == HALVES || what == FLOATS)
        oneop_in(t, slot, FT_TOKENS, COLS, FT_F32, 0.0f, s->x[slot]);
    else if (what == INT8)
        oneop_in(t, slot, FT_TOKENS, COLS, FT_I8, 0.03f, s->quantized);
    else if (what == FAKED)
        oneop_in(t, slot, FT_TOKENS, COLS, FT_F32, 0.03f, s->faked);
}

#define CODE_SCALE 0.02f

static void run_case(bench *on, const stock *s, const half_case *c, bool halves, void *out,
                     int8_t *quantized)
{
    oneop t;
    oneop_begin(&t, on, c->kind, &mixed_batch);
    t.op.attr.eps = 1e-5f;
    t.op.attr.activation = FT_ACT_GELU;
    t.op.attr.pooling = c->pooling;
    for (int i = 0; i < 2; i++)
        add_operand(&t, s, i, c->in[i], halves);
    if (c->kind == FT_OP_NORM) {
        oneop_weight(&t, 0, (ft_weight){ .rows = 1, .cols = COLS, .data = s->weight });
        oneop_weight(&t, 1, (ft_weight){ .rows = 1, .cols = COLS, .data = s->bias });
    }
    if (c->writes & REALS)
        oneop_out_as(&t, c->kind == FT_OP_POOL ? FT_SEQUENCES : FT_TOKENS, COLS,
                     halves ? FT_F16 : FT_F32);
    if (c->writes & CODES)
        oneop_quantized(&t, FT_TOKENS, COLS, FT_I8, CODE_SCALE);
    oneop_run(&t, out, quantized);
    oneop_end(&t);
}

static void test_case(bench *on, const stock *s, const half_case *c)
{
    float *expected = must_have(COUNT, sizeof *expected);
    uint16_t *found = must_have(COUNT, sizeof *found);
    int8_t *expected_quantized = must_have(COUNT, 1), *quantized = must_have(COUNT, 1);
    int wrong = 0;
    run_case(on, s, c, false, expected, expected_quantized);
    run_case(on, s, c, true, found, quantized);
    for (size_t i = 0; i < COUNT; i++) {
        wrong += found[i] != ft_f16_from_float(expected[i]);
        if (c->writes == (REALS | CODES))
            expected_quantized[i] =
                ft_quantize(ft_float_from_f16(found[i]), ft_inverse_scale(CODE_SCALE));
        wrong += quantized[i] != expected_quantized[i];
    }
    is_int(wrong, 0, "%s: %s of %s gives the f32 results rounded to f16", on->name,
           ft_op_name(c->kind), c->sentence);
    free(expected);
    free(found);
    free(expected_quantized);
    free(quantized);
}

void test_f16(bench *on)
{
    stock s = make_stock();
    for (size_t i = 0; i < FT_COUNT(cases); i++)
        test_case(on, &s, &cases[i]);
    free_stock(&s);
}
