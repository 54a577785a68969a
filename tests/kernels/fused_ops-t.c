/*
 * fused_ops-t.c - which neighbouring operations are one chain, and that its values lie apart.
 *
 * The plan is a decoder's layer: a norm, queries, keys, values, store, attention, a linear, a norm,
 * gate, up, their gate, and a linear.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/fused_ops.h"
#include "runtime/graph/plan.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <string.h>

enum { COLS = 64, WIDE = 96, OPS = 12, ROWS = 3 };

/* The operations of a layer, in order. */
enum { NORM, Q, K, V, STORE, ATTEND, O, NEXT_NORM, GATE_W, UP_W, GATE, DOWN };

static const ft_weight weights[] = {
    { .name = "square", .rows = COLS, .cols = COLS, .dtype = FT_F32 },
    { .name = "wide", .rows = WIDE, .cols = COLS, .dtype = FT_F32 },
    { .name = "narrow", .rows = COLS, .cols = WIDE, .dtype = FT_F32 },
};

static int add_value(ft_plan *plan, ft_rows rows, int32_t cols)
{
    ft_value value = { .rows = rows, .cols = cols, .dtype = FT_F32 };
    snprintf(value.name, sizeof value.name, "v%d", plan->nvalue);
    int index = ft_plan_add_value(plan, &value);
    if (index < 0)
        bail_out("no memory for a value");
    return index;
}

/* Returns its result; the pointer in *made, if wanted, is good until the next one is added. */
static int add_op(ft_plan *plan, ft_op_kind kind, int a, int b, int32_t cols, ft_op **made)
{
    ft_op op = ft_op_init(kind);
    op.in[0] = (int16_t) a;
    op.in[1] = (int16_t) b;
    op.out = (int16_t) add_value(plan, FT_TOKENS, cols);
    int at = ft_plan_add_op(plan, &op);
    if (at < 0)
        bail_out("no memory for an operation");
    if (made != NULL)
        *made = &plan->op[at];
    return op.out;
}

static int add_linear(ft_plan *plan, int x, int weight)
{
    ft_op *op;
    int y = add_op(plan, FT_OP_LINEAR, x, -1, (int32_t) weights[weight].rows, &op);
    op->weight[0] = (int16_t) weight;
    return y;
}

static int add_norm(ft_plan *plan, int x, int residual, int *sum)
{
    ft_op *op;
    int y = add_op(plan, FT_OP_NORM, x, residual, COLS, &op);
    *sum = op->second = (int16_t) add_value(plan, FT_TOKENS, COLS);
    return y;
}

static ft_plan layer(void)
{
    ft_plan plan = { .weight = weights, .nweight = 3, .batch_invariant = true };
    ft_op *op;
    int keys = add_value(&plan, FT_KV_CACHE, COLS), values = add_value(&plan, FT_KV_CACHE, COLS),
        sum;
    plan.value[keys].state = plan.value[values].state = true;
    int x = add_value(&plan, FT_TOKENS, COLS), residual = add_value(&plan, FT_TOKENS, COLS);
    int y = add_norm(&plan, x, residual, &sum);
    int q = add_linear(&plan, y, 0), k = add_linear(&plan, y, 0), v = add_linear(&plan, y, 0);
    int turned = add_op(&plan, FT_OP_STORE_KV, q, k, COLS, &op);
    op->in[2] = (int16_t) v;
    op->state[FT_STATE_KEYS] = (int16_t) keys;
    op->state[FT_STATE_VALUES] = (int16_t) values;
    int context = add_op(&plan, FT_OP_ATTEND_KV, turned, -1, COLS, &op);
    op->state[FT_STATE_KEYS] = (int16_t) keys;
    op->state[FT_STATE_VALUES] = (int16_t) values;
    int o = add_linear(&plan, context, 0);
    y = add_norm(&plan, sum, o, &sum);
    int gate = add_linear(&plan, y, 1), up = add_linear(&plan, y, 1);
    int gated = add_op(&plan, FT_OP_GATE, gate, up, WIDE, NULL);
    int down = add_linear(&plan, gated, 2);
    plan.output[plan.noutput++] = (ft_output){ "down", down };
    plan.output[plan.noutput++] = (ft_output){ "sum", sum };
    return plan;
}

