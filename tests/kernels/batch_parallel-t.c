/*
 * batch_parallel-t.c - batches split into shards: every row, sequence and beam search is in exactly
 * one shard, in the same order and with the same inputs, and shards do not share values.
 *
 * The tests of beam search check that the results are the same, bit for bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/beam_search.h"
#include "kernels/cpu/batch_parallel.h"
#include "runtime/graph/plan.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <string.h>

enum { SEQUENCES = 96, TOKENS = 400, MAX_SIZE = 3, CONTEXT = 64, ROUNDS = 3000 };

static const ft_limits limits = { .tokens = TOKENS,
                                  .sequences = SEQUENCES,
                                  .threads = 3,
                                  .selected = TOKENS,
                                  .context = CONTEXT,
                                  .pages = 8 };

/* ---- A plan ------------------------------------------------------------------------------- */

static ft_weight small = { "w", 8, 32, FT_I8, FT_COL4_4R2_8C, .scale = NULL };

static int add_value(ft_plan *plan, const char *name, ft_value value)
{
    snprintf(value.name, sizeof value.name, "%s", name);
    return ft_plan_add_value(plan, &value);
}

static void add_op(ft_plan *plan, ft_op_kind kind, int in, int out, int weight)
{
    ft_op op = ft_op_init(kind);
    op.in[0] = (int16_t) in;
    op.out = (int16_t) out;
    op.weight[0] = (int16_t) weight;
    (void) ft_plan_add_op(plan, &op);
}

/* An input, temporary values between states, a kept value, an output and a result. */
static ft_plan make_plan(void)
{
    ft_error err;
    ft_plan plan = { .weight = &small, .nweight = 1, .batch_invariant = true };
    int x = add_value(
        &plan, "x",
        (ft_value){ .rows = FT_TOKENS, .cols = 1, .dtype = FT_I32, .input = FT_BATCH_IDS });
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "state%d", i);
        add_value(&plan, name,
                  (ft_value){ .rows = FT_KV_CACHE, .cols = 5 + i, .dtype = FT_F16, .state = true });
        snprintf(name, sizeof name, "v%d", i);
        int y = add_value(&plan, name,
                          (ft_value){ .rows = i % 2 == 0 ? FT_TOKENS : FT_SELECTED,
                                      .cols = 8 + 8 * i,
                                      .dtype = FT_I8,
                                      .dynamic = i % 3 == 0,
                                      .keep = i == 3 });
        add_op(&plan, FT_OP_LINEAR, x, y, 0);
        x = y;
    }
    plan.output[plan.noutput++] = (ft_output){ .name = "y", .value = x };
    plan.op[plan.nop - 1].second = (int16_t) add_value(
        &plan, "unread", (ft_value){ .rows = FT_SELECTED, .cols = 1, .dtype = FT_F32 });
    if (ft_plan_layout(&plan, &limits, &err) != FT_OK)
        bail_out("%s", err.text);
    return plan;
}

static ft_batch_shards *open_shares(const ft_plan *plan, const ft_limits *within)
{
    ft_error err;
    ft_batch_shards *shares;
    if (ft_batch_shards_open(&shares, plan, within, &err) != FT_OK)
        bail_out("%s", err.text);
    return shares;
}

/* ---- Cost model ---------------------------------------------------------------------------- */

static bool opens(const ft_plan *plan, const ft_limits *within)
{
    ft_batch_shards *shares = open_shares(plan, within);
    bool opened = shares != NULL;
    ft_batch_shards_close(shares);
    return opened;
}

static void test_opening(ft_plan *plan)
{
    ft_limits one = limits;
    one.threads = 1;
    ok(opens(plan, &limits),
       "small GEMMs of independent texts run batch-parallel on several threads");
    ok(!opens(plan, &one), "one thread does not run a batch in parallel");
    plan->value[0].input = FT_BATCH_NONE;
    ok(!opens(plan, &limits), "a plan with an input outside the batch does not run batch-parallel");
    plan->value[0].input = FT_BATCH_IDS;
    plan->batch_invariant = false;
    ok(!opens(plan, &limits),
       "an operation whose rows depend on each other does not run batch-parallel");
    plan->batch_invariant = true;
    small.rows = 1024; /* 6 GEMMs of 32 KiB, where 6 barriers cost as much as 192 KiB */
    ok(opens(plan, &limits), "a plan runs batch-parallel while its weights are no more bytes than "
                             "the saved barriers are worth");
    small.rows = 1025;
    ok(!opens(plan, &limits), "a plan with one more byte of weights does not run batch-parallel");
    small.rows = 8;
}

/* ---- Memory -------------------------------------------------------------------------------- */

