/*
 * beam_search.c - the beam search loop: encode the sources, prefill the prefixes, decode step by
 * step.
 *
 * A source occupies a group of sequence slots, one per beam.  The common prefix is prefilled once,
 * in the slot of beam 0; kernels/beam_search.h describes the steps that follow.  A source waits
 * until enough slots are free, and enough pages for the maximum length of all its beams.
 *
 * Only the device knows whether a search is finished, and asking synchronizes with it, so the host
 * polls every few steps.  Further steps of a finished search have no effect.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/generate/beam_search.h"

#include "kernels/beam_search.h"
#include "runtime/base/clock.h"
#include "runtime/base/read_options.h"
#include "runtime/error.h"
#include "runtime/graph/plan.h"

#include <stdlib.h>
#include <string.h>

/* A source with slots. */
typedef struct source_state {
    const ft_request *request; /* NULL: the slots are free */
    size_t index;              /* of the request */
    const int32_t *prompt;
    size_t prompt_tokens;
    bool encoded;         /* the encoder has run */
    size_t cached;        /* prefix tokens in the KV cache */
    size_t steps;         /* decode steps so far */
    ft_beam_params rules; /* without the members that change every step */
} source_state;

struct ft_beam_searches {
    ft_beam_search_config plan;
    ft_session *session;
    const ft_request *request;
    size_t count, next; /* requests before `next` have been started */
    size_t width, groups;
    source_state *source_state; /* [groups] */
    ft_beam_params *step;       /* [groups]: parameters of the groups in this pass */
    size_t steps_since_poll;    /* steps since the last poll */
    ft_beam *beam;              /* [slots]: device state at the last poll */
    int32_t *finished;          /* [slots, context] */
    int beam_value, finished_value;
    ft_generate_stats stats;
    ft_on_hypothesis on_hypothesis;
    void *user;
    bool *cancelled;  /* [count]: requests that must not start */
    bool stopped;     /* by the caller */
    ft_error failure; /* of the first source that failed; code FT_OK: none */
};

/* ---- Parameters --------------------------------------------------------------------------- */

static void set_eos_ids(ft_beam_params *rules, const ft_beam_search_config *plan,
                        const ft_request *r)
{
    size_t ends = r->stop_ids != NULL ? r->stops : plan->stops.count;
    const ft_config *config = &plan->session->model->config;
    rules->n_eos = (int32_t) ends;
    rules->n_banned = config->num_banned;
    memcpy(rules->eos, r->stop_ids != NULL ? r->stop_ids : plan->stops.id, ends * sizeof(int32_t));
    memcpy(rules->banned, config->banned, (size_t) config->num_banned * sizeof(int32_t));
}

static void begin_source(ft_beam_searches *l, size_t g, const ft_request *r)
{
    const ft_beam_search_config *plan = &l->plan;
    source_state *to = &l->source_state[g];
    *to = (source_state){ .request = r, .index = l->next };
    to->prompt = ft_beam_search_prompt(plan, r, &to->prompt_tokens);
    to->rules = (ft_beam_params){
        .slot = (int32_t) (g * l->width),
        .width = (int32_t) l->width,
        .num_beam_groups = plan->options.beam_groups,
        .prompt = (int32_t) to->prompt_tokens,
        .max_length = (int32_t) ft_beam_search_max_tokens(plan, r),
        .min_new_tokens = r->min_new_tokens,
        .early_stopping = (int32_t) plan->options.early_stopping,
        .no_repeat_ngram = r->no_repeat_ngram,
        .repetition_penalty = r->repetition_penalty,
        .diversity_penalty = plan->options.diversity_penalty,
    };
    set_eos_ids(&to->rules, plan, r);
}

static size_t tokens_of(const source_state *g)
{
    return g->prompt_tokens + g->steps;
}

/* The forced next token, or -1. */
static int32_t next_forced_token(const ft_beam_searches *l, const source_state *g)
{
    if (tokens_of(g) == 1)
        return l->plan.forced_bos;
    return ft_beam_is_last_step(&g->rules) ? l->session->model->config.forced_eos_id : -1;
}