/* "0+4ng 4+2a ...": first and count of each chain, what it has, its kind if it is no product. */
static const char *chains_of(const ft_plan *plan)
{
    static char text[256];
    int length = 0;
    for (int i = 0; i < plan->nop;) {
        ft_fusion chain = ft_fusion_at(plan, i);
        const char *kind = chain.kind == FT_FUSION_ATTENTION ? "a"
                           : chain.kind == FT_FUSION_NONE    ? "."
                                                             : "";
        length += snprintf(text + length, sizeof text - (size_t) length, "%s%d+%d%s%s%s",
                           i == 0 ? "" : " ", chain.first, chain.count, chain.norm ? "n" : "",
                           chain.gate ? "g" : "", kind);
        i += chain.count;
    }
    return text;
}

/* ---- Chains ------------------------------------------------------------------------------- */

static void test_layer(void)
{
    ft_plan plan = layer();
    is_int(plan.nop, OPS, "a layer has %d operations", OPS);
    is_str(chains_of(&plan), "0+4n 4+2a 6+1 7+4ng 11+1", "which are five chains");
    plan.batch_invariant = false;
    is_str(chains_of(&plan), "0+1. 1+3 4+1. 5+1. 6+1 7+1. 8+2 10+1. 11+1",
           "where rows may be many only linears are joined");
    ft_plan_fini(&plan);
}

/* A change to the layer, and what its chains are then. */
static void test_change(void (*change)(ft_plan *), const char *chains, const char *name)
{
    ft_plan plan = layer();
    change(&plan);
    is_str(chains_of(&plan), chains, "%s", name);
    ft_plan_fini(&plan);
}

static void keep_normalized(ft_plan *plan)
{
    plan->value[plan->op[NORM].out].keep = true;
}

static void put_out_gate(ft_plan *plan)
{
    plan->output[plan->noutput++] = (ft_output){ "gate", plan->op[GATE_W].out };
}

static void read_normalized_again(ft_plan *plan)
{
    plan->op[DOWN].in[1] = plan->op[NEXT_NORM].out;
}

static void read_turned_again(ft_plan *plan)
{
    plan->op[O].in[1] = plan->op[STORE].out;
}

static void swap_gate(ft_plan *plan)
{
    plan->op[GATE].in[0] = plan->op[UP_W].out;
    plan->op[GATE].in[1] = plan->op[GATE_W].out;
}

static void make_codes(ft_plan *plan)
{
    plan->op[NORM].codes = plan->op[NORM].second;
    plan->op[GATE].codes = plan->op[GATE].out;
    plan->op[GATE].out = -1;
}

static void activate_gate(ft_plan *plan)
{
    plan->op[GATE_W].attr.activation = plan->op[UP_W].attr.activation = FT_ACT_GELU;
}

static void attend_to_memory(ft_plan *plan)
{
    plan->op[ATTEND].attr.cross_kv = true;
}

static void attend_elsewhere(ft_plan *plan)
{
    plan->op[ATTEND].state[FT_STATE_KEYS] = plan->op[ATTEND].state[FT_STATE_VALUES];
}

static void part_after_values(ft_plan *plan)
{
    plan->encoder_ops = K;
}

static void part_inside_others(ft_plan *plan)
{
    plan->encoder_ops = ATTEND;
}

static void part_before_gate(ft_plan *plan)
{
    plan->encoder_ops = GATE;
}

static void differ_in_shape(ft_plan *plan)
{
    plan->op[V].weight[0] = 1;
}

