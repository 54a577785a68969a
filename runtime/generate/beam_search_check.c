/*
 * beam_search_check.c - validation and defaults of beam search options and requests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/generate/beam_search.h"

#include "kernels/beam_search.h"
#include "runtime/error.h"
#include "runtime/generate/requests.h"

/* ---- Options ------------------------------------------------------------------------------ */

static ft_status check_int(const char *name, int32_t value, int32_t min, int32_t max, ft_error *err)
{
    if (value >= min && value <= max)
        return FT_OK;
    return ft_fail(err, FT_EARG, "%s is %d, expected %d to %d", name, value, min, max);
}

static ft_status check_double(const char *name, double value, double min, double max, ft_error *err)
{
    if (value >= min && value <= max)
        return FT_OK;
    return ft_fail(err, FT_EARG, "%s is %g, expected %g to %g", name, value, min, max);
}

static void set_defaults(ft_beam_search_config *plan)
{
    ft_beam_search_options *o = &plan->options;
    const ft_model *model = plan->session->model;
    o->beams = o->beams == 0 ? 1 : o->beams;
    o->n_best = o->n_best == 0 ? 1 : o->n_best;
    o->length_penalty = o->no_length_normalization ? 0.0
                        : o->length_penalty == 0.0 ? 1.0
                                                   : o->length_penalty;
    o->beam_groups = o->beam_groups == 0 ? 1 : o->beam_groups;
    if (o->poll_every == 0)
        o->poll_every = model->backend->runs_async ? 4 : 1;
    plan->forced_bos = o->forced_bos != NULL ? *o->forced_bos : model->config.forced_bos_id;
}

/* Powers of lengths must stay finite and nonzero; log-probabilities are far below 1e6. */
static ft_status check_options(const ft_beam_search_config *plan, ft_error *err)
{
    const ft_beam_search_options *o = &plan->options;
    const double max_length_penalty = 8.0, max_penalty = 1e6;
    FT_TRY(check_int("beams", o->beams, 1, FT_MAX_BEAMS, err));
    FT_TRY(check_int("n_best", o->n_best, 1, o->beams, err));
    FT_TRY(check_int("beam_groups", o->beam_groups, 1, o->beams, err));
    FT_TRY(
        check_int("early_stopping", (int32_t) o->early_stopping, 0, FT_EARLY_STOPPING_NEVER, err));
    FT_TRY(check_double("length_penalty", o->length_penalty, -max_length_penalty,
                        max_length_penalty, err));
    FT_TRY(check_double("diversity_penalty", (double) o->diversity_penalty, 0.0, max_penalty, err));
    FT_TRY(check_int("poll_every", o->poll_every, 1, INT32_MAX, err));
    FT_TRY(check_int("forced_bos", plan->forced_bos, -1,
                     plan->session->model->config.vocabulary - 1, err));
    if (o->beams % o->beam_groups != 0)
        return ft_fail(err, FT_EARG, "beam_groups is %d, which does not divide %d beams",
                       o->beam_groups, o->beams);
    if (o->diversity_penalty != 0.0f && o->beam_groups == 1)
        return ft_fail(err, FT_EARG,
                       "diversity_penalty is %g, which needs beam_groups of at least 2",
                       (double) o->diversity_penalty);
    return FT_OK;
}

static bool has_beam_search(const ft_plan *plan)
{
    for (int i = 0; i < plan->nop; i++)
        if (ft_op_info_of(plan->op[i].kind)->runs == FT_RUNS_BEAM_SEARCH)
            return true;
    return false;
}

ft_status ft_beam_search_configure(ft_beam_search_config *out, const ft_session *session,
                                   const ft_beam_search_options *options, ft_error *err)
{
    const ft_model *model = session->model;
    *out = (ft_beam_search_config){ .session = session };
    if (options != NULL)
        out->options = *options;
    if (!has_beam_search(&session->plan))
        return ft_fail(err, FT_EUNSUPPORTED, "%s: models of family %s do not support beam search",
                       model->path, model->family->name);
    set_defaults(out);
    FT_TRY(check_options(out, err));
    if (ft_beam_search_max_sources(out) == 0)
        return ft_fail(
            err, FT_ELIMIT,
            "%d beams need max_sequences and max_tokens of at least that many; the session "
            "has %zu and %zu",
            out->options.beams, session->limits.sequences, session->limits.tokens);
    if (model->artifact == NULL)
        return FT_OK;
    return ft_stop_ids_read(&out->stops, model->artifact, model->path, model->config.vocabulary,
                            err);
}

/* ---- Requests ----------------------------------------------------------------------------- */

size_t ft_beam_search_max_sources(const ft_beam_search_config *plan)
{
    const ft_limits *limits = &plan->session->limits;
    return ft_min_size(limits->sequences, limits->tokens) / (size_t) plan->options.beams;
}

const int32_t *ft_beam_search_prompt(const ft_beam_search_config *plan, const ft_request *request,
                                     size_t *tokens)
{
    *tokens = request->prompt_tokens > 0 ? request->prompt_tokens : 1;
    return request->prompt_tokens > 0 ? request->prompt
                                      : &plan->session->model->config.decoder_start_id;
}

size_t ft_beam_search_max_tokens(const ft_beam_search_config *plan, const ft_request *request)
{
    ft_request r = *request;
    r.prompt = ft_beam_search_prompt(plan, request, &r.prompt_tokens);
    return r.prompt_tokens + ft_request_max_new_tokens(&r, plan->session->context);
}

/* Fields for sampling and streaming do not apply to beam search. */
static ft_status check_unused(const ft_request *r, size_t index, ft_error *err)
{
    const char *name = r->temperature != 0.0f         ? "temperature"
                       : r->top_k != 0                ? "top_k"
                       : r->top_p != 0.0f             ? "top_p"
                       : r->min_p != 0.0f             ? "min_p"
                       : r->presence_penalty != 0.0f  ? "presence_penalty"
                       : r->frequency_penalty != 0.0f ? "frequency_penalty"
                       : r->stop_strings != NULL      ? "stop_strings"
                                                      : NULL;
    return name == NULL
               ? FT_OK
               : ft_fail(err, FT_EARG, "prompt %zu: %s does not apply to beam search", index, name);
}

static ft_status check_cache(const ft_beam_search_config *plan, const ft_request *r, size_t index,
                             ft_error *err)
{
    const ft_limits *limits = &plan->session->limits;
    size_t max_tokens = ft_beam_search_max_tokens(plan, r), beams = (size_t) plan->options.beams;
    size_t pages = beams * ft_pages_for_tokens(max_tokens - 1);
    if (pages <= limits->pages)
        return FT_OK;
    return ft_fail(err, FT_ELIMIT,
                   "prompt %zu: %zu beams of %zu tokens need %zu tokens of KV cache, which has %zu",
                   index, beams, max_tokens, pages * FT_PAGE_TOKENS,
                   limits->pages * FT_PAGE_TOKENS);
}

ft_status ft_beam_search_check(const ft_beam_search_config *plan, const ft_request *requests,
                               size_t count, ft_error *err)
{
    for (size_t i = 0; i < count; i++) {
        ft_request r = requests[i];
        r.prompt = ft_beam_search_prompt(plan, &requests[i], &r.prompt_tokens);
        FT_TRY(check_unused(&r, i, err));
        FT_TRY(ft_request_check(plan->session, &r, i, false, err));
        FT_TRY(check_cache(plan, &r, i, err));
    }
    return FT_OK;
}