/* Add a beam search step of the group to this pass; the logits of beam 0 are in row `row`. */
static void add_beam_step(ft_beam_searches *l, source_state *g, size_t row)
{
    ft_batch *batch = &l->session->chunks->batch;
    g->rules.n_tokens = (int32_t) tokens_of(g);
    g->rules.row = (int32_t) row;
    g->rules.forced = next_forced_token(l, g);
    ft_beam_set_length_divisors(&g->rules, l->plan.options.length_penalty);
    g->steps++;
    l->step[batch->groups++] = g->rules;
    batch->beams = l->step;
}

/* ---- Forward passes ----------------------------------------------------------------------- */

static ft_status run(ft_beam_searches *l, double *seconds, size_t *tokens, ft_error *err)
{
    double before = ft_monotonic_seconds();
    *tokens += l->session->chunks->batch.tokens;
    ft_status status = ft_session_run_chunks(l->session, err);
    *seconds += ft_monotonic_seconds() - before;
    return status;
}

/* Assign the group and its pages to the next request; false if too few pages are free. */
static bool assign_slots(ft_beam_searches *l, size_t g)
{
    ft_chunk_batch *p = l->session->chunks;
    const ft_request *r = &l->request[l->next];
    size_t first = g * l->width, longest = ft_beam_search_max_tokens(&l->plan, r), reserved = 0;
    bool fits = ft_page_table_reserve(&p->sources, first, r->source_tokens);
    while (fits && reserved < l->width)
        fits = ft_page_table_reserve(&p->pages, first + reserved++, longest - 1);
    if (fits) {
        begin_source(l, g, r);
        l->next++;
        return true;
    }
    ft_page_table_release(&p->sources, first);
    while (reserved > 0)
        ft_page_table_release(&p->pages, first + --reserved);
    return false;
}

/* Start waiting sources in order while groups are free. */
static void admit(ft_beam_searches *l)
{
    for (size_t g = 0; g < l->groups; g++) {
        while (l->next < l->count && l->cancelled[l->next])
            l->next++;
        if (l->next == l->count || (l->source_state[g].request == NULL && !assign_slots(l, g)))
            return;
    }
}

/* Build one encoder pass with as many sources as fit; false if none is left. */
static bool add_sources(ft_beam_searches *l)
{
    ft_chunk_batch *p = l->session->chunks;
    size_t tokens_left = l->session->limits.tokens;
    ft_chunk_batch_clear_for_encoder(p);
    for (size_t g = 0; g < l->groups; g++) {
        source_state *to = &l->source_state[g];
        if (to->request == NULL || to->encoded || to->request->source_tokens > tokens_left)
            continue;
        ft_chunk_batch_add_source(p, g * l->width, to->request->source, to->request->source_tokens);
        tokens_left -= to->request->source_tokens;
        to->encoded = true;
    }
    return p->batch.tokens > 0;
}

/* Build one prefill pass, in the slots of beam 0; a completed prefix takes its first step. */
static bool add_prompts(ft_beam_searches *l)
{
    ft_chunk_batch *p = l->session->chunks;
    size_t tokens_left = l->session->limits.tokens;
    ft_chunk_batch_clear(p);
    for (size_t g = 0; g < l->groups && tokens_left > 0; g++) {
        source_state *from = &l->source_state[g];
        size_t left = from->prompt_tokens - from->cached, count = ft_min_size(left, tokens_left);
        if (from->request == NULL || from->steps > 0)
            continue;
        ft_chunk_batch_add(
            p, &(ft_prefill_chunk){ .slot = g * l->width,
                                    .source = g * l->width,
                                    .n_past = from->cached,
                                    .n_tokens = from->prompt_tokens,
                                    .ids = from->prompt + from->cached,
                                    .count = count,
                                    .logits = count == left ? FT_LOGITS_LAST : FT_LOGITS_NONE });
        if (count == left)
            add_beam_step(l, from, p->batch.selected - 1);
        from->cached += count;
        tokens_left -= count;
    }
    return p->batch.tokens > 0;
}

