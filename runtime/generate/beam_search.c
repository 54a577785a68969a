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
#include "runtime/error.h"
#include "runtime/graph/plan.h"

#include <stdlib.h>
#include <string.h>

/* A source with slots. */
typedef struct group {
    const ft_request *request; /* NULL: the slots are free */
    size_t index;              /* of the request */
    const int32_t *prompt;
    size_t prompt_tokens;
    bool remembered; /* the encoder has run */
    size_t cached;   /* prefix tokens in the KV cache */
    size_t steps;    /* decode steps so far */
    ft_beams rules;  /* without the members that change every step */
} group;

typedef struct loop {
    ft_search_plan plan;
    ft_session *session;
    const ft_request *request;
    size_t count, next; /* requests before `next` have been started */
    size_t width, groups;
    group *group;      /* [groups] */
    ft_beams *step;    /* [groups]: parameters of the groups in this pass */
    size_t unseen;     /* steps since the last poll */
    ft_beam *beam;     /* [slots]: device state at the last poll */
    int32_t *finished; /* [slots, context] */
    int beam_value, finished_value;
    ft_generate_stats stats;
    ft_on_found on_found;
    void *user;
    bool stopped;     /* by the caller */
    ft_error failure; /* of the first source that failed; code FT_OK: none */
} loop;

/* ---- Parameters --------------------------------------------------------------------------- */

static void set_ends(ft_beams *rules, const ft_search_plan *plan, const ft_request *r)
{
    size_t ends = r->stop_ids != NULL ? r->stops : plan->stops.count;
    const ft_config *config = &plan->session->model->config;
    rules->ends = (int32_t) ends;
    rules->bans = config->banneds;
    memcpy(rules->end, r->stop_ids != NULL ? r->stop_ids : plan->stops.id, ends * sizeof(int32_t));
    memcpy(rules->ban, config->banned, (size_t) config->banneds * sizeof(int32_t));
}

static void begin_group(loop *l, size_t g, const ft_request *r)
{
    const ft_search_plan *plan = &l->plan;
    group *to = &l->group[g];
    *to = (group){ .request = r, .index = l->next };
    to->prompt = ft_search_prompt(plan, r, &to->prompt_tokens);
    to->rules = (ft_beams){
        .seat = (int32_t) (g * l->width),
        .width = (int32_t) l->width,
        .parts = plan->options.beam_groups,
        .prompt = (int32_t) to->prompt_tokens,
        .longest = (int32_t) ft_search_longest(plan, r),
        .least = r->min_new_tokens,
        .early = (int32_t) plan->options.early_stopping,
        .ngram = r->no_repeat_ngram,
        .repetition = r->repetition_penalty,
        .diversity = plan->options.diversity_penalty,
    };
    set_ends(&to->rules, plan, r);
}

static size_t known_of(const group *g)
{
    return g->prompt_tokens + g->steps;
}

/* The forced next token, or -1. */
static int32_t forced_now(const loop *l, const group *g)
{
    if (known_of(g) == 1)
        return l->plan.forced_bos;
    return ft_beams_close(&g->rules) ? l->session->model->config.last_id : -1;
}

/* Add a beam search step of the group to this pass; the logits of beam 0 are in row `row`. */
static void take_step(loop *l, group *g, size_t row)
{
    ft_batch *batch = &l->session->passages->batch;
    g->rules.known = (int32_t) known_of(g);
    g->rules.row = (int32_t) row;
    g->rules.forced = forced_now(l, g);
    ft_beams_measure(&g->rules, l->plan.options.length_penalty);
    g->steps++;
    l->step[batch->groups++] = g->rules;
    batch->beams = l->step;
}

/* ---- Forward passes ----------------------------------------------------------------------- */

static ft_status run(loop *l, double *seconds, size_t *tokens, ft_error *err)
{
    double before = ft_seconds();
    *tokens += l->session->passages->batch.tokens;
    ft_status status = ft_session_run_passages(l->session, err);
    *seconds += ft_seconds() - before;
    return status;
}

