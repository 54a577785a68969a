/*
 * plan-t.c - the plan data structure: searching, copying, memory layout, text.
 *
 * The layout is checked by simulating a plan on a map of which value every 64 bytes hold: a value
 * that is read must still be there, independently of the lifetimes that the layout computes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "runtime/tensor.h"
#include "tests/lib/random.h"
#include "tests/lib/text.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

enum { UNIT = 64 };

static int add_value(ft_plan *plan, const char *name, ft_rows rows, int32_t cols, ft_dtype dtype)
{
    ft_value value = { .rows = rows, .cols = cols, .dtype = dtype };
    snprintf(value.name, sizeof value.name, "%s", name);
    int index = ft_plan_add_value(plan, &value);
    if (index < 0)
        bail_out("no memory for a value");
    return index;
}

/* The pointer is valid until the next operation is added. */
static ft_op *add_op(ft_plan *plan, ft_op_kind kind, int in, int other, int out)
{
    ft_op op = ft_op_init(kind);
    op.in[0] = (int16_t) in;
    op.in[1] = (int16_t) other;
    op.out = (int16_t) out;
    int index = ft_plan_add_op(plan, &op);
    if (index < 0)
        bail_out("no memory for an operation");
    return &plan->op[index];
}

static void must(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        bail_out("%s", err->text);
}

/* x -> a -> b -> ... : `length` activations of 64 x `cols` floats. */
static ft_plan chain(int length, int32_t cols)
{
    ft_plan plan = { 0 };
    int last = add_value(&plan, "x", FT_TOKENS, cols, FT_F32);
    for (int i = 0; i < length; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        int next = add_value(&plan, name, FT_TOKENS, cols, FT_F32);
        add_op(&plan, FT_OP_ACTIVATE, last, -1, next);
        last = next;
    }
    plan.output[plan.noutput++] = (ft_output){ .name = "y", .value = last };
    return plan;
}

/* ---- Searching and copying ---------------------------------------------------------------- */

static void test_search(void)
{
    ft_plan plan = chain(100, 4);
    is_int(plan.nvalue, 101, "the arrays of a plan grow as values are added");
    is_int(ft_plan_find(&plan, "v41"), 42, "ft_plan_find() finds a value by its name");
    is_int(ft_plan_find(&plan, "v"), -1, "ft_plan_find() does not match a prefix of a name");
    is_int(ft_plan_producer(&plan, 42), 41,
           "ft_plan_producer() returns the operation that writes a value");
    is_int(ft_plan_producer(&plan, 0), -1, "ft_plan_producer() returns -1 for an input");
    is_int(ft_plan_uses(&plan, 42), 1, "ft_plan_uses() counts the operation that reads a value");
    plan.op[77].in[1] = 42;
    is_int(ft_plan_uses(&plan, 42), 2, "ft_plan_uses() counts every operand");
    is_int(ft_plan_uses(&plan, 100), 1, "ft_plan_uses() counts an output");

    ft_plan copy;
    ft_error err;
    must(ft_plan_copy(&copy, &plan, &err), &err);
    ok(copy.nvalue == plan.nvalue && copy.nop == plan.nop && copy.noutput == 1 &&
           memcmp(copy.value, plan.value, (size_t) plan.nvalue * sizeof *plan.value) == 0 &&
           memcmp(copy.op, plan.op, (size_t) plan.nop * sizeof *plan.op) == 0,
       "ft_plan_copy() makes an equal plan");
    copy.value[0].name[0] = 'z';
    copy.op[0].out = 9;
    ok(plan.value[0].name[0] == 'x' && plan.op[0].out == 1,
       "a copy of a plan shares no memory with the original");
    ft_plan_fini(&copy);
    ft_plan_fini(&plan);
    ok(plan.value == NULL && plan.nop == 0, "ft_plan_fini() leaves an empty plan");
}

static void test_full(void)
{
    ft_plan plan = { 0 };
    ft_value value = { .name = "v" };
    ft_op op = ft_op_init(FT_OP_ADD);
    while (ft_plan_add_value(&plan, &value) >= 0)
        continue;
    while (ft_plan_add_op(&plan, &op) >= 0)
        continue;
    is_int(plan.nvalue, INT16_MAX, "a plan holds as many values as an int16_t can index");
    is_int(plan.nop, INT16_MAX, "a plan holds as many operations as an int16_t can index");
    ft_plan_fini(&plan);
}

/* ---- Memory ------------------------------------------------------------------------------- */

static void test_reuse(void)
{
    ft_error err;
    ft_plan plan = chain(10, 32);
    must(ft_plan_layout(&plan, &(ft_limits){ .tokens = 64, .sequences = 1 }, &err), &err);
    is_int((long long) plan.arena, 2 * 64 * 32 * 4,
           "a chain of operations needs the memory of two values");
    plan.value[3].keep = true;
    must(ft_plan_layout(&plan, &(ft_limits){ .tokens = 64, .sequences = 1 }, &err), &err);
    is_int((long long) plan.arena, 3 * 64 * 32 * 4, "a kept value needs its own memory");
    plan.value[5].dtype = FT_I8;
    plan.value[5].cols = 33;
    must(ft_plan_layout(&plan, &(ft_limits){ .tokens = 1, .sequences = 1 }, &err), &err);
    is_int((long long) plan.arena, 3 * 128, "value sizes are rounded up to 64 bytes");
    ft_plan_fini(&plan);
}

