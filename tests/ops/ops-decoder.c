/*
 * ops-decoder.c - record_tokens and sample.
 *
 * sample-t.c tests how a token is sampled; this test, that each row uses its own sampling options,
 * history and slot.  The whole state is compared, so that a value written to another slot is found.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/ops-kv_cache.h"

#include "kernels/sampling.h"
#include "runtime/mem.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 9, WORDS = 97, OLD = 0x7777 };

/* The state of all slots. */
typedef struct memory {
    int32_t last[SLOTS], history[SLOTS * CONTEXT];
    uint32_t seen[SLOTS * WORDS];
} memory;

/* As if other sequences had used the slots before. */
static void fill_memory(memory *m, rng *r)
{
    for (size_t i = 0; i < FT_COUNT(m->last); i++)
        m->last[i] = OLD;
    for (size_t i = 0; i < FT_COUNT(m->history); i++)
        m->history[i] = OLD;
    for (size_t i = 0; i < FT_COUNT(m->seen); i++)
        m->seen[i] = rng_below(r, 4) << 30 | rng_below(r, 3);
}

static void add_memory(oneop *t, const memory *before, memory *after)
{
    t->limits =
        (ft_limits){ .tokens = SLOTS, .sequences = SLOTS, .context = CONTEXT, .pages = PAGES };
    oneop_state(t, FT_STATE_HISTORY, FT_SLOT_POSITIONS, 1, FT_I32, before->history);
    oneop_state(t, FT_STATE_TOKEN_COUNTS, FT_SLOTS, WORDS, FT_I32, before->seen);
    t->after[FT_STATE_HISTORY] = after->history;
    t->after[FT_STATE_TOKEN_COUNTS] = after->seen;
}

/* ---- Record tokens ------------------------------------------------------------------------ */

static const int32_t num_slots[SEQUENCES] = { 4, 0, 7, 2 };

static memory run_record_tokens(bench *on, const ft_batch *batch, const int32_t *ids,
                                const memory *before)
{
    memory after = *before;
    oneop t;
    oneop_begin(&t, on, FT_OP_RECORD_TOKENS, batch);
    oneop_in(&t, 0, FT_TOKENS, 1, FT_I32, 0.0f, ids);
    add_memory(&t, before, &after);
    oneop_run(&t, NULL, NULL);
    oneop_end(&t);
    return after;
}

/* A negative id is no token, but at position 0 it starts a sequence as other ids do. */
static memory noted(const world *w, const int32_t *ids, const memory *before)
{
    memory m = *before;
    for (size_t row = 0; row < ROWS; row++) {
        size_t slot = (size_t) num_slots[w->seq_id[row]], position = world_position(w, row);
        for (size_t id = 0; id < WORDS && position == 0; id++)
            m.seen[slot * WORDS + id] = 0;
        if (ids[row] < 0)
            continue;
        m.history[slot * CONTEXT + position] = ids[row];
        m.seen[slot * WORDS + (size_t) ids[row]] |= FT_TOKEN_IN_PROMPT;
    }
    return m;
}

/* New sequences, one with a first token and one without, and sequences that continue. */
static void record_prompts(bench *on, rng *r, bool first_is_token)
{
    world w;
    memory before;
    int32_t ids[ROWS];
    const ft_sampling_params sampling[SEQUENCES] = {
        { .slot = 4 }, { .slot = 0 }, { .slot = 7 }, { 0 }
    };
    const int32_t select[SEQUENCES] = { 2, 3, 56, 73 };
    const char *how = first_is_token ? "" : " where the first id is negative";
    world_init(&w, &(variant){ .kv_heads = 1 });
    w.batch.slot = num_slots;
    w.batch.selected = SEQUENCES;
    w.batch.selected_rows = select;
    w.batch.sampling = sampling;
    fill_memory(&before, r);
    for (int32_t i = 0; i < ROWS; i++)
        ids[i] = i % 11 == 5 ? -1 - num_slots[w.seq_id[i]] : (int32_t) rng_below(r, WORDS);
    if (!first_is_token)
        ids[0] = -1;
    memory found = run_record_tokens(on, &w.batch, ids, &before),
           expected = noted(&w, ids, &before);
    ok(memcmp(found.history, expected.history, sizeof found.history) == 0,
       "%s: record_tokens appends tokens to the histories of their slots%s", on->name, how);
    ok(memcmp(found.seen, expected.seen, sizeof found.seen) == 0,
       "%s: record_tokens marks prompt tokens as seen and clears the counts of new sequences%s",
       on->name, how);
    w.batch.sampling = NULL; /* as for all chunks of a prompt but the last */
    found = run_record_tokens(on, &w.batch, ids, &before);
    ok(memcmp(&found, &expected, sizeof found) == 0,
       "%s: record_tokens does the same in a batch that samples nothing%s", on->name, how);
}

