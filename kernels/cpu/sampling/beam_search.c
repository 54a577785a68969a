/*
 * beam_search.c - the operation BEAM: one step of beam search, with the arithmetic of
 * kernels/beam_search.h.
 *
 * Only the few candidates that a beam contributes are sorted: a heap holds the best ones with the
 * worst on top, and nearly all tokens are rejected by a comparison with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/sampling/beam_search.h"
#include "kernels/cpu/sampling/sample.h"
#include "kernels/cpu/base/cpu.h"
#include "runtime/mem.h"

/* ---- Candidates of a beam -------------------------------------------------------------------- */

/* One row of logits, that of one beam. */
typedef struct beam_row {
    const ft_beam_state *memory;
    const ft_beam_params *beams;
    int32_t beam;
    const float *logits;
    float score, max_logit, log_total;
    float *values; /* score of the beam extended by each token */
} beam_row;

static float extend_score(const beam_row *r, size_t token, bool seen)
{
    float logprob = ft_beam_logprob(r->logits[token], r->max_logit, r->log_total);
    return ft_beam_extend_score(r->score, logprob, seen, r->beams);
}

static void ban(const beam_row *r, int32_t id)
{
    if (id >= 0 && (size_t) id < r->memory->vocabulary)
        r->values[id] = -INFINITY;
}

static void apply_repetition_penalty(const beam_row *r)
{
    for (int32_t at = 0; ft_beam_has_repetition_penalty(r->beams) && at < r->beams->n_tokens;
         at++) {
        int32_t id = ft_beam_token_at(r->beams, r->memory, r->beam, at);
        if (id >= 0 && (size_t) id < r->memory->vocabulary)
            r->values[id] = extend_score(r, (size_t) id, true);
    }
}

static void apply_bans(const beam_row *r)
{
    const ft_beam_params *beams = r->beams;
    int32_t n = beams->no_repeat_ngram;
    for (int32_t at = 0; n > 0 && at <= beams->n_tokens - n; at++)
        if (ft_beam_ngram_repeats(beams, r->memory, r->beam, at))
            ban(r, ft_beam_token_at(beams, r->memory, r->beam, at + n - 1));
    for (int32_t i = 0; beams->n_tokens - beams->prompt < beams->min_new_tokens && i < beams->n_eos;
         i++)
        ban(r, beams->eos[i]);
    for (int32_t i = 0; i < beams->n_banned; i++)
        ban(r, beams->banned[i]);
}

static void score_tokens(const beam_row *r)
{
    size_t n = r->memory->vocabulary;
    int32_t forced = r->beams->forced;
    for (size_t i = 0; i < n; i++)
        r->values[i] = forced < 0 ? extend_score(r, i, false) : -INFINITY;
    if (forced >= 0 && (size_t) forced < n)
        r->values[forced] = r->score;
    if (forced >= 0)
        return;
    apply_repetition_penalty(r);
    apply_bans(r);
}

/* ---- Top candidates -------------------------------------------------------------------------- */

/* Restores the min-heap property of `heap`, which may be violated only at `at`. */
static void sift_down(uint64_t *heap, size_t n, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[at] <= heap[child])
            return;
        uint64_t swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

/* In descending order. */
static void sort_heap(uint64_t *heap, size_t n)
{
    for (size_t n_left = n; n_left > 1; n_left--) {
        uint64_t smallest = heap[0];
        heap[0] = heap[n_left - 1];
        heap[n_left - 1] = smallest;
        sift_down(heap, n_left - 1, 0);
    }
}

static void select_top(const beam_row *r, ft_beam_candidates *out)
{
    size_t n = r->memory->vocabulary, n_candidates = (size_t) ft_beam_max_candidates(r->beams);
    uint32_t first = (uint32_t) r->beam * (uint32_t) n;
    uint64_t *heap = out->candidate;
    float threshold =
        -INFINITY; /* candidates must exceed this; ties go to the smaller id, which comes first */
    for (size_t i = 0; i < n; i++) {
        if (!(r->values[i] > threshold))
            continue;
        heap[0] = ft_beam_candidate(r->values[i], first + (uint32_t) i);
        sift_down(heap, n_candidates, 0);
        threshold = heap[0] == 0 ? -INFINITY : ft_beam_candidate_score(heap[0]);
    }
    sort_heap(heap, n_candidates);
}

/* Uses the buffer of `values` for the probabilities, before the values are computed. */
static float log_total(const ft_row_kernels *kernels, const beam_row *r)
{
    uint32_t *prob = (uint32_t *) (void *) r->values;
    return ft_beam_log_total(kernels->fixed_probs(
        prob, r->logits, r->max_logit, ft_sampling_exponent_scale(1.0f), r->memory->vocabulary));
}

