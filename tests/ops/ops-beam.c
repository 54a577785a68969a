/*
 * ops-beam.c - the operation BEAM_SEARCH: each search uses its own options, rows and slots.
 *
 * beam_search-t.c tests the step itself.  The whole state is compared, so that a value written to
 * the slot of another search is found.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/kernels/beam_search.h"
#include "tests/ops/ops-kv_cache.h"
#include "tests/tap/tap.h"

#include <stdlib.h>

enum { SLOTS = 9, WORDS = 97, TEXTS = 3, SELECTED = 4 };
_Static_assert((int) TEXT == (int) CONTEXT, "the state has the size of a session's");

/* One search begins, one is inactive, one continues. */
static const ft_beam_params texts[TEXTS] = {
    { .slot = 5,
      .row = 3,
      .width = 4,
      .num_beam_groups = 2,
      .diversity_penalty = 0.5f,
      .n_tokens = 2,
      .max_length = 9 },
    { .slot = -1, .width = 3, .num_beam_groups = 1 },
    { .slot = 1,
      .row = 0,
      .width = 3,
      .num_beam_groups = 1,
      .no_repeat_ngram = 1,
      .n_tokens = 4,
      .max_length = 9 },
};

static ft_beam_params complete(const ft_beam_params *text, int32_t prompt)
{
    ft_beam_params rules = *text;
    rules.prompt = prompt;
    rules.forced = -1;
    rules.n_eos = 1;
    rules.eos[0] = 17;
    ft_beam_set_length_divisors(&rules, 1.0);
    return rules;
}

/* A state in which the last search has already taken a step. */
static ft_beam_state begin(rng *r, const float *logits)
{
    ft_beam_state m = memory_new(r, SLOTS, WORDS);
    ft_beam_params before = complete(&texts[2], 3);
    for (size_t i = 0; i < (size_t) SLOTS * TEXT; i++)
        m.history[i] = (int32_t) rng_below(r, WORDS);
    before.n_tokens = 3;
    step_on_cpu(&m, &before, logits);
    return m;
}

static void add_states(oneop *t, const ft_beam_state *before, const ft_beam_state *after)
{
    t->limits =
        (ft_limits){ .tokens = SLOTS, .sequences = SLOTS, .context = CONTEXT, .pages = PAGES };
    oneop_state(t, FT_STATE_LAST_TOKEN, FT_SLOTS, 1, FT_I32, before->last);
    oneop_state(t, FT_STATE_HISTORY, FT_SLOT_POSITIONS, 1, FT_I32, before->history);
    oneop_state(t, FT_STATE_BEAMS, FT_SLOTS, FT_BEAM_WORDS, FT_I32, before->beam);
    oneop_state(t, FT_STATE_FINISHED, FT_SLOT_POSITIONS, 1, FT_I32, before->finished);
    oneop_state(t, FT_STATE_CACHE_INDIRECTION, FT_SLOT_POSITIONS, 1, FT_I32,
                before->cache_indirection);
    t->after[FT_STATE_LAST_TOKEN] = after->last;
    t->after[FT_STATE_HISTORY] = after->history;
    t->after[FT_STATE_BEAMS] = after->beam;
    t->after[FT_STATE_FINISHED] = after->finished;
    t->after[FT_STATE_CACHE_INDIRECTION] = after->cache_indirection;
}

static ft_beam_state run_beam(bench *on, const ft_beam_params *beams, const float *logits,
                              const ft_beam_state *before)
{
    static const int32_t select[SELECTED] = { 0, 2, 3, 9 }, num_slots[SEQUENCES] = { 1, 2, 3, 5 };
    ft_beam_state after = memory_copy(before, SLOTS);
    world w;
    oneop t;
    world_init(&w, &(variant){ .kv_heads = 1 });
    w.batch.slot = num_slots;
    w.batch.selected = SELECTED;
    w.batch.selected_rows = select;
    w.batch.beams = beams;
    w.batch.groups = TEXTS;
    oneop_begin(&t, on, FT_OP_BEAM_SEARCH, &w.batch);
    oneop_in(&t, 0, FT_SELECTED, WORDS, FT_F32, 0.0f, logits);
    add_states(&t, before, &after);
    oneop_run(&t, NULL, NULL);
    oneop_end(&t);
    return after;
}

void test_beam_search(bench *on)
{
    rng r = { 73 };
    float logits[SELECTED * WORDS];
    ft_beam_params beams[TEXTS];
    rng_floats(&r, logits, SELECTED * WORDS, 2.0);
    ft_beam_state before = begin(&r, logits), expected = memory_copy(&before, SLOTS);
    for (int i = 0; i < TEXTS; i++) {
        beams[i] = complete(&texts[i], i == 0 ? 2 : 3);
        if (beams[i].slot >= 0)
            step_on_cpu(&expected, &beams[i], logits + (size_t) beams[i].row * WORDS);
    }
    ft_beam_state after = run_beam(on, beams, logits, &before);
    ok(memory_equals(&after, &expected, SLOTS),
       "%s: beam_search takes one step of each search with its own options and slots", on->name);
    ok(!memory_equals(&after, &before, SLOTS),
       "%s: beam_search changes the state of active searches", on->name);
    memory_free(&after);
    after = run_beam(on, NULL, logits, &before);
    ok(memory_equals(&after, &before, SLOTS),
       "%s: beam_search changes nothing in a batch without searches", on->name);
    memory_free(&after);
    memory_free(&before);
    memory_free(&expected);
}