static size_t bytes_of(const ft_value *v)
{
    size_t rows = ft_limits_rows(&limits, v->rows);
    return v->dynamic ? ft_row_scales_offset(v, &limits) + rows * sizeof(float)
                      : rows * (size_t) v->cols * ft_dtype_size(v->dtype);
}

/* Operation i of the plan reads value v(i-1) and writes v(i): these two are live at once. */
static void test_layout(const ft_plan *plan)
{
    ft_batch_shards *shares = open_shares(plan, &limits);
    const ft_batch_shard *first = ft_batch_shards_get(shares, 0),
                         *second = ft_batch_shards_get(shares, 1);
    size_t room = (size_t) (second->arena - first->arena);
    int common = 0, inside = 0, apart = 0;
    for (int i = 0; i < plan->nvalue; i++)
        common += ft_batch_shards_offset(shares, i) == SIZE_MAX;
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        int v = ft_plan_find(plan, name);
        size_t begin = ft_batch_shards_offset(shares, v);
        if (begin == SIZE_MAX)
            continue;
        size_t end = begin + bytes_of(&plan->value[v]);
        inside += end <= room && begin % 64 == 0;
        snprintf(name, sizeof name, "v%d", i - 1);
        int before = i == 0 ? -1 : ft_plan_find(plan, name);
        size_t other = before < 0 ? SIZE_MAX : ft_batch_shards_offset(shares, before);
        apart +=
            other == SIZE_MAX || end <= other || other + bytes_of(&plan->value[before]) <= begin;
    }
    is_int(common, 6 + 4,
           "inputs, states, kept values, the output and unread values are shared by all threads");
    is_int(inside, 4, "every other value is in each thread's arena");
    is_int(apart, 4, "no value of a thread's arena overlaps the value that it is computed from");
    ok(room < plan->arena, "a thread's arena is smaller than the arena of the whole batch");
    ft_batch_shards_close(shares);
}

/* ---- Splitting ----------------------------------------------------------------------------- */

static struct {
    int32_t ids[TOKENS], start[SEQUENCES + 1], seq_id[TOKENS], n_past[SEQUENCES],
        n_tokens[SEQUENCES], slot[SEQUENCES];
    int32_t pages[SEQUENCES * MAX_SIZE], cross_kv[SEQUENCES], cross_kv_pages[SEQUENCES * MAX_SIZE];
    int32_t selected_rows[TOKENS];
    ft_sampling_params sampling[TOKENS];
    ft_beam_params beams[SEQUENCES];
} of;

static void fill(int32_t *numbers, size_t n, rng *chance)
{
    for (size_t i = 0; i < n; i++)
        numbers[i] = (int32_t) rng_below(chance, 1000);
}

/* Texts without beams and of any length, or with several beams of one row each. */
static ft_batch draw_batch(rng *chance)
{
    bool step = rng_below(chance, 2) == 0;
    size_t beam_width = step ? 1 + rng_below(chance, 6) : 1;
    size_t texts = rng_below(chance, (uint32_t) (SEQUENCES / beam_width) + 1);
    ft_batch b = { .sequences = texts * beam_width,
                   .beam_width = beam_width,
                   .decode_step = step,
                   .start = of.start };
    b.input[FT_BATCH_IDS] = of.ids;
    b.seq_id = of.seq_id, b.n_past = of.n_past, b.n_tokens = of.n_tokens, b.slot = of.slot;
    b.pages = of.pages, b.cross_kv = of.cross_kv, b.cross_kv_pages = of.cross_kv_pages;
    b.max_pages = b.max_cross_kv_pages = MAX_SIZE;
    b.selected_rows = of.selected_rows, b.sampling = of.sampling, b.beams = of.beams;
    fill(of.ids, TOKENS, chance);
    fill(of.n_past, SEQUENCES, chance);
    fill(of.n_tokens, SEQUENCES, chance);
    fill(of.slot, SEQUENCES, chance);
    fill(of.pages, SEQUENCES * MAX_SIZE, chance);
    fill(of.cross_kv, SEQUENCES, chance);
    fill(of.cross_kv_pages, SEQUENCES * MAX_SIZE, chance);
    for (size_t i = 0; i < b.sequences; i++) {
        size_t length = step ? 1 : 1 + rng_below(chance, 4);
        of.start[i] = (int32_t) b.tokens;
        b.longest = b.longest < length ? length : b.longest;
        while (length-- > 0)
            of.seq_id[b.tokens++] = (int32_t) i;
        if (i % beam_width == 0 && (step || rng_below(chance, 3) > 0))
            of.beams[b.groups++] =
                (ft_beam_params){ .slot = (int32_t) i, .row = (int32_t) b.selected };
        else if (!step)
            continue;
        of.selected_rows[b.selected++] = (int32_t) b.tokens - 1;
    }
    of.start[b.sequences] = (int32_t) b.tokens;
    return b;
}

