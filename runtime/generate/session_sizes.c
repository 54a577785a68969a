/*
 * session_sizes.c - the largest requests that may run concurrently must fit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/generate/session_sizes.h"

#include "runtime/error.h"
#include "runtime/generate/requests.h"
#include "runtime/mem.h"

#include <stdlib.h>

enum { SEQUENCES = 64, CHUNK = 512, CONTEXT = 4096 };

static size_t longest_prompt(const ft_request *requests, size_t count)
{
    size_t longest = 0;
    for (size_t i = 0; i < count; i++)
        longest = ft_max_size(longest, requests[i].prompt_tokens);
    return longest;
}

static size_t longest_source(const ft_request *requests, size_t count)
{
    size_t longest = 0;
    for (size_t i = 0; i < count; i++)
        longest = ft_max_size(longest, requests[i].source_tokens);
    return longest;
}

/* The number of input tokens: of the sources of an encoder-decoder, else of the prompts. */
static size_t count_tokens(const ft_request *requests, size_t count)
{
    size_t tokens = 0;
    for (size_t i = 0; i < count; i++)
        tokens +=
            requests[i].source_tokens > 0 ? requests[i].source_tokens : requests[i].prompt_tokens;
    return tokens;
}

static size_t positions_of(const ft_model *model)
{
    return (size_t) ft_model_get_info(model).max_positions;
}

/* ---- Generation ----------------------------------------------------------------------------- */

static size_t choose_context(const ft_model *model, const ft_request *requests, size_t count)
{
    size_t positions = positions_of(model), longest = longest_prompt(requests, count);
    if (requests[0].max_new_tokens > 0)
        return ft_min_size(positions, longest + (size_t) requests[0].max_new_tokens);
    return ft_min_size(positions, longest < CONTEXT ? CONTEXT : positions);
}

static int larger_first(const void *a, const void *b)
{
    size_t x = *(const size_t *) a, y = *(const size_t *) b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* KV cache tokens of the largest sequences that may run concurrently. */
static ft_status sum_cache(const ft_request *requests, size_t count, size_t context,
                           size_t num_slots, size_t *tokens, ft_error *err)
{
    size_t *need = ft_calloc(count, sizeof *need);
    if (need == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu requests", count);
    for (size_t i = 0; i < count; i++) {
        const ft_request *r = &requests[i];
        need[i] = r->prompt_tokens > 0 && r->prompt_tokens < context
                      ? ft_request_max_cached(r, context)
                      : 1; /* will be rejected */
    }
    qsort(need, count, sizeof *need, larger_first);
    *tokens = 0;
    for (size_t i = 0; i < num_slots; i++)
        *tokens += ft_round_up(need[i], FT_PAGE_TOKENS);
    free(need);
    return FT_OK;
}

ft_status ft_session_sizes_for_generation(ft_session_options *options, const ft_model *model,
                                          const ft_request *requests, size_t count,
                                          const ft_generation_limits *limits, ft_error *err)
{
    size_t num_slots = ft_min_size(count, limits->batch > 0 ? (size_t) limits->batch : SEQUENCES);
    size_t chunk = limits->chunk > 0 ? (size_t) limits->chunk : CHUNK, cache = 0;
    size_t source = longest_source(requests, count);
    if (options->context == 0)
        options->context = (int64_t) choose_context(model, requests, count);
    FT_TRY(sum_cache(requests, count, (size_t) options->context, num_slots, &cache, err));
    chunk = ft_min_size(chunk, count_tokens(requests, count));
    chunk =
        ft_max_size(ft_max_size(chunk, source), num_slots); /* the encoder needs whole sources */
    options->max_sequences = (int64_t) num_slots;
    options->max_tokens = (int64_t) chunk;
    options->source_tokens = (int64_t) (num_slots * ft_round_up(source, FT_PAGE_TOKENS));
    options->cache_tokens = (int64_t) cache;
    return FT_OK;
}

/* ---- Beam search ---------------------------------------------------------------------------- */

static size_t choose_beam_context(const ft_model *model, const ft_request *request)
{
    size_t positions = positions_of(model);
    return request->max_new_tokens > 0
               ? ft_min_size(positions, 1 + (size_t) request->max_new_tokens)
               : positions;
}

void ft_session_sizes_for_beam_search(ft_session_options *options, const ft_model *model,
                                      const ft_request *requests, size_t count, size_t beams,
                                      const ft_generation_limits *limits)
{
    size_t longest = longest_source(requests, count);
    size_t most = limits->batch > 0   ? (size_t) limits->batch
                  : beams < SEQUENCES ? SEQUENCES / beams
                                      : 1;
    size_t groups = ft_min_size(count, most), num_slots = groups * beams;
    size_t tokens = ft_max_size(limits->chunk > 0 ? (size_t) limits->chunk : CHUNK, longest);
    if (options->context == 0)
        options->context = (int64_t) choose_beam_context(model, &requests[0]);
    options->max_sequences = (int64_t) num_slots;
    options->max_tokens = (int64_t) ft_max_size(tokens, num_slots);
    options->source_tokens = (int64_t) (groups * ft_round_up(longest, FT_PAGE_TOKENS));
    options->cache_tokens =
        (int64_t) (num_slots * ft_round_up((size_t) options->context, FT_PAGE_TOKENS));
}