static void test_changes(void)
{
    test_change(keep_normalized, "0+1. 1+3 4+2a 6+1 7+4ng 11+1",
                "a result that is kept has to be written");
    test_change(put_out_gate, "0+4n 4+2a 6+1 7+3n 10+1. 11+1", "so has an output");
    test_change(read_normalized_again, "0+4n 4+2a 6+1 7+1. 8+3g 11+1", "and one that others read");
    test_change(read_turned_again, "0+4n 4+1. 5+1. 6+1 7+4ng 11+1", "as turned queries may be");
    test_change(swap_gate, "0+4n 4+2a 6+1 7+3n 10+1. 11+1", "the gate comes first");
    test_change(make_codes, "0+1. 1+3 4+2a 6+1 7+3n 10+1. 11+1", "codes are made alone");
    test_change(activate_gate, "0+4n 4+2a 6+1 7+3n 10+1. 11+1", "a gate reads what is linear");
    test_change(attend_to_memory, "0+4n 4+1. 5+1. 6+1 7+4ng 11+1",
                "attention to the memory stores nothing");
    test_change(attend_elsewhere, "0+4n 4+1. 5+1. 6+1 7+4ng 11+1", "nor that to other keys");
    test_change(part_after_values, "0+1. 1+1 2+2 4+2a 6+1 7+4ng 11+1",
                "no chain goes from one part of a plan into the other: linears");
    test_change(part_inside_others, "0+4n 4+1. 5+1. 6+1 7+4ng 11+1", "attention");
    test_change(part_before_gate, "0+4n 4+2a 6+1 7+3n 10+1. 11+1", "gates");
    test_change(differ_in_shape, "0+4n 4+2a 6+1 7+4ng 11+1",
                "linears of one width belong together, of any height");
}

/* ---- Memory ------------------------------------------------------------------------------- */

static bool touches(const ft_op *op, int value)
{
    return op->out == value || op->second == value || op->in[0] == value || op->in[1] == value ||
           op->in[2] == value;
}

static bool share_memory(const ft_value *a, const ft_value *b)
{
    size_t bytes_of_a = ROWS * sizeof(float) * (size_t) a->cols;
    size_t bytes_of_b = ROWS * sizeof(float) * (size_t) b->cols;
    return a->offset < b->offset + bytes_of_b && b->offset < a->offset + bytes_of_a;
}

/* Pairs of values of one chain, states aside, that overlap. */
static int has_pdl(const ft_plan *plan)
{
    int faults = 0;
    for (int i = 0; i < plan->nop;) {
        ft_fusion chain = ft_fusion_at(plan, i);
        bool touched[64] = { false };
        for (int end = i + chain.count; i < end; i++)
            for (int v = 0; v < plan->nvalue; v++)
                touched[v] |= !plan->value[v].state && touches(&plan->op[i], v);
        for (int v = 0; v < plan->nvalue; v++)
            for (int w = 0; w < v; w++)
                faults +=
                    touched[v] && touched[w] && share_memory(&plan->value[v], &plan->value[w]);
    }
    return faults;
}

static size_t lay_out(ft_plan *plan)
{
    ft_error err;
    ft_limits limits = { .tokens = ROWS, .sequences = 1, .context = 128, .pages = 1 };
    if (ft_plan_layout(plan, &limits, &err) != FT_OK)
        bail_out("%s", err.text);
    return plan->arena;
}

static void test_memory(void)
{
    ft_plan plan = layer();
    size_t apart = lay_out(&plan);
    is_int(has_pdl(&plan), 0, "what a chain touches lies apart");
    plan.batch_invariant = false;
    size_t alone = lay_out(&plan);
    plan.batch_invariant = true;
    ok(has_pdl(&plan) > 0, "which it does not where operations follow each other");
    ok(alone < apart, "and that takes less memory");
    ft_plan_fini(&plan);
}

int main(void)
{
    test_layer();
    test_changes();
    test_memory();
    return done_testing();
}