/* Build one decode step with the last token of every beam; false if no search is running. */
static bool add_steps(ft_beam_searches *l)
{
    ft_chunk_batch *p = l->session->chunks;
    ft_chunk_batch_clear(p);
    for (size_t g = 0; g < l->groups; g++) {
        source_state *from = &l->source_state[g];
        size_t row = p->batch.selected, known = tokens_of(from);
        for (size_t beam_id = 0; from->request != NULL && beam_id < l->width; beam_id++) {
            size_t slot = g * l->width + beam_id;
            int32_t chosen = -1 - (int32_t) slot;
            ft_chunk_batch_add(p, &(ft_prefill_chunk){ .slot = slot,
                                                       .source = g * l->width,
                                                       .n_past = known - 1,
                                                       .n_tokens = known,
                                                       .ids = &chosen,
                                                       .count = 1,
                                                       .logits = FT_LOGITS_LAST });
        }
        if (from->request != NULL)
            add_beam_step(l, from, row);
    }
    p->batch.decode_step = true;
    p->batch.beam_width = l->width;
    return p->batch.tokens > 0;
}

/* ---- Hypotheses --------------------------------------------------------------------------- */

/* The search is finished: by the device, or because the maximum length is reached. */
static bool is_finished(const ft_beam_searches *l, const source_state *g)
{
    size_t first = (size_t) g->rules.slot, group_width = (size_t) ft_beam_group_width(&g->rules);
    if (g->steps == 0)
        return false;
    for (size_t beam_id = 0; beam_id < l->width; beam_id += group_width)
        if (l->beam[first + beam_id].status == FT_BEAM_RUNS)
            return tokens_of(g) >= (size_t) g->rules.max_length;
    return true;
}

static bool has_failed(const ft_beam_searches *l, const source_state *g)
{
    size_t first = (size_t) g->rules.slot, group_width = (size_t) ft_beam_group_width(&g->rules);
    for (size_t beam_id = 0; beam_id < l->width; beam_id += group_width)
        if (l->beam[first + beam_id].status == FT_BEAM_FAILED)
            return true;
    return false;
}

static bool is_better(const ft_beam *a, const ft_beam *b)
{
    return a->finished_score > b->finished_score ||
           (a->finished_score == b->finished_score && a->finished_order < b->finished_order);
}

/* Slots of the finished hypotheses, best first; the earlier one of equal scores first. */
static size_t rank_hypotheses(const ft_beam_searches *l, const source_state *g,
                              size_t slot[FT_MAX_BEAMS])
{
    size_t count = 0, first = (size_t) g->rules.slot,
           group_width = (size_t) ft_beam_group_width(&g->rules);
    for (size_t beam_id = 0; beam_id < l->width; beam_id++) {
        const ft_beam *head = &l->beam[first + beam_id / group_width * group_width],
                      *own = &l->beam[first + beam_id];
        if ((int32_t) (beam_id % group_width) >= head->finished)
            continue;
        size_t at = count++;
        for (; at > 0 && is_better(own, &l->beam[slot[at - 1]]); at--)
            slot[at] = slot[at - 1];
        slot[at] = first + beam_id;
    }
    return count;
}

static void report_failure(ft_beam_searches *l, const source_state *g)
{
    const ft_hypothesis none = { .request = g->index, .reason = FT_FINISH_FAILED };
    if (l->failure.code == FT_OK)
        (void) ft_fail(&l->failure, FT_ENONFINITE, "prompt %zu: a logit is not finite", g->index);
    l->stopped |= !l->on_hypothesis(l->user, &none);
}

static void report_hypotheses(ft_beam_searches *l, const source_state *g)
{
    size_t slot[FT_MAX_BEAMS], count = rank_hypotheses(l, g, slot);
    ft_hypothesis hypothesis = { .request = g->index };
    hypothesis.count = ft_min_size(count, (size_t) l->plan.options.n_best);
    for (; hypothesis.rank < hypothesis.count && !l->stopped; hypothesis.rank++) {
        const ft_beam *own = &l->beam[slot[hypothesis.rank]];
        hypothesis.tokens = (size_t) own->finished_length;
        hypothesis.ids = l->finished + slot[hypothesis.rank] * l->session->limits.context;
        hypothesis.score = own->finished_score;
        bool ends = ft_beam_is_eos(&g->rules, hypothesis.ids[hypothesis.tokens - 1]);
        hypothesis.reason = ends ? FT_FINISH_STOP_ID : FT_FINISH_LENGTH;
        l->stopped = !l->on_hypothesis(l->user, &hypothesis);
    }
}