/* The number of elements of a shard that differ from the batch's. */
static int count_wrong(const ft_batch_shard *share, const ft_batch *run, size_t groups)
{
    const ft_batch *b = &share->batch;
    size_t row = share->first[FT_TOKENS], first = share->first[FT_SEQUENCES];
    size_t chosen = share->first[FT_SELECTED], longest = 0;
    int wrong = 0;
    for (size_t i = 0; i < b->sequences; i++) {
        size_t length = (size_t) (b->start[i + 1] - b->start[i]);
        longest = longest < length ? length : longest;
        wrong += b->start[i] + (int32_t) row != run->start[first + i];
        wrong +=
            b->n_past[i] != run->n_past[first + i] || b->n_tokens[i] != run->n_tokens[first + i];
        wrong += b->slot[i] != run->slot[first + i] || b->cross_kv[i] != run->cross_kv[first + i];
        for (size_t k = 0; k < MAX_SIZE; k++) {
            wrong += b->pages[i * MAX_SIZE + k] != run->pages[(first + i) * MAX_SIZE + k];
            wrong += b->cross_kv_pages[i * MAX_SIZE + k] !=
                     run->cross_kv_pages[(first + i) * MAX_SIZE + k];
        }
    }
    for (size_t i = 0; i < b->tokens; i++)
        wrong += b->seq_id[i] + (int32_t) first != run->seq_id[row + i] ||
                 b->input[FT_BATCH_IDS][i] != run->input[FT_BATCH_IDS][row + i];
    for (size_t i = 0; i < b->selected; i++)
        wrong += b->selected_rows[i] + (int32_t) row != run->selected_rows[chosen + i];
    for (size_t i = 0; i < b->groups; i++) {
        wrong += b->beams[i].row + (int32_t) chosen != run->beams[groups + i].row;
        wrong += b->beams[i].slot != run->beams[groups + i].slot;
    }
    wrong += b->start[b->sequences] != (int32_t) b->tokens || b->longest != longest;
    wrong += (size_t) (b->sampling - run->sampling) != chosen || b->decode_step != run->decode_step;
    return wrong;
}

/* Checks one split: each row is in one shard, beams stay together, and shards are balanced. */
static bool cut_well(ft_batch_shards *shares, const ft_batch *run, size_t count)
{
    size_t tokens = 0, sequences = 0, selected = 0, groups = 0, most = 0;
    int wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const ft_batch_shard *share = ft_batch_shards_get(shares, i);
        wrong += share->first[FT_TOKENS] != tokens || share->first[FT_SEQUENCES] != sequences;
        wrong += share->first[FT_SELECTED] != selected;
        wrong += share->batch.tokens == 0 || share->batch.sequences % run->beam_width != 0;
        wrong += count_wrong(share, run, groups);
        tokens += share->batch.tokens;
        sequences += share->batch.sequences;
        selected += share->batch.selected;
        groups += share->batch.groups;
        most = share->batch.tokens > most ? share->batch.tokens : most;
    }
    size_t even = run->tokens / (size_t) limits.threads, text = run->beam_width * run->longest;
    return wrong == 0 && tokens == run->tokens && sequences == run->sequences &&
           selected == run->selected && groups == run->groups && most <= even + 2 * text;
}

static void test_cutting(const ft_plan *plan)
{
    ft_batch_shards *shares = open_shares(plan, &limits);
    rng chance = { 11 };
    int few = 0, whole = 0, cut = 0, well = 0;
    for (int i = 0; i < ROUNDS; i++) {
        ft_batch run = draw_batch(&chance);
        bool enough = run.sequences / run.beam_width >= 4 * (size_t) limits.threads;
        size_t count = ft_batch_shards_split(shares, &run);
        few += !enough;
        whole += !enough && count == 0;
        cut += enough && count == (size_t) limits.threads;
        well += enough && cut_well(shares, &run, count);
    }
    ok(few > 100 && ROUNDS - few > 100, "%d of %d batches have fewer texts than threads", few,
       ROUNDS);
    is_int(whole, few, "batches with fewer texts than threads are not split");
    is_int(cut, ROUNDS - few, "all other batches are split over the threads");
    is_int(well, ROUNDS - few, "each thread's batch holds all rows of its own texts and no others");
    ft_batch_shards_close(shares);
}

int main(void)
{
    ft_plan plan = make_plan();
    test_opening(&plan);
    test_layout(&plan);
    test_cutting(&plan);
    ft_plan_fini(&plan);
    return done_testing();
}
