/*
 * kept_cache.c - remember which tokens slot 0 holds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/generate/kept_cache.h"

#include "runtime/error.h"
#include "runtime/generate/requests.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

static ft_status check(const ft_session *session, size_t count, ft_error *err)
{
    if (count != 1 || session->limits.sequences != 1)
        return ft_fail(err, FT_EARG,
                       "keep_cache: found %zu requests and %zu sequence slots, expected 1 of each",
                       count, session->limits.sequences);
    if (ft_config_is_encoder_decoder(&session->model->config))
        return ft_fail(err, FT_EARG, "keep_cache: does not apply to encoder-decoders");
    return FT_OK;
}

static bool has_penalties(const ft_request *r)
{
    return (r->repetition_penalty != 0.0f && r->repetition_penalty != 1.0f) ||
           r->presence_penalty != 0.0f || r->frequency_penalty != 0.0f;
}

/* Whoever clears the page table uses the cache for something else. */
static size_t common_tokens(const ft_kept_tokens *kept, const ft_page_table *pages,
                            const ft_request *r)
{
    size_t most = ft_min_size(kept->count, r->prompt_tokens - 1), common = 0;
    if (kept->clears != pages->clears || has_penalties(r))
        return 0;
    while (common < most && kept->id[common] == r->prompt[common])
        common++;
    return common;
}

ft_status ft_kept_cache_begin(ft_session *session, const ft_request *request, size_t count,
                              size_t *reused, ft_error *err)
{
    ft_kept_tokens *kept = &session->chunks->kept;
    FT_TRY(check(session, count, err));
    size_t most = request->prompt_tokens + ft_request_max_new_tokens(request, session->context);
    int32_t *grown = realloc(kept->id, most * sizeof *grown);
    if (grown == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to keep %zu tokens", most);
    kept->id = grown;
    *reused = common_tokens(kept, &session->chunks->pages, request);
    memcpy(kept->id, request->prompt, request->prompt_tokens * sizeof *kept->id);
    kept->known = request->prompt_tokens;
    kept->count = 0;
    return FT_OK;
}

void ft_kept_cache_add(ft_session *session, int32_t id)
{
    ft_kept_tokens *kept = &session->chunks->kept;
    kept->id[kept->known++] = id;
}

void ft_kept_cache_end(ft_session *session, size_t cached)
{
    ft_kept_tokens *kept = &session->chunks->kept;
    kept->count = ft_min_size(cached, kept->known);
    kept->clears = session->chunks->pages.clears;
}