/* Assign the group and its pages to the next request; false if too few pages are free. */
static bool seat_next(loop *l, size_t g)
{
    ft_passages *p = l->session->passages;
    const ft_request *r = &l->request[l->next];
    size_t first = g * l->width, longest = ft_search_longest(&l->plan, r), lanes = 0;
    bool fits = ft_pages_reserve(&p->sources, first, r->source_tokens);
    while (fits && lanes < l->width)
        fits = ft_pages_reserve(&p->pages, first + lanes++, longest - 1);
    if (fits) {
        begin_group(l, g, r);
        l->next++;
        return true;
    }
    ft_pages_release(&p->sources, first);
    while (lanes > 0)
        ft_pages_release(&p->pages, first + --lanes);
    return false;
}

/* Start waiting sources in order while groups are free. */
static void admit(loop *l)
{
    for (size_t g = 0; g < l->groups && l->next < l->count; g++)
        if (l->group[g].request == NULL && !seat_next(l, g))
            return;
}

/* Build one encoder pass with as many sources as fit; false if none is left. */
static bool add_sources(loop *l)
{
    ft_passages *p = l->session->passages;
    size_t room = l->session->limits.tokens;
    ft_passages_clear_for_sources(p);
    for (size_t g = 0; g < l->groups; g++) {
        group *to = &l->group[g];
        if (to->request == NULL || to->remembered || to->request->source_tokens > room)
            continue;
        ft_passages_add_source(p, g * l->width, to->request->source, to->request->source_tokens);
        room -= to->request->source_tokens;
        to->remembered = true;
    }
    return p->batch.tokens > 0;
}

/* Build one prefill pass, in the slots of beam 0; a completed prefix takes its first step. */
static bool add_prompts(loop *l)
{
    ft_passages *p = l->session->passages;
    size_t room = l->session->limits.tokens;
    ft_passages_clear(p);
    for (size_t g = 0; g < l->groups && room > 0; g++) {
        group *from = &l->group[g];
        size_t left = from->prompt_tokens - from->cached, count = ft_min_size(left, room);
        if (from->request == NULL || from->steps > 0)
            continue;
        ft_passages_add(p, &(ft_passage){ .seat = g * l->width,
                                          .source = g * l->width,
                                          .past = from->cached,
                                          .reach = from->prompt_tokens,
                                          .ids = from->prompt + from->cached,
                                          .count = count,
                                          .wanted = count == left ? FT_WANT_LAST : FT_WANT_NONE });
        if (count == left)
            take_step(l, from, p->batch.selected - 1);
        from->cached += count;
        room -= count;
    }
    return p->batch.tokens > 0;
}

/* Build one decode step with the last token of every beam; false if no search is running. */
static bool add_steps(loop *l)
{
    ft_passages *p = l->session->passages;
    ft_passages_clear(p);
    for (size_t g = 0; g < l->groups; g++) {
        group *from = &l->group[g];
        size_t row = p->batch.selected, known = known_of(from);
        for (size_t lane = 0; from->request != NULL && lane < l->width; lane++) {
            size_t seat = g * l->width + lane;
            int32_t chosen = -1 - (int32_t) seat;
            ft_passages_add(p, &(ft_passage){ .seat = seat,
                                              .source = g * l->width,
                                              .past = known - 1,
                                              .reach = known,
                                              .ids = &chosen,
                                              .count = 1,
                                              .wanted = FT_WANT_LAST });
        }
        if (from->request != NULL)
            take_step(l, from, row);
    }
    p->batch.step = true;
    p->batch.lanes = l->width;
    return p->batch.tokens > 0;
}

/* ---- Hypotheses --------------------------------------------------------------------------- */

/* The search is finished: by the device, or because the maximum length is reached. */
static bool is_over(const loop *l, const group *g)
{
    size_t first = (size_t) g->rules.seat, span = (size_t) ft_beams_span(&g->rules);
    if (g->steps == 0)
        return false;
    for (size_t lane = 0; lane < l->width; lane += span)
        if (l->beam[first + lane].status == FT_BEAM_RUNS)
            return known_of(g) >= (size_t) g->rules.longest;
    return true;
}

