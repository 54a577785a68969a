/*
 * beam_step.c - run a beam search up to its last step and leave that step in the session, so that
 * its operations can be timed one by one.
 *
 * ft_search() releases the state when the search finishes, so the passes are run here directly: the
 * encoder, the prefix, then decode steps for every beam.  No hypothesis finishes, not even in the
 * last step, so the beam search operation finds running beams however often it is repeated.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/beam_search.h"
#include "runtime/error.h"
#include "runtime/tools/bench/bench.h"

#include <string.h>

static ft_status reserve(ft_passages *p, const ft_request *requests, const ft_bench_texts *t,
                         ft_error *err)
{
    bool fits = true;
    ft_pages_clear(&p->pages);
    ft_pages_clear(&p->sources);
    for (size_t g = 0; g < t->sources && fits; g++) {
        fits = ft_pages_reserve(&p->sources, g * t->beams, requests[g].source_tokens);
        for (size_t lane = 0; lane < t->beams && fits; lane++)
            fits = ft_pages_reserve(&p->pages, g * t->beams + lane, t->new_tokens);
    }
    return fits ? FT_OK
                : ft_fail(err, FT_ELIMIT,
                          "the KV cache has no room for %zu hypotheses of %zu tokens",
                          t->sources * t->beams, t->new_tokens);
}

static void set_rules(ft_beams *rules, const ft_config *config, const ft_bench_texts *t,
                      size_t group, size_t known)
{
    *rules = (ft_beams){
        .seat = (int32_t) (group * t->beams),
        .row = (int32_t) (known == 1 ? group : group * t->beams),
        .width = (int32_t) t->beams,
        .parts = 1,
        .prompt = 1,
        .known = (int32_t) known,
        .longest = (int32_t) t->new_tokens + 2,
        .forced = -1,
        .bans = config->banneds,
    };
    memcpy(rules->ban, config->banned, (size_t) config->banneds * sizeof *config->banned);
    ft_beams_measure(rules, 1.0);
}

/* Add the last of `known` tokens: for one beam in the first step, then for all beams. */
static void add_group(ft_session *session, const ft_bench_texts *t, size_t group, size_t known)
{
    size_t first = group * t->beams;
    for (size_t lane = 0; lane < (known == 1 ? 1 : t->beams); lane++) {
        int32_t chosen = -1 - (int32_t) (first + lane);
        ft_passage passage = {
            .seat = first + lane,
            .source = first,
            .past = known - 1,
            .reach = known,
            .ids = known == 1 ? &session->model->config.start_id : &chosen,
            .count = 1,
            .wanted = FT_WANT_LAST,
        };
        ft_passages_add(session->passages, &passage);
    }
}

static ft_status run_step(ft_session *session, const ft_bench_texts *t, ft_beams *rules,
                          size_t known, ft_error *err)
{
    ft_batch *batch = &session->passages->batch;
    ft_passages_clear(session->passages);
    for (size_t g = 0; g < t->sources; g++) {
        add_group(session, t, g, known);
        set_rules(&rules[g], &session->model->config, t, g, known);
    }
    batch->step = known > 1;
    batch->lanes = known > 1 ? t->beams : 0;
    batch->beams = rules;
    batch->groups = t->sources;
    return ft_session_run_passages(session, err);
}

ft_status ft_bench_step(ft_session *session, const ft_request *requests, const ft_bench_texts *t,
                        ft_beams *rules, ft_error *err)
{
    ft_passages *p = session->passages;
    FT_TRY(reserve(p, requests, t, err));
    ft_passages_clear_for_sources(p);
    for (size_t g = 0; g < t->sources; g++)
        ft_passages_add_source(p, g * t->beams, requests[g].source, requests[g].source_tokens);
    FT_TRY(ft_session_run_passages(session, err));
    for (size_t known = 1; known <= t->new_tokens; known++)
        FT_TRY(run_step(session, t, rules, known, err));
    return FT_OK;
}
