/*
 * lower_fusion-t.c - which neighbouring operations are a fusion group, that its values lie apart
 * and its weights together.
 *
 * The plan is a decoder's layer: a norm, queries, keys, values, store, attention, a linear, a norm,
 * gate, up, their gate, and a linear.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/fused_ops.h"
#include "runtime/graph/lower.h"
#include "runtime/graph/plan.h"
#include "tests/lib/text.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLS = 64, WIDE = 96, OPS = 12, ROWS = 3 };

/* The operations of a layer, in order. */
enum { NORM, Q, K, V, STORE, ATTEND, O, NEXT_NORM, GATE_W, UP_W, GATE, DOWN };

/* The weights of the linears, in the order of a model that has them in disorder. */
enum { W_VALUES, W_QUERIES, W_OUT, W_GATE, W_UP, W_DOWN, W_KEYS, WEIGHTS };

static const ft_weight weights[] = {
    { .name = "v", .rows = COLS, .cols = COLS, .dtype = FT_F32 },
    { .name = "q", .rows = COLS, .cols = COLS, .dtype = FT_F32 },
    { .name = "out", .rows = COLS, .cols = COLS, .dtype = FT_F32 },
    { .name = "gate", .rows = WIDE, .cols = COLS, .dtype = FT_F32 },
    { .name = "up", .rows = WIDE, .cols = COLS, .dtype = FT_F32 },
    { .name = "down", .rows = COLS, .cols = WIDE, .dtype = FT_F32 },
    { .name = "k", .rows = COLS, .cols = COLS, .dtype = FT_F32 },
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
    ft_plan plan = { .weight = weights, .nweight = WEIGHTS };
    ft_op *op;
    int keys = add_value(&plan, FT_KV_CACHE, COLS), values = add_value(&plan, FT_KV_CACHE, COLS),
        sum;
    plan.value[keys].state = plan.value[values].state = true;
    int x = add_value(&plan, FT_TOKENS, COLS), residual = add_value(&plan, FT_TOKENS, COLS);
    int y = add_norm(&plan, x, residual, &sum);
    int q = add_linear(&plan, y, W_QUERIES), k = add_linear(&plan, y, W_KEYS);
    int v = add_linear(&plan, y, W_VALUES);
    int turned = add_op(&plan, FT_OP_STORE_KV, q, k, COLS, &op);
    op->in[2] = (int16_t) v;
    op->state[FT_STATE_KEYS] = (int16_t) keys;
    op->state[FT_STATE_VALUES] = (int16_t) values;
    int context = add_op(&plan, FT_OP_ATTEND_KV, turned, -1, COLS, &op);
    op->state[FT_STATE_KEYS] = (int16_t) keys;
    op->state[FT_STATE_VALUES] = (int16_t) values;
    int o = add_linear(&plan, context, W_OUT);
    y = add_norm(&plan, sum, o, &sum);
    int gate = add_linear(&plan, y, W_GATE), up = add_linear(&plan, y, W_UP);
    int gated = add_op(&plan, FT_OP_GATE, gate, up, WIDE, NULL);
    int down = add_linear(&plan, gated, W_DOWN);
    plan.output[plan.noutput++] = (ft_output){ .name = "down", .value = down };
    plan.output[plan.noutput++] = (ft_output){ .name = "sum", .value = sum };
    return plan;
}

static void find_groups(ft_plan *plan)
{
    ft_error err;
    if (ft_lower_groups(plan, &err) != FT_OK)
        bail_out("%s", err.text);
}

/* "0+4n 4+2a": first and count of each group, and what it has; "!" where its weights lie apart. */
static const char *groups_of(const ft_plan *plan)
{
    static char text[256];
    int length = 0;
    text[0] = '\0';
    for (int i = 0; i < plan->ngroup; i++) {
        const ft_fusion_group *group = &plan->group[i];
        const char *end = group->kind == FT_FUSION_ATTENTION ? "a" : group->contiguous ? "" : "!";
        length += snprintf(text + length, sizeof text - (size_t) length, "%s%d+%d%s%s%s%s%s",
                           i == 0 ? "" : " ", group->first, group->count, group->norm ? "n" : "",
                           group->quantize ? "q" : "", group->gate ? "g" : "",
                           group->down ? "d" : "", end);
    }
    return text;
}

/* ---- Groups ------------------------------------------------------------------------------- */

static void test_layer(void)
{
    ft_plan plan = layer();
    is_int(plan.nop, OPS, "a decoder layer has %d operations", OPS);
    find_groups(&plan);
    is_str(groups_of(&plan), "0+4n 4+2a 7+4ng",
           "ten operations of a decoder layer form three fusion groups");
    ok(ft_group_of(&plan, NORM) == &plan.group[0] && ft_group_of(&plan, V) == &plan.group[0] &&
           ft_group_of(&plan, O) == NULL && ft_group_of(&plan, GATE) == &plan.group[2] &&
           ft_group_of(&plan, DOWN) == NULL,
       "the fusion group of an operation is found if it has one");
    plan.op[STORE].kind = FT_OP_ADD; /* and so without a cache */
    find_groups(&plan);
    is_str(groups_of(&plan), "1+3 8+2", "without a KV cache only linears are grouped");
    ft_plan_fini(&plan);
}