static void test_rows(void)
{
    ft_error err;
    ft_plan plan = { 0 };
    int x = add_value(&plan, "x", FT_TOKENS, 16, FT_F32);
    int y = add_value(&plan, "y", FT_SEQUENCES, 16, FT_F32);
    int inner = add_value(&plan, "inner", FT_TOKENS, 1 << 20, FT_F32);
    int unused = add_value(&plan, "unused", FT_TOKENS, 1 << 20, FT_F32);
    plan.value[inner].inner = true;
    add_op(&plan, FT_OP_POOL, x, -1, y)->inner = (int16_t) inner;
    plan.output[plan.noutput++] = (ft_output){ .name = "y", .value = y };
    must(ft_plan_layout(&plan, &(ft_limits){ .tokens = 100, .sequences = 3 }, &err), &err);
    is_int((long long) plan.arena, 103 * 64, "values have one row per token or per sequence");
    ok(plan.value[inner].offset == 0 && plan.value[unused].offset == 0,
       "inner and unused values have no memory");
    ft_plan_fini(&plan);
}

static void test_limits(void)
{
    ft_error err;
    ft_plan plan = chain(1, INT32_MAX);
    is_int(ft_plan_layout(&plan, &(ft_limits){ .tokens = SIZE_MAX / 8, .sequences = 1 }, &err),
           FT_ELIMIT, "ft_plan_layout() refuses a value that exceeds the address space");
    has(err.text, "x: 2305843009213693951 rows of 2147483647",
        "the error names the value and its shape");
    ft_plan_fini(&plan);

    /* Each of them alone would fit. */
    plan = chain(8, 1);
    for (int i = 0; i < plan.nvalue; i++)
        plan.value[i].keep = true;
    is_int(ft_plan_layout(&plan, &(ft_limits){ .tokens = SIZE_MAX / 17, .sequences = 1 }, &err),
           FT_ELIMIT, "ft_plan_layout() refuses values whose ends overflow size_t");
    has(err.text, "rows of 1 are more than memory can hold",
        "the error states the number of columns and the reason");
    ft_plan_fini(&plan);
}

/* ---- Random plans ------------------------------------------------------------------------- */

/* A plan under construction; `known` are its inputs and the results so far. */
typedef struct maker {
    rng *random;
    ft_plan plan;
    int known[128], count;
} maker;

static int new_value(maker *m, bool known)
{
    static const ft_dtype dtypes[] = { FT_F32, FT_I8, FT_I32 };
    char name[16];
    snprintf(name, sizeof name, "v%d", m->plan.nvalue);
    int index = add_value(&m->plan, name, rng_below(m->random, 4) ? FT_TOKENS : FT_SEQUENCES,
                          1 + (int32_t) rng_below(m->random, 100), dtypes[rng_below(m->random, 3)]);
    if (known) {
        m->known[m->count++] = index;
        m->plan.value[index].keep = rng_below(m->random, 10) == 0;
    }
    return index;
}

static int some_value(const maker *m)
{
    return m->known[rng_below(m->random, (uint32_t) m->count)];
}

static ft_plan random_plan(rng *r)
{
    maker m = { .random = r };
    for (uint32_t inputs = 1 + rng_below(r, 3); inputs > 0; inputs--)
        new_value(&m, true);
    for (uint32_t ops = 1 + rng_below(r, 40); ops > 0; ops--) {
        ft_op op = ft_op_init(FT_OP_NORM);
        for (uint32_t slot = 0, used = 1 + rng_below(r, FT_MAX_IN); slot < used; slot++)
            op.in[slot] = (int16_t) some_value(&m);
        if (rng_below(r, 8) == 0)
            new_value(&m, false); /* an unused value, as fusing leaves behind */
        if (rng_below(r, 4) == 0)
            op.quantized = (int16_t) new_value(&m, true);
        if (op.quantized < 0 || rng_below(r, 2) == 0)
            op.out = (int16_t) new_value(&m, true);
        if (ft_plan_add_op(&m.plan, &op) < 0)
            bail_out("no memory for an operation");
    }
    for (int i = 0; i < 2; i++)
        m.plan.output[m.plan.noutput++].value = some_value(&m);
    return m.plan;
}

/* The value that each 64 bytes of the arena hold. */
typedef struct board {
    const ft_plan *plan;
    size_t tokens, sequences;
    int *seq_id;
    int faults;
} board;

/* Marks the units of a value, or counts those that another value has overwritten. */
static void visit(board *b, int index, bool take)
{
    const ft_value *value = &b->plan->value[index];
    size_t rows = value->rows == FT_TOKENS ? b->tokens : b->sequences;
    size_t bytes = rows * (size_t) value->cols * ft_dtype_size(value->dtype);
    if (value->offset % UNIT != 0 || value->offset + bytes > b->plan->arena) {
        b->faults++;
        return;
    }
    for (size_t at = value->offset / UNIT; at * UNIT < value->offset + bytes; at++) {
        if (take)
            b->seq_id[at] = index;
        b->faults += b->seq_id[at] != index;
    }
}