void ft_cpu_beam_search_row(const ft_row_kernels *kernels, const ft_beam_state *memory,
                            const ft_beam_params *beams, int32_t beam, const float *logits,
                            float *values, ft_beam_candidates *out)
{
    beam_row r = {
        .memory = memory, .beams = beams, .beam = beam, .logits = logits, .values = values
    };
    size_t n = memory->vocabulary;
    memset(out, 0, sizeof *out);
    out->failed = !kernels->max_logit(logits, n, &r.max_logit) || r.max_logit == INFINITY;
    if (out->failed || r.max_logit == -INFINITY)
        return;
    r.score = ft_beam_input_score(beams, memory, beam);
    r.log_total = log_total(kernels, &r);
    score_tokens(&r);
    select_top(&r, out);
}

/* ---- Merging ------------------------------------------------------------------------------- */

/* One search: the state of its beams while the groups of diverse beam search advance one by one. */
typedef struct search {
    const ft_beam_state *memory;
    const ft_beam_params *beams;
    ft_beam_candidates *lists;
    int32_t parent[FT_MAX_BEAMS]; /* of each beam; itself if the beam is inactive */
    int32_t token[FT_MAX_BEAMS];  /* FT_NO_TOKEN: the beam is inactive */
} search;

/* Takes the best remaining candidate of the beams of one group. */
static uint64_t pop_candidate(const search *g, int32_t group_begin, int32_t n_taken[FT_MAX_BEAMS])
{
    int32_t best = group_begin, n_candidates = ft_beam_max_candidates(g->beams);
    uint64_t best_value = 0;
    for (int32_t beam = group_begin; beam < group_begin + ft_beam_group_width(g->beams); beam++) {
        int32_t at = n_taken[beam];
        if (at < n_candidates && g->lists[beam].candidate[at] > best_value) {
            best_value = g->lists[beam].candidate[at];
            best = beam;
        }
    }
    n_taken[best]++;
    return best_value;
}

/* Copies the tokens of hypotheses that have just finished. */
static void copy_finished(const search *g, int32_t group_begin, const ft_beam_step *step_state)
{
    const ft_beam_params *beams = g->beams;
    const ft_beam_state *m = g->memory;
    for (int32_t i = 0; i < step_state->ended; i++) {
        size_t slot = (size_t) (beams->slot + group_begin + step_state->finished_index[i]);
        int32_t *to = m->finished + slot * m->context;
        for (int32_t at = beams->prompt; at < beams->n_tokens; at++)
            *to++ = ft_beam_token_at(beams, m, step_state->finished_parent[i], at);
        *to = step_state->finished_token[i];
    }
}

static bool prepare_lists(const search *g, int32_t group_begin)
{
    bool failed = false;
    for (int32_t beam = group_begin; beam < group_begin + ft_beam_group_width(g->beams); beam++) {
        ft_beam_candidates *list = &g->lists[beam];
        if (ft_beam_input_score(g->beams, g->memory, beam) == -INFINITY)
            memset(list, 0, sizeof *list);
        failed |= list->failed;
        if (g->beams->diversity_penalty != 0.0f && group_begin > 0)
            ft_beam_penalize_diversity(list->candidate, g->beams, g->token, group_begin,
                                       (uint32_t) g->memory->vocabulary);
    }
    return failed;
}

static void advance_group(search *g, int32_t group_begin)
{
    const ft_beam_params *beams = g->beams;
    ft_beam *group_state = g->memory->beam + beams->slot + group_begin;
    ft_beam_step step_state;
    int32_t n_taken[FT_MAX_BEAMS] = { 0 };
    bool failed = prepare_lists(g, group_begin);
    ft_beam_step_begin(&step_state, group_state, beams);
    if (group_state->status != FT_BEAM_RUNS)
        return;
    while (!failed &&
           ft_beam_step_consume(&step_state, group_state, beams, (uint32_t) g->memory->vocabulary,
                                pop_candidate(g, group_begin, n_taken)))
        ;
    ft_beam_step_end(&step_state, group_state, beams, failed);
    copy_finished(g, group_begin, &step_state);
    for (int32_t i = 0; i < step_state.lives; i++) {
        g->parent[group_begin + i] = step_state.parent[i];
        g->token[group_begin + i] = step_state.token[i];
    }
}

/* Every beam inherits the cache indirection of its parent; its new tokens are in its own pages. */
static void reorder_cache(const search *g)
{
    const ft_beam_params *beams = g->beams;
    const ft_beam_state *m = g->memory;
    int32_t *cache_indirection = m->cache_indirection + (size_t) beams->slot * m->context;
    for (int32_t at = 0; at < beams->n_tokens; at++) {
        int32_t old[FT_MAX_BEAMS];
        for (int32_t beam = 0; beam < beams->width; beam++)
            old[beam] = ft_beam_parent_at(beams, m, beam, at);
        for (int32_t beam = 0; beam < beams->width; beam++)
            cache_indirection[(size_t) beam * m->context + (size_t) at] = old[g->parent[beam]];
    }
}