/* A decode step reads what SAMPLE recorded; an n_past of 0 does not clear the slot there. */
static void record_step(bench *on, rng *r)
{
    world w;
    memory before;
    static const int32_t start[SEQUENCES + 1] = { 0, 1, 2, 3, 4 };
    const int32_t ids[SEQUENCES] = { 5, 96, 0, 17 }, rows[SEQUENCES] = { 0, 1, 2, 3 };
    const ft_sampling_params sampling[SEQUENCES] = {
        { .slot = 4 }, { .slot = 0 }, { .slot = 7 }, { 0 }
    };
    world_init(&w, &(variant){ .kv_heads = 1 });
    w.batch.tokens = w.batch.selected = SEQUENCES;
    w.batch.longest = 1;
    w.batch.start = start;
    w.batch.seq_id = w.batch.selected_rows = rows;
    w.batch.slot = num_slots;
    w.batch.sampling = sampling;
    w.batch.decode_step = true;
    fill_memory(&before, r);
    memory found = run_record_tokens(on, &w.batch, ids, &before);
    ok(memcmp(&found, &before, sizeof found) == 0,
       "%s: record_tokens changes nothing in a decode step", on->name);
}

void test_record_tokens(bench *on)
{
    rng r = { 71 };
    record_prompts(on, &r, true);
    record_prompts(on, &r, false);
    record_step(on, &r);
}

/* ---- Sample ------------------------------------------------------------------------------- */

/* All rows have the same two likeliest tokens: the row's sampling options decide between them. */
enum { CHOICES = 8, FIRST = 61, SECOND = 8, NONE = FT_NO_TOKEN };

typedef struct turn {
    const char *what;
    int32_t token; /* the expected token */
    ft_sampling_params sampling;
} turn;

static const turn turns[CHOICES] = {
    { "the likeliest token", FIRST, { .slot = 4, .n_tokens = 9 } },
    { "no token from a row with a NaN", NONE, { .slot = 0, .n_tokens = 9 } },
    { "no banned token", SECOND, { .slot = 7, .n_tokens = 9, .n_banned = 1 } },
    { "a token that its slot has not seen, with a repetition penalty",
      SECOND,
      { .slot = 2, .n_tokens = 9, .repetition_penalty = 1.5f } },
    { "a token that only another slot has seen, with a repetition penalty",
      FIRST,
      { .slot = 8, .n_tokens = 9, .repetition_penalty = 1.5f } },
    { "no token that repeats an n-gram of its slot",
      SECOND,
      { .slot = 3, .n_tokens = 9, .no_repeat_ngram = 2 } },
    { "a token that repeats an n-gram of another slot",
      FIRST,
      { .slot = 1, .n_tokens = 9, .no_repeat_ngram = 2 } },
    { "a token for a slot whose history is full", FIRST, { .slot = 6, .n_tokens = CONTEXT } },
};

typedef struct choosing {
    float logits[CHOICES * WORDS], logprob[CHOICES];
    int32_t token[CHOICES];
    ft_sampling_params sampling[CHOICES];
    memory before, after;
} choosing;