static void play_op(board *b, const ft_op *op)
{
    if (op->out >= 0)
        visit(b, op->out, true);
    if (op->quantized >= 0)
        visit(b, op->quantized, true);
    /* Operands must be intact, and the result must not overwrite them. */
    for (int slot = 0; slot < FT_MAX_IN; slot++)
        if (op->in[slot] >= 0)
            visit(b, op->in[slot], false);
    if (op->out >= 0)
        visit(b, op->out, false);
}

/* The number of reads that would find another value. */
static int play(const ft_plan *plan, size_t tokens, size_t sequences)
{
    board b = { plan, tokens, sequences, ft_calloc(plan->arena / UNIT, sizeof *b.seq_id), 0 };
    if (b.seq_id == NULL)
        bail_out("no memory for a board");
    for (int i = 0; i < plan->nvalue; i++)
        if (ft_plan_producer(plan, i) < 0 && ft_plan_uses(plan, i) > 0)
            visit(&b, i, true);
    for (int i = 0; i < plan->nop; i++)
        play_op(&b, &plan->op[i]);
    for (int i = 0; i < plan->noutput; i++)
        visit(&b, plan->output[i].value, false);
    for (int i = 0; i < plan->nvalue; i++)
        if (plan->value[i].keep && (ft_plan_producer(plan, i) >= 0 || ft_plan_uses(plan, i) > 0))
            visit(&b, i, false);
    free(b.seq_id);
    return b.faults;
}

static void test_random(void)
{
    enum { PLANS = 2000 };
    rng r = { 7 };
    int faulty = 0, detected = 0;
    for (int i = 0; i < PLANS; i++) {
        ft_error err;
        ft_plan plan = random_plan(&r);
        size_t tokens = 1 + rng_below(&r, 20), sequences = 1 + rng_below(&r, (uint32_t) tokens);
        must(ft_plan_layout(&plan, &(ft_limits){ .tokens = tokens, .sequences = sequences }, &err),
             &err);
        faulty += play(&plan, tokens, sequences) > 0;
        /* With all results at one offset the simulation must find errors. */
        for (int v = 0; v < plan.nvalue; v++)
            plan.value[v].offset = 0;
        detected += play(&plan, tokens, sequences) > 0;
        ft_plan_fini(&plan);
    }
    is_int(faulty, 0, "in %d random plans no value is overwritten before its last use", PLANS);
    is_int(detected, PLANS, "the layout check fails when all values share their memory");
}

/* ---- Text --------------------------------------------------------------------------------- */

static void test_text(void)
{
    static const float scales[3] = { 1, 2, 3 };
    const ft_weight weights[] = {
        { "up.weight", 4, 8, FT_I8, FT_COL4_4R2_8C, scales, { 0 }, NULL, NULL },
        { "up.bias", 1, 4, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    };
    ft_plan plan = { .weight = weights, .nweight = 2 };
    int x = add_value(&plan, "x", FT_TOKENS, 8, FT_I8);
    int y = add_value(&plan, "y", FT_TOKENS, 4, FT_F32);
    int z = add_value(&plan, "z", FT_SEQUENCES, 4, FT_F32);
    plan.value[x].scale = 0.5f;
    plan.value[y].scale = 2.0f;
    ft_op *linear = add_op(&plan, FT_OP_LINEAR, x, -1, -1);
    linear->quantized = (int16_t) y;
    linear->weight[0] = 0;
    linear->weight[1] = 1;
    linear->attr.activation = FT_ACT_GELU;
    add_op(&plan, FT_OP_POOL, y, -1, z)->attr.pooling = FT_POOL_MEAN;
    plan.output[plan.noutput++] = (ft_output){ .name = "embedding", .value = z };
    is_int(ft_plan_find_weight(&plan, "up.bias"), 1,
           "ft_plan_find_weight() finds a weight by its name");
    char *text = plan_text(&plan);
    is_str(
        text,
        "   0  linear           y  T x 4  I8 in F32 amax 254  <- x . up.weight [I8 col4_4r2_8c], "
        "up.bias [F32]  + gelu  + quantize\n"
        "   1  pool             z  S x 4  F32  <- y  mean\n"
        "      output           embedding = z\n",
        "ft_plan_write() prints results, shapes, dtypes, operands and fusions");
    free(text);

    FILE *full = fopen("/dev/full", "w");
    ft_error err;
    if (full == NULL)
        skip(1, "this system has no /dev/full");
    else {
        setvbuf(full, NULL, _IONBF, 0);
        is_int(ft_plan_write(&plan, full, &err), FT_EIO,
               "ft_plan_write() returns FT_EIO when it cannot write");
        fclose(full);
    }
    ft_plan_fini(&plan);
}

int main(void)
{
    test_search();
    test_full();
    test_reuse();
    test_rows();
    test_limits();
    test_random();
    test_text();
    return done_testing();
}