/* As ft_cpu_sample_append(). */
static void append_token(const search *g, int32_t beam)
{
    const ft_beam_state *m = g->memory;
    size_t slot = (size_t) (g->beams->slot + beam);
    size_t at = slot * m->context + (size_t) g->beams->n_tokens;
    int32_t token = g->token[beam] == FT_NO_TOKEN ? 0 : g->token[beam];
    m->last[slot] = token;
    if ((size_t) g->beams->n_tokens < m->context) {
        m->history[at] = token;
        m->cache_indirection[at] = beam;
    }
}

void ft_cpu_beam_search_merge(const ft_beam_state *memory, const ft_beam_params *beams,
                              ft_beam_candidates *lists)
{
    search g = { .memory = memory, .beams = beams, .lists = lists };
    for (int32_t beam = 0; beam < beams->width; beam++) {
        g.parent[beam] = beam;
        g.token[beam] = FT_NO_TOKEN;
    }
    for (int32_t group_begin = 0; group_begin < beams->width;
         group_begin += ft_beam_group_width(beams))
        advance_group(&g, group_begin);
    reorder_cache(&g);
    for (int32_t beam = 0; beam < beams->width; beam++)
        append_token(&g, beam);
}

/* ---- The operation ------------------------------------------------------------------------- */

/* Scratch: a row of values per thread, then the candidate lists of all slots. */
static size_t row_bytes(size_t vocabulary)
{
    return ft_round_up(vocabulary * sizeof(float), 64);
}

ft_workspace ft_cpu_beam_search_workspace(const ft_plan *plan, const ft_op *op,
                                          const ft_limits *limits)
{
    size_t bytes = row_bytes((size_t) plan->value[op->in[0]].cols);
    return (ft_workspace){ .scratch = (size_t) limits->threads * bytes +
                                      limits->sequences * sizeof(ft_beam_candidates) };
}

/* Everything of one step of beam search. */
typedef struct beam_job {
    const ft_args *args;
    ft_beam_state memory;
    ft_beam_candidates *lists; /* of all slots */
} beam_job;

static void list_beam(const beam_job *s, const ft_beam_params *beams, int32_t beam, float *values)
{
    size_t at = (size_t) ft_beam_row(beams, beam);
    if (ft_beam_input_score(beams, &s->memory, beam) > -INFINITY)
        ft_cpu_beam_search_row(s->args->rows, &s->memory, beams, beam,
                               ft_row_f32(&s->args->in[0], at), values,
                               &s->lists[beams->slot + beam]);
}

/* Chunk i is beam i % FT_MAX_BEAMS of search i / FT_MAX_BEAMS. */
static void list_beams(const void *job, int thread, size_t first, size_t end)
{
    const beam_job *s = job;
    char *values = (char *) s->args->scratch + (size_t) thread * row_bytes(s->memory.vocabulary);
    for (size_t i = first; i < end; i++) {
        const ft_beam_params *beams = &s->args->batch->beams[i / FT_MAX_BEAMS];
        int32_t beam = (int32_t) (i % FT_MAX_BEAMS);
        if (beams->slot >= 0 && beam < beams->width)
            list_beam(s, beams, beam, (float *) (void *) values);
    }
}

static void merge_searches(const void *job, int thread, size_t first, size_t end)
{
    const beam_job *s = job;
    (void) thread;
    for (size_t i = first; i < end; i++) {
        const ft_beam_params *beams = &s->args->batch->beams[i];
        if (beams->slot >= 0)
            ft_cpu_beam_search_merge(&s->memory, beams, s->lists + beams->slot);
    }
}

/*
 * Cost in elements: per token an exponential and a logarithm; of a merge mostly the cache
 * indirection.
 */
enum { TOKEN_COST = 8, MERGE_COST = 8 };

void ft_cpu_beam_search(const ft_args *args)
{
    const ft_batch *batch = args->batch;
    size_t groups = batch->beams == NULL ? 0 : batch->groups, total_beams = 0;
    beam_job s = { .args = args,
                   .memory = {
                       .last = args->state[FT_STATE_LAST_TOKEN].data,
                       .history = args->state[FT_STATE_HISTORY].data,
                       .cache_indirection = args->state[FT_STATE_CACHE_INDIRECTION].data,
                       .finished = args->state[FT_STATE_FINISHED].data,
                       .beam = args->state[FT_STATE_BEAMS].data,
                       .context = args->limits->context,
                       .vocabulary = args->in[0].cols,
                   } };
    size_t rows = (size_t) args->limits->threads * row_bytes(s.memory.vocabulary);
    s.lists = (ft_beam_candidates *) (void *) ((char *) args->scratch + rows);
    for (size_t i = 0; i < groups; i++)
        total_beams += (size_t) batch->beams[i].width;
    double list_work = (double) TOKEN_COST * (double) total_beams * (double) s.memory.vocabulary;
    double merge_work = (double) MERGE_COST * (double) total_beams * (double) batch->context;
    ft_parallel_for_dynamic(ft_team_size(args->threads, total_beams, list_work),
                            groups * FT_MAX_BEAMS, list_beams, &s);
    ft_parallel_for_dynamic(ft_team_size(args->threads, groups, merge_work), groups, merge_searches,
                            &s);
}