/* The search is finished: release its slots and pages. */
static void release_slots(ft_beam_searches *l, source_state *g)
{
    ft_chunk_batch *p = l->session->chunks;
    size_t first = (size_t) g->rules.slot;
    ft_page_table_release(&p->sources, first);
    for (size_t beam_id = 0; beam_id < l->width; beam_id++)
        ft_page_table_release(&p->pages, first + beam_id);
    g->request = NULL;
}

static ft_status read_finished(ft_beam_searches *l, ft_error *err)
{
    const ft_backend *backend = l->session->model->backend;
    size_t num_slots = 0;
    for (size_t g = 0; g < l->groups; g++)
        if (l->source_state[g].request != NULL && is_finished(l, &l->source_state[g]))
            num_slots = (g + 1) * l->width;
    return num_slots == 0 ? FT_OK
                          : backend->read(l->session->exec, l->finished_value, l->finished, NULL,
                                          num_slots * l->session->limits.context, err);
}

/* Poll the device, and report the hypotheses of finished searches. */
static ft_status poll(ft_beam_searches *l, ft_error *err)
{
    const ft_backend *backend = l->session->model->backend;
    l->steps_since_poll = 0;
    FT_TRY(
        backend->read(l->session->exec, l->beam_value, l->beam, NULL, l->groups * l->width, err));
    FT_TRY(read_finished(l, err));
    for (size_t i = 0; i < l->groups && !l->stopped; i++) {
        source_state *g = &l->source_state[i];
        if (g->request == NULL || !is_finished(l, g))
            continue;
        if (has_failed(l, g))
            report_failure(l, g);
        else
            report_hypotheses(l, g);
        release_slots(l, g);
    }
    return FT_OK;
}

/* Every poll_every steps, and after the last step of a search. */
static bool must_poll(const ft_beam_searches *l)
{
    for (size_t i = 0; i < l->groups; i++) {
        const source_state *g = &l->source_state[i];
        if (g->request != NULL && g->steps > 0 && tokens_of(g) >= (size_t) g->rules.max_length)
            return true;
    }
    return l->steps_since_poll >= (size_t) l->plan.options.poll_every;
}

/* ------------------------------------------------------------------------------------------- */

static bool has_free_source(const ft_beam_searches *l)
{
    for (size_t g = 0; g < l->groups; g++)
        if (l->source_state[g].request == NULL)
            return true;
    return false;
}

/* Encode and prefill new sources; some searches may already finish here. */
static ft_status prefill_sources(ft_beam_searches *l, ft_error *err)
{
    ft_generate_stats *stats = &l->stats;
    size_t ignored = 0;
    admit(l);
    while (add_sources(l))
        FT_TRY(run(l, &stats->prefill_seconds, &stats->prompt_tokens, err));
    while (add_prompts(l))
        FT_TRY(run(l, &stats->prefill_seconds, &ignored, err));
    l->steps_since_poll++;
    return must_poll(l) ? poll(l, err) : FT_OK;
}

static bool is_searching(const ft_beam_searches *l)
{
    for (size_t g = 0; g < l->groups; g++)
        if (l->source_state[g].request != NULL)
            return true;
    return false;
}

ft_status ft_beam_searches_step(ft_beam_searches *l, bool *done, ft_error *err)
{
    if (l->next < l->count && has_free_source(l))
        FT_TRY(prefill_sources(l, err));
    if (!l->stopped && add_steps(l)) {
        FT_TRY(run(l, &l->stats.decode_seconds, &l->stats.decode_tokens, err));
        l->steps_since_poll++;
        if (must_poll(l))
            FT_TRY(poll(l, err));
    }
    *done = l->stopped || (l->next == l->count && !is_searching(l));
    return FT_OK;
}

