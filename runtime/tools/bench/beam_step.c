/*
 * beam_step.c - run a beam search up to its last step and leave that step in the session, so that
 * its operations can be timed one by one.
 *
 * ft_beam_search() releases the state when the search finishes, so the passes are run here
 * directly: the encoder, the prefix, then decode steps for every beam.  No hypothesis finishes, not
 * even in the last step, so the beam search operation finds running beams however often it is
 * repeated.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/beam_search.h"
#include "runtime/error.h"
#include "runtime/tools/bench/bench.h"

#include <string.h>

static ft_status reserve(ft_chunk_batch *p, const ft_request *requests,
                         const ft_bench_beam_search_shape *t, ft_error *err)
{
    bool fits = true;
    ft_page_table_clear(&p->pages);
    ft_page_table_clear(&p->sources);
    for (size_t g = 0; g < t->sources && fits; g++) {
        fits = ft_page_table_reserve(&p->sources, g * t->beams, requests[g].source_tokens);
        for (size_t beam_id = 0; beam_id < t->beams && fits; beam_id++)
            fits = ft_page_table_reserve(&p->pages, g * t->beams + beam_id, t->new_tokens);
    }
    return fits ? FT_OK
                : ft_fail(err, FT_ELIMIT,
                          "the KV cache has no room for %zu hypotheses of %zu tokens",
                          t->sources * t->beams, t->new_tokens);
}

static void set_params(ft_beam_params *params, const ft_config *config,
                       const ft_bench_beam_search_shape *t, size_t group, size_t n_tokens)
{
    *params = (ft_beam_params){
        .slot = (int32_t) (group * t->beams),
        .row = (int32_t) (n_tokens == 1 ? group : group * t->beams),
        .width = (int32_t) t->beams,
        .num_beam_groups = 1,
        .prompt = 1,
        .n_tokens = (int32_t) n_tokens,
        .max_length = (int32_t) t->new_tokens + 2,
        .forced = -1,
        .n_banned = config->num_banned,
    };
    memcpy(params->banned, config->banned, (size_t) config->num_banned * sizeof *config->banned);
    ft_beam_set_length_divisors(params, 1.0);
}

/* Add the last of `known` tokens: for one beam in the first step, then for all beams. */
static void add_group(ft_session *session, const ft_bench_beam_search_shape *t, size_t group,
                      size_t n_tokens)
{
    size_t first = group * t->beams;
    for (size_t beam_id = 0; beam_id < (n_tokens == 1 ? 1 : t->beams); beam_id++) {
        int32_t chosen = -1 - (int32_t) (first + beam_id);
        ft_prefill_chunk chunk = {
            .slot = first + beam_id,
            .source = first,
            .n_past = n_tokens - 1,
            .n_tokens = n_tokens,
            .ids = n_tokens == 1 ? &session->model->config.decoder_start_id : &chosen,
            .count = 1,
            .logits = FT_LOGITS_LAST,
        };
        ft_chunk_batch_add(session->chunks, &chunk);
    }
}

static ft_status run_step(ft_session *session, const ft_bench_beam_search_shape *t,
                          ft_beam_params *params, size_t n_tokens, ft_error *err)
{
    ft_batch *batch = &session->chunks->batch;
    ft_chunk_batch_clear(session->chunks);
    for (size_t g = 0; g < t->sources; g++) {
        add_group(session, t, g, n_tokens);
        set_params(&params[g], &session->model->config, t, g, n_tokens);
    }
    batch->decode_step = n_tokens > 1;
    batch->beam_width = n_tokens > 1 ? t->beams : 0;
    batch->beams = params;
    batch->groups = t->sources;
    return ft_session_run_chunks(session, err);
}

ft_status ft_bench_beam_step(ft_session *session, const ft_request *requests,
                             const ft_bench_beam_search_shape *t, ft_beam_params *params,
                             ft_error *err)
{
    ft_chunk_batch *p = session->chunks;
    FT_TRY(reserve(p, requests, t, err));
    ft_chunk_batch_clear_for_encoder(p);
    for (size_t g = 0; g < t->sources; g++)
        ft_chunk_batch_add_source(p, g * t->beams, requests[g].source, requests[g].source_tokens);
    FT_TRY(ft_session_run_chunks(session, err));
    for (size_t n_tokens = 1; n_tokens <= t->new_tokens; n_tokens++)
        FT_TRY(run_step(session, t, params, n_tokens, err));
    return FT_OK;
}
