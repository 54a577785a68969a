/*
 * requests.c - length limits and validation of generation requests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/generate/requests.h"

#include "runtime/error.h"

ft_status ft_request_check_model(const ft_model *model, ft_error *err)
{
    return ft_model_generates(model)
               ? FT_OK
               : ft_fail(err, FT_EUNSUPPORTED, "%s: models of family %s do not generate text%s",
                         model->path, model->family->name,
                         model->has_cache ? " where they have an embedding" : "");
}

size_t ft_request_max_new_tokens(const ft_request *request, size_t context)
{
    size_t context_left = context - request->prompt_tokens;
    return request->max_new_tokens > 0 ? ft_min_size((size_t) request->max_new_tokens, context_left)
                                       : context_left;
}

/* The last new token is not fed back, so it needs no cache entry. */
size_t ft_request_max_cached(const ft_request *request, size_t context)
{
    return request->prompt_tokens + ft_request_max_new_tokens(request, context) - 1;
}

/* ---- Checks ------------------------------------------------------------------------------- */

typedef struct checker {
    const ft_session *session;
    const ft_request *request;
    size_t index;
    bool has_tokenizer;
    ft_error *err;
} checker;

static ft_status check_prompt(const checker *c)
{
    const ft_request *r = c->request;
    int32_t vocabulary = c->session->model->config.vocabulary;
    if (r->prompt_tokens == 0)
        return ft_fail(c->err, FT_EARG, "prompt %zu: has no token", c->index);
    if (r->prompt == NULL)
        return ft_fail(c->err, FT_EARG, "prompt %zu: prompt is NULL, but prompt_tokens is %zu",
                       c->index, r->prompt_tokens);
    for (size_t i = 0; i < r->prompt_tokens; i++)
        if (r->prompt[i] < 0 || r->prompt[i] >= vocabulary)
            return ft_fail(c->err, FT_EARG, "prompt %zu: token %zu is %d, expected 0 to %d",
                           c->index, i, r->prompt[i], vocabulary - 1);
    if (r->prompt_tokens >= c->session->context)
        return ft_fail(c->err, FT_ELIMIT,
                       "prompt %zu: %zu tokens leave no room in a context of %zu", c->index,
                       r->prompt_tokens, c->session->context);
    return FT_OK;
}

/* The encoder reads a complete source in one pass. */
static ft_status check_source(const checker *c)
{
    const ft_request *r = c->request;
    const ft_config *config = &c->session->model->config;
    const ft_limits *limits = &c->session->limits;
    size_t max_stop_ids = ft_min_size(limits->tokens, limits->cross_kv_pages * FT_PAGE_TOKENS);
    max_stop_ids =
        ft_min_size(max_stop_ids, (size_t) (config->positions - config->position_offset));
    if (!ft_config_is_encoder_decoder(config))
        return r->source_tokens == 0
                   ? FT_OK
                   : ft_fail(c->err, FT_EARG,
                             "prompt %zu: has a source, but the model has no encoder", c->index);
    if (r->source_tokens == 0)
        return ft_fail(c->err, FT_EARG, "prompt %zu: its source has no token", c->index);
    if (r->source == NULL)
        return ft_fail(c->err, FT_EARG, "prompt %zu: source is NULL, but source_tokens is %zu",
                       c->index, r->source_tokens);
    for (size_t i = 0; i < r->source_tokens; i++)
        if (r->source[i] < 0 || r->source[i] >= config->vocabulary)
            return ft_fail(c->err, FT_EARG, "prompt %zu: source token %zu is %d, expected 0 to %d",
                           c->index, i, r->source[i], config->vocabulary - 1);
    if (r->source_tokens <= max_stop_ids)
        return FT_OK;
    return ft_fail(c->err, FT_ELIMIT,
                   "prompt %zu: a source of %zu tokens, but the session reads at most %zu",
                   c->index, r->source_tokens, max_stop_ids);
}