/* ------------------------------------------------------------------------------------------- */

static ft_status prepare(ft_beam_searches *l, const ft_beam_search_options *options, ft_error *err)
{
    ft_session *s = l->session;
    size_t num_slots = s->limits.sequences,
           context = s->limits.context; /* the product was checked for overflow */
    FT_TRY(ft_beam_search_configure(&l->plan, s, options, err));
    FT_TRY(ft_beam_search_check(&l->plan, l->request, l->count, err));
    l->width = (size_t) l->plan.options.beams;
    l->groups = ft_beam_search_max_sources(&l->plan);
    l->source_state = ft_calloc(l->groups, sizeof *l->source_state);
    l->step = ft_calloc(l->groups, sizeof *l->step);
    l->beam = ft_calloc(num_slots, sizeof *l->beam);
    l->finished = ft_calloc(num_slots * context, sizeof *l->finished);
    l->cancelled = ft_calloc(l->count, sizeof *l->cancelled);
    if (l->source_state == NULL || l->step == NULL || l->beam == NULL || l->finished == NULL ||
        l->cancelled == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to search with %zu beams", l->width);
    l->beam_value = ft_plan_find(&s->plan, "beam.beams");
    l->finished_value = ft_plan_find(&s->plan, "beam.finished");
    ft_page_table_clear(&s->chunks->pages);
    ft_page_table_clear(&s->chunks->sources);
    return FT_OK;
}

ft_status ft_beam_searches_open(ft_beam_searches **out, ft_session *session,
                                const ft_request *requests, size_t count,
                                const ft_beam_search_options *options,
                                ft_on_hypothesis on_hypothesis, void *user, ft_error *err)
{
    ft_beam_searches *l = *out = ft_calloc(1, sizeof *l);
    if (l == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a beam search");
    *l = (ft_beam_searches){ .session = session,
                             .request = requests,
                             .count = count,
                             .on_hypothesis = on_hypothesis,
                             .user = user };
    ft_status status = prepare(l, options, err);
    if (status == FT_OK)
        return FT_OK;
    ft_beam_searches_close(l);
    *out = NULL;
    return status;
}

void ft_beam_searches_close(ft_beam_searches *l)
{
    if (l == NULL)
        return;
    free(l->source_state);
    free(l->step);
    free(l->beam);
    free(l->finished);
    free(l->cancelled);
    free(l);
}

void ft_beam_searches_cancel(ft_beam_searches *l, size_t index)
{
    l->cancelled[index] = true;
    for (size_t g = 0; g < l->groups; g++)
        if (l->source_state[g].request != NULL && l->source_state[g].index == index)
            release_slots(l, &l->source_state[g]);
}

const ft_generate_stats *ft_beam_searches_stats(const ft_beam_searches *l)
{
    return &l->stats;
}

static ft_status search_all(ft_beam_searches *l, ft_error *err)
{
    for (bool done = false; !done;)
        FT_TRY(ft_beam_searches_step(l, &done, err));
    if (l->failure.code != FT_OK && err != NULL)
        *err = l->failure;
    return l->failure.code;
}

ft_status ft_beam_search(ft_session *session, const ft_request *requests, size_t count,
                         const ft_beam_search_options *options, ft_on_hypothesis on_hypothesis,
                         void *user, ft_error *err)
{
    ft_beam_search_options known;
    ft_beam_searches *l;
    FT_REQUIRE(session, err);
    FT_REQUIRE_ARRAY(requests, count, err);
    FT_REQUIRE(on_hypothesis, err);
    FT_TRY(FT_READ_OPTIONS(&known, ft_beam_search_options, stats, options, err));
    if (known.stats != NULL)
        *known.stats = (ft_generate_stats){ .prompt_tokens = 0 };
    FT_TRY(ft_beam_searches_open(&l, session, requests, count, &known, on_hypothesis, user, err));
    ft_status status = search_all(l, err);
    if (known.stats != NULL)
        *known.stats = l->stats;
    ft_beam_searches_close(l);
    return status;
}