static bool has_failed(const loop *l, const group *g)
{
    size_t first = (size_t) g->rules.seat, span = (size_t) ft_beams_span(&g->rules);
    for (size_t lane = 0; lane < l->width; lane += span)
        if (l->beam[first + lane].status == FT_BEAM_FAILED)
            return true;
    return false;
}

static bool is_better(const ft_beam *a, const ft_beam *b)
{
    return a->finished_score > b->finished_score ||
           (a->finished_score == b->finished_score && a->finished_order < b->finished_order);
}

/* Slots of the finished hypotheses, best first; the earlier one of equal scores first. */
static size_t rank_texts(const loop *l, const group *g, size_t seat[FT_MAX_BEAMS])
{
    size_t count = 0, first = (size_t) g->rules.seat, span = (size_t) ft_beams_span(&g->rules);
    for (size_t lane = 0; lane < l->width; lane++) {
        const ft_beam *head = &l->beam[first + lane / span * span], *own = &l->beam[first + lane];
        if ((int32_t) (lane % span) >= head->finished)
            continue;
        size_t at = count++;
        for (; at > 0 && is_better(own, &l->beam[seat[at - 1]]); at--)
            seat[at] = seat[at - 1];
        seat[at] = first + lane;
    }
    return count;
}

static void tell_failure(loop *l, const group *g)
{
    const ft_found none = { .request = g->index, .reason = FT_REASON_FAILED };
    if (l->failure.code == FT_OK)
        (void) ft_fail(&l->failure, FT_ENUMBER, "prompt %zu: a logit is not finite", g->index);
    l->stopped |= !l->on_found(l->user, &none);
}

static void tell_texts(loop *l, const group *g)
{
    size_t seat[FT_MAX_BEAMS], count = rank_texts(l, g, seat);
    ft_found found = { .request = g->index };
    found.count = ft_min_size(count, (size_t) l->plan.options.n_best);
    for (; found.rank < found.count && !l->stopped; found.rank++) {
        const ft_beam *own = &l->beam[seat[found.rank]];
        found.tokens = (size_t) own->finished_length;
        found.ids = l->finished + seat[found.rank] * l->session->limits.context;
        found.score = own->finished_score;
        bool ends = ft_beams_end(&g->rules, found.ids[found.tokens - 1]);
        found.reason = ends ? FT_REASON_END : FT_REASON_LENGTH;
        l->stopped = !l->on_found(l->user, &found);
    }
}

/* The search is finished: release its slots and pages. */
static void leave(loop *l, group *g)
{
    ft_passages *p = l->session->passages;
    size_t first = (size_t) g->rules.seat;
    ft_pages_release(&p->sources, first);
    for (size_t lane = 0; lane < l->width; lane++)
        ft_pages_release(&p->pages, first + lane);
    g->request = NULL;
}

static ft_status read_texts(loop *l, ft_error *err)
{
    const ft_backend *backend = l->session->model->backend;
    size_t seats = 0;
    for (size_t g = 0; g < l->groups; g++)
        if (l->group[g].request != NULL && is_over(l, &l->group[g]))
            seats = (g + 1) * l->width;
    return seats == 0 ? FT_OK
                      : backend->read(l->session->exec, l->finished_value, l->finished, NULL,
                                      seats * l->session->limits.context, err);
}

/* Poll the device, and report the hypotheses of finished searches. */
static ft_status look(loop *l, ft_error *err)
{
    const ft_backend *backend = l->session->model->backend;
    l->unseen = 0;
    FT_TRY(
        backend->read(l->session->exec, l->beam_value, l->beam, NULL, l->groups * l->width, err));
    FT_TRY(read_texts(l, err));
    for (size_t i = 0; i < l->groups && !l->stopped; i++) {
        group *g = &l->group[i];
        if (g->request == NULL || !is_over(l, g))
            continue;
        if (has_failed(l, g))
            tell_failure(l, g);
        else
            tell_texts(l, g);
        leave(l, g);
    }
    return FT_OK;
}