/* Where FIRST is not expected, its slot has seen it, so that the row's option excludes it. */
static void fill_choosing(choosing *c)
{
    rng r = { 72 };
    memset(c, 0, sizeof *c);
    fill_memory(&c->before, &r);
    rng_floats(&r, c->logits, FT_COUNT(c->logits), 1.0); /* within 6 */
    for (size_t row = 0; row < CHOICES; row++) {
        size_t slot = (size_t) turns[row].sampling.slot;
        uint32_t *seen = &c->before.seen[slot * WORDS];
        int32_t *history = &c->before.history[slot * CONTEXT];
        c->logits[row * WORDS + FIRST] = 10.0f;
        c->logits[row * WORDS + SECOND] = 9.0f; /* 10 / 1.5 is less */
        memset(seen, 0, WORDS * sizeof *seen);
        for (int32_t i = 0; i < 9; i++)
            history[i] = 20 + i;
        if (turns[row].token != FIRST) {
            seen[FIRST] = 1;
            history[3] = history[8]; /* FIRST followed it, and would again */
            history[4] = FIRST;
        }
        c->sampling[row] = turns[row].sampling;
        c->sampling[row].banned[0] = FIRST;
    }
    c->logits[1 * WORDS + 50] = (float) NAN;
}

static void run_sample(bench *on, choosing *c, const ft_sampling_params *sampling)
{
    static const int32_t select[CHOICES] = { 0, 2, 3, 9, 40, 56, 57, 73 };
    world w;
    oneop t;
    world_init(&w, &(variant){ .kv_heads = 1 });
    w.batch.slot = num_slots;
    w.batch.selected = CHOICES;
    w.batch.selected_rows = select;
    w.batch.sampling = sampling;
    oneop_begin(&t, on, FT_OP_SAMPLE, &w.batch);
    oneop_in(&t, 0, FT_SELECTED, WORDS, FT_F32, 0.0f, c->logits);
    oneop_out_as(&t, FT_SELECTED, 1, FT_I32);
    oneop_second(&t, FT_SELECTED, 1, FT_F32);
    add_memory(&t, &c->before, &c->after);
    oneop_state(&t, FT_STATE_LAST_TOKEN, FT_SLOTS, 1, FT_I32, c->before.last);
    t.after[FT_STATE_LAST_TOKEN] = c->after.last;
    if (sampling != NULL)
        t.second = c->logprob;
    oneop_run(&t, sampling != NULL ? c->token : NULL, NULL);
    oneop_end(&t);
}

static double log_softmax(const float *logits, int32_t at)
{
    double sum = 0.0;
    for (size_t i = 0; i < WORDS; i++)
        sum += exp((double) logits[i]);
    return (double) logits[at] - log(sum);
}

/* A row that samples nothing has no log-probability, and the next step reads token 0. */
static void check_row(const bench *on, const choosing *c, size_t row, memory *expected)
{
    const turn *given = &turns[row];
    size_t slot = (size_t) given->sampling.slot, known = (size_t) given->sampling.n_tokens;
    int32_t token = given->token;
    is_int(c->token[row], token, "%s: sample chooses %s", on->name, given->what);
    expected->last[slot] = token < 0 ? 0 : token;
    if (token < 0) {
        ok(isnan(c->logprob[row]), "%s: sample gives a row without a token a NaN log-probability",
           on->name);
        return;
    }
    /* Float roundings of the argument and of the result of the exponential: see sample-t.c. */
    near((double) c->logprob[row], log_softmax(c->logits + row * WORDS, token), 2e-6,
         "%s: sample computes the log-probability from the raw logits", on->name);
    expected->seen[slot * WORDS + (size_t) token]++;
    if (known < CONTEXT)
        expected->history[slot * CONTEXT + known] = token;
}

void test_sample(bench *on)
{
    choosing c;
    fill_choosing(&c);
    memory expected = c.before;
    run_sample(on, &c, c.sampling);
    for (size_t row = 0; row < CHOICES; row++)
        check_row(on, &c, row, &expected);
    ok(memcmp(c.after.last, expected.last, sizeof expected.last) == 0,
       "%s: sample records the last token of each slot", on->name);
    ok(memcmp(c.after.history, expected.history, sizeof expected.history) == 0,
       "%s: sample appends tokens to the histories of their slots", on->name);
    ok(memcmp(c.after.seen, expected.seen, sizeof expected.seen) == 0,
       "%s: sample counts the tokens of each slot", on->name);
    run_sample(on, &c, NULL);
    ok(memcmp(&c.after, &c.before, sizeof c.after) == 0,
       "%s: sample changes nothing in a batch that samples nothing", on->name);
}