static ft_status check_cache(const checker *c)
{
    const ft_request *r = c->request;
    size_t context = c->session->context,
           pages = ft_pages_for_tokens(ft_request_max_cached(r, context));
    if (pages <= c->session->limits.pages)
        return FT_OK;
    return ft_fail(
        c->err, FT_ELIMIT,
        "prompt %zu: %zu tokens and %zu new ones need %zu tokens of KV cache, which has %zu",
        c->index, r->prompt_tokens, ft_request_max_new_tokens(r, context), pages * FT_PAGE_TOKENS,
        c->session->limits.pages * FT_PAGE_TOKENS);
}

static ft_status check_number(const checker *c, const char *name, float value, float min, float max)
{
    if (value >= min && value <= max)
        return FT_OK;
    return ft_fail(c->err, FT_EARG, "prompt %zu: %s is %g, expected %g to %g", c->index, name,
                   (double) value, (double) min, (double) max);
}

static ft_status check_sampling(const checker *c)
{
    const ft_request *r = c->request;
    const float max_penalty = 1e6f;
    FT_TRY(check_number(c, "temperature", r->temperature, 0.0f, max_penalty));
    FT_TRY(check_number(c, "top_p", r->top_p, 0.0f, 1.0f));
    FT_TRY(check_number(c, "min_p", r->min_p, 0.0f, 1.0f));
    FT_TRY(check_number(c, "repetition_penalty", r->repetition_penalty, 0.0f, max_penalty));
    FT_TRY(check_number(c, "presence_penalty", r->presence_penalty, -max_penalty, max_penalty));
    FT_TRY(check_number(c, "frequency_penalty", r->frequency_penalty, -max_penalty, max_penalty));
    if (r->top_k < 0 || r->no_repeat_ngram < 0 || r->max_new_tokens < 0 || r->min_new_tokens < 0)
        return ft_fail(
            c->err, FT_EARG,
            "prompt %zu: top_k, no_repeat_ngram and numbers of tokens cannot be negative",
            c->index);
    return FT_OK;
}

static ft_status check_stop_ids(const checker *c)
{
    const ft_request *r = c->request;
    int32_t vocabulary = c->session->model->config.vocabulary;
    size_t max_stop_ids = FT_MAX_BANNED_IDS - (size_t) c->session->model->config.num_banned;
    if (r->stops > max_stop_ids)
        return ft_fail(c->err, FT_ELIMIT, "prompt %zu: %zu stop ids, expected at most %zu",
                       c->index, r->stops, max_stop_ids);
    for (size_t i = 0; r->stop_ids != NULL && i < r->stops; i++)
        if (r->stop_ids[i] < 0 || r->stop_ids[i] >= vocabulary)
            return ft_fail(c->err, FT_EARG, "prompt %zu: stop id %d, expected 0 to %d", c->index,
                           r->stop_ids[i], vocabulary - 1);
    return FT_OK;
}

static ft_status check_stop_strings(const checker *c)
{
    const char *const *stop = c->request->stop_strings;
    if (stop == NULL)
        return FT_OK;
    if (!c->has_tokenizer)
        return ft_fail(c->err, FT_EARG, "prompt %zu: stop strings need a tokenizer", c->index);
    for (; *stop != NULL; stop++)
        if ((*stop)[0] == '\0')
            return ft_fail(c->err, FT_EARG, "prompt %zu: a stop string is empty", c->index);
    return FT_OK;
}

ft_status ft_request_check(const ft_session *session, const ft_request *request, size_t index,
                           bool has_tokenizer, ft_error *err)
{
    const checker c = { session, request, index, has_tokenizer, err };
    FT_TRY(check_source(&c));
    FT_TRY(check_prompt(&c));
    FT_TRY(check_cache(&c));
    FT_TRY(check_sampling(&c));
    FT_TRY(check_stop_ids(&c));
    return check_stop_strings(&c);
}