/* Every poll_every steps, and after the last step of a search. */
static bool must_look(const loop *l)
{
    for (size_t i = 0; i < l->groups; i++) {
        const group *g = &l->group[i];
        if (g->request != NULL && g->steps > 0 && known_of(g) >= (size_t) g->rules.longest)
            return true;
    }
    return l->unseen >= (size_t) l->plan.options.look_every;
}

/* ------------------------------------------------------------------------------------------- */

static bool has_free_group(const loop *l)
{
    for (size_t g = 0; g < l->groups; g++)
        if (l->group[g].request == NULL)
            return true;
    return false;
}

/* Encode and prefill new sources; some searches may already finish here. */
static ft_status begin_searches(loop *l, ft_error *err)
{
    ft_generate_stats *stats = &l->stats;
    size_t ignored = 0;
    admit(l);
    while (add_sources(l))
        FT_TRY(run(l, &stats->prompt_seconds, &stats->prompt_tokens, err));
    while (add_prompts(l))
        FT_TRY(run(l, &stats->prompt_seconds, &ignored, err));
    l->unseen++;
    return must_look(l) ? look(l, err) : FT_OK;
}

static ft_status work(loop *l, ft_error *err)
{
    ft_generate_stats *stats = &l->stats;
    while (!l->stopped) {
        FT_TRY(begin_searches(l, err));
        do {
            if (l->stopped || !add_steps(l))
                break;
            FT_TRY(run(l, &stats->step_seconds, &stats->step_tokens, err));
            l->unseen++;
            if (must_look(l))
                FT_TRY(look(l, err));
        } while (l->next == l->count || !has_free_group(l));
        if (l->next == l->count && l->session->passages->batch.tokens == 0)
            return FT_OK;
    }
    return FT_OK;
}

static void fini(loop *l)
{
    free(l->group);
    free(l->step);
    free(l->beam);
    free(l->finished);
}

static ft_status prepare(loop *l, const ft_search_options *options, ft_error *err)
{
    ft_session *s = l->session;
    size_t seats = s->limits.sequences,
           context = s->limits.context; /* the product was checked for overflow */
    FT_TRY(ft_search_plan_make(&l->plan, s, options, err));
    FT_TRY(ft_search_check(&l->plan, l->request, l->count, err));
    l->width = (size_t) l->plan.options.beams;
    l->groups = ft_search_groups(&l->plan);
    l->group = ft_array(l->groups, sizeof *l->group);
    l->step = ft_array(l->groups, sizeof *l->step);
    l->beam = ft_array(seats, sizeof *l->beam);
    l->finished = ft_array(seats * context, sizeof *l->finished);
    if (l->group == NULL || l->step == NULL || l->beam == NULL || l->finished == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to search with %zu beams", l->width);
    l->beam_value = ft_plan_find(&s->plan, "beam.lanes");
    l->finished_value = ft_plan_find(&s->plan, "beam.finished");
    ft_pages_clear(&s->passages->pages);
    ft_pages_clear(&s->passages->sources);
    return FT_OK;
}

ft_status ft_search(ft_session *session, const ft_request *requests, size_t count,
                    const ft_search_options *options, ft_on_found on_found, void *user,
                    ft_error *err)
{
    FT_NEED(session, err);
    FT_NEED_ARRAY(requests, count, err);
    FT_NEED(on_found, err);
    loop l = {
        .session = session, .request = requests, .count = count, .on_found = on_found, .user = user
    };
    ft_status status = prepare(&l, options, err);
    if (status == FT_OK)
        status = work(&l, err);
    if (status == FT_OK && l.failure.code != FT_OK) {
        status = l.failure.code;
        if (err != NULL)
            *err = l.failure;
    }
    if (options != NULL && options->stats != NULL)
        *options->stats = l.stats;
    fini(&l);
    return status;
}