/* A change to the layer, and what its groups are then. */
static void test_change(void (*change)(ft_plan *), const char *groups, const char *name)
{
    ft_plan plan = layer();
    change(&plan);
    find_groups(&plan);
    is_str(groups_of(&plan), groups, "%s", name);
    ft_plan_fini(&plan);
}

static void keep_normalized(ft_plan *plan)
{
    plan->value[plan->op[NORM].out].keep = true;
}

static void put_out_gate(ft_plan *plan)
{
    plan->output[plan->noutput++] = (ft_output){ .name = "gate", .value = plan->op[GATE_W].out };
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

static void make_quantized(ft_plan *plan)
{
    plan->op[NORM].quantized = plan->op[NORM].second;
    plan->op[GATE].quantized = plan->op[GATE].out;
    plan->op[GATE].out = -1;
}

/* The result of an operation becomes quantized with row scales. */
static void make_dynamic(ft_plan *plan, int op)
{
    plan->op[op].quantized = plan->op[op].out;
    plan->op[op].out = -1;
    plan->value[plan->op[op].quantized].dynamic = true;
}

static void quantize_rows(ft_plan *plan)
{
    make_dynamic(plan, NORM);
    make_dynamic(plan, NEXT_NORM);
    make_dynamic(plan, GATE);
}

static void read_gate_again(ft_plan *plan)
{
    make_dynamic(plan, GATE);
    plan->output[plan->noutput++] =
        (ft_output){ .name = "gated", .value = plan->op[GATE].quantized };
}

static void quantize_context(ft_plan *plan)
{
    plan->op[ATTEND].kind = FT_OP_QUANTIZE;
    make_dynamic(plan, ATTEND);
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
    plan->op[V].weight[0] = W_GATE;
}

static void share_a_weight(ft_plan *plan)
{
    plan->op[V].weight[0] = W_KEYS;
}

static void share_with_another_group(ft_plan *plan)
{
    plan->op[GATE_W].weight[0] = W_KEYS;
}

static void test_changes(void)
{
    test_change(keep_normalized, "1+3 4+2a 7+4ng",
                "a norm whose result is kept is in no group because the result must be stored");
    test_change(put_out_gate, "0+4n 4+2a 7+3n", "a gate that reads a model output is in no group");
    test_change(read_normalized_again, "0+4n 4+2a 8+3g",
                "a norm whose result is read outside the group is in no group");
    test_change(read_turned_again, "0+4n 7+4ng",
                "a store whose queries are read outside the group is in no group");
    test_change(swap_gate, "0+4n 4+2a 7+3n", "a gate must activate the first linear of its group");
    test_change(make_quantized, "1+3 4+2a 7+3n",
                "norms and gates that quantize with one scale are in no group");
    test_change(quantize_rows, "0+4n 4+2a 7+5ngd",
                "a norm with row scales is in a group, and a gate with that of its linear");
    test_change(read_gate_again, "0+4n 4+2a 7+3n",
                "a gate whose row scales are read outside the group is in no group");
    test_change(quantize_context, "0+4n 5+2q! 7+4ng", "QUANTIZE with row scales is in a group");
    test_change(activate_gate, "0+4n 4+2a 7+3n",
                "gates after linears with an activation are in no group");
    test_change(attend_to_memory, "0+4n 7+4ng", "cross-attention is in no group");
    test_change(attend_elsewhere, "0+4n 7+4ng",
                "attention to keys other than the stored ones is in no group");
    test_change(part_after_values, "2+2 4+2a 7+4ng",
                "no group has linears of both the encoder and the decoder");
    test_change(part_inside_others, "0+4n 7+4ng",
                "no group has a store of the encoder and attention of the decoder");
    test_change(part_before_gate, "0+4n 4+2a 7+3n",
                "no group has linears of the encoder and a gate of the decoder");
    test_change(
        differ_in_shape, "0+4n 4+2a 7+4ng!",
        "linears of any number of rows are grouped and a weight is contiguous in one group");
    test_change(share_a_weight, "0+4n! 4+2a 7+4ng",
                "a group with a weight used twice is not contiguous");
    test_change(share_with_another_group, "0+4n 4+2a 7+4ng!",
                "a shared weight is contiguous in the first group that reads it");
}

static void test_copy(void)
{
    ft_error err;
    ft_plan plan = layer(), copy;
    find_groups(&plan);
    if (ft_plan_copy(&copy, &plan, &err) != FT_OK)
        bail_out("%s", err.text);
    ok(copy.group != plan.group && copy.ngroup == plan.ngroup &&
           memcmp(copy.group, plan.group, (size_t) plan.ngroup * sizeof *plan.group) == 0,
       "a copy of a plan has its own groups");
    ft_plan_fini(&copy);
    ft_plan_fini(&plan);
}

/* ---- Weights ------------------------------------------------------------------------------ */

static void test_weights(void)
{
    static const int own[] = { 0, 1, 2, 3, 4, 5, 6 };
    static const int grouped[] = { W_QUERIES, W_KEYS, W_VALUES, W_OUT, W_GATE, W_UP, W_DOWN };
    ft_plan plan = layer();
    find_groups(&plan);
    int *order = ft_group_weight_order(&plan, WEIGHTS);
    int *none = ft_group_weight_order(NULL, WEIGHTS);
    ok(order != NULL && memcmp(order, grouped, sizeof grouped) == 0,
       "the upload stores the weights of a group contiguously in the order of the group");
    ok(none != NULL && memcmp(none, own, sizeof own) == 0,
       "the upload without groups stores weights in the order of the model");
    free(order);
    free(none);
    ft_plan_fini(&plan);
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

/* Pairs of values of one group, states aside, that overlap. */
static int has_pdl(const ft_plan *plan, const ft_fusion_group *groups, int ngroup)
{
    int faults = 0;
    for (int g = 0; g < ngroup; g++) {
        bool touched[64] = { false };
        for (int i = groups[g].first; i < groups[g].first + groups[g].count; i++)
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
    find_groups(&plan);
    size_t apart = lay_out(&plan);
    is_int(has_pdl(&plan, plan.group, plan.ngroup), 0,
           "the values of a fusion group share no memory with each other");
    int ngroup = plan.ngroup;
    plan.ngroup = 0;
    size_t alone = lay_out(&plan);
    ok(has_pdl(&plan, plan.group, ngroup) > 0,
       "without groups the values of neighbouring operations share memory");
    ok(alone < apart, "a plan without groups needs less memory");
    ft_plan_fini(&plan);
}

/* The kernels of a gate with its linear run one after the other. */
static void test_memory_of_down(void)
{
    ft_plan plan = layer();
    quantize_rows(&plan);
    find_groups(&plan);
    (void) lay_out(&plan);
    ft_fusion_group linears = plan.group[2];
    ok(linears.down, "the last group has a gate and its linear");
    linears.count -= 2;
    is_int(has_pdl(&plan, &linears, 1), 0,
           "the values of a norm and its linears share no memory with each other");
    ok(has_pdl(&plan, &plan.group[2], 1) > 0,
       "the linear of a gate may write where its group's norm has read");
    ft_plan_fini(&plan);
}

/* Results at equal distances are what a strided batch of GEMMs asks for. */
static void test_stride(void)
{
    ft_plan plan = layer();
    find_groups(&plan);
    (void) lay_out(&plan);
    size_t q = plan.value[plan.op[Q].out].offset, k = plan.value[plan.op[K].out].offset;
    size_t v = plan.value[plan.op[V].out].offset, stride = k > q && v - k == k - q ? k - q : 0;
    is_int((long long) plan.group[0].result_stride, (long long) stride,
           "the layout gives the stride between the results of grouped linears");
    size_t gate = plan.value[plan.op[GATE_W].out].offset, up = plan.value[plan.op[UP_W].out].offset;
    is_int((long long) plan.group[2].result_stride, (long long) (up > gate ? up - gate : 0),
           "two results after a norm have a stride");
    is_int((long long) plan.group[1].result_stride, 0, "a group without linears has no stride");
    plan.op[K].out = -1;
    (void) lay_out(&plan);
    is_int((long long) plan.group[0].result_stride, 0,
           "a group with a linear without float result has no stride");
    ft_plan_fini(&plan);
}

/* ---- Text --------------------------------------------------------------------------------- */

static void test_text(void)
{
    ft_plan plan = layer();
    find_groups(&plan);
    char *text = plan_text(&plan);
    const char *groups = strstr(text, "      group"), *outputs = strstr(text, "      output");
    char found[512] = "";
    if (groups != NULL && outputs > groups)
        snprintf(found, sizeof found, "%.*s", (int) (outputs - groups), groups);
    is_str(found,
           "      group            0..3 = residual + norm + linear x 3, weights contiguous\n"
           "      group            4..5 = store_kv + attend_kv\n"
           "      group            7..10 = residual + norm + linear x 2 + gate, weights contiguous\n",
           "ft_plan_write() lists the groups after the operations");
    free(text);
    ft_plan_fini(&plan);
}

int main(void)
{
    test_layer();
    test_changes();
    test_copy();
    test_weights();
    test_memory();
    test_memory_of_down();
    test_stride();
    test_text();
    return done_testing();
}
