/*
 * session_open.c - open a session: derive its limits from the options, allocate its memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/session.h"

#include "kernels/threads/processors.h"
#include "runtime/base/read_options.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/pixels.h"
#include "runtime/graph/lower.h"
#include "runtime/graph/plan.h"

#include <inttypes.h>
#include <stdlib.h>

static ft_status keep_values(ft_session *session, const char *const *names, ft_error *err)
{
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        int value = ft_plan_find(&session->plan, names[i]);
        if (value < 0)
            return ft_fail(err, FT_EARG, "%s: no value \"%s\" in the plan", session->model->path,
                           names[i]);
        if (!ft_plan_stores(&session->plan, value))
            return ft_fail(
                err, FT_EARG,
                "%s: value \"%s\" is not stored, since it is inside a fused operation; use no_fuse",
                session->model->path, names[i]);
        session->plan.value[value].keep = true;
    }
    /* a fusion group need not write what only it reads, but a kept value must be written */
    return names != NULL ? ft_lower_groups(&session->plan, err) : FT_OK;
}

/* Whether RoPE scaling is dynamic and so extends beyond the model's positions. */
static bool has_dynamic_rope(const ft_plan *plan)
{
    for (int i = 0; i < plan->nop; i++)
        if (plan->op[i].attr.rope_positions > 0)
            return true;
    return false;
}

/* Enough for one full context, and for a pass with new sequences only. */
static size_t default_pages(const ft_limits *limits)
{
    size_t run =
        ft_pages_for_tokens(limits->tokens) + ft_min_size(limits->sequences, limits->tokens);
    size_t context = limits->context / FT_PAGE_TOKENS;
    return run > context ? run : context;
}

/* Cross-attention KV cache: per source up to one forward pass, in total options->source_tokens. */
static ft_status set_source_limits(ft_session *session, const ft_session_options *options,
                                   ft_error *err)
{
    ft_limits *limits = &session->limits;
    const ft_config *config = &session->model->config;
    size_t positions = (size_t) (config->positions - config->position_offset);
    if (options->source_tokens < 0)
        return ft_fail(err, FT_EARG, "source_tokens cannot be negative");
    if (options->source_tokens > INT32_MAX)
        return ft_fail(err, FT_ELIMIT, "sources have at most %d tokens", INT32_MAX);
    limits->cross_kv = ft_round_up(ft_min_size(positions, limits->tokens), FT_PAGE_TOKENS);
    limits->cross_kv_pages =
        options->source_tokens > 0
            ? ft_pages_for_tokens((size_t) options->source_tokens)
            : ft_pages_for_tokens(limits->tokens) + ft_min_size(limits->sequences, limits->tokens);
    return FT_OK;
}

/* The cache is paged, so its capacity may be less than sequences x context. */
static ft_status set_cache_limits(ft_session *session, const ft_session_options *options,
                                  ft_error *err)
{
    const ft_config *config = &session->model->config;
    int64_t positions = config->positions - config->position_offset;
    int64_t context = options->context > 0 ? options->context : positions < 4096 ? positions : 4096;
    if (options->context < 0 || options->cache_tokens < 0)
        return ft_fail(err, FT_EARG, "context and cache cannot be negative");
    if (context > positions && !has_dynamic_rope(&session->plan))
        return ft_fail(err, FT_ELIMIT,
                       "%s: a context of %" PRId64 " tokens, but the model has %" PRId64
                       " positions",
                       session->model->path, context, positions);
    if (context > INT32_MAX / 2 || options->cache_tokens > INT32_MAX)
        return ft_fail(err, FT_ELIMIT, "a cache has at most %d tokens", INT32_MAX);
    ft_limits *limits = &session->limits;
    session->context = (size_t) context;
    limits->context = ft_round_up((size_t) context, FT_PAGE_TOKENS);
    limits->pages = options->cache_tokens > 0 ? ft_pages_for_tokens((size_t) options->cache_tokens)
                                              : default_pages(limits);
    limits->selected = options->all_logits ? limits->tokens : limits->sequences;
    session->all_logits = options->all_logits;
    return session->plan.encoder_ops > 0 ? set_source_limits(session, options, err) : FT_OK;
}

static bool needs_first_token(const ft_plan *plan)
{
    for (int i = 0; i < plan->nop; i++)
        if (plan->op[i].kind == FT_OP_POOL && plan->op[i].attr.pooling == FT_POOL_FIRST)
            return true;
    return false;
}

/* The padded inputs. */
static ft_status open_padded(ft_session *session, ft_error *err)
{
    const ft_config *config = &session->model->config;
    bool has_source = session->plan.encoder_ops > 0;
    bool is_vision = ft_config_is_vision(config);
    ft_padded_batch_limits model = { .name = { is_vision ? NULL : "input_ids",
                                               is_vision ? NULL : "attention_mask",
                                               config->types > 0 ? "token_type_ids" : NULL },
                                     .tokens = session->limits.tokens,
                                     .sequences = session->limits.sequences,
                                     .positions = config->positions - config->position_offset,
                                     .limited_by = "model",
                                     .needs_first_token = needs_first_token(&session->plan) };
    ft_padded_batch_limits cached = model;
    cached.positions = (int64_t) session->context;
    cached.limited_by = "session's context";
    session->texts = has_source ? 2 : 1;
    FT_TRY(ft_padded_batch_init(&session->text[FT_PADDED_INPUT],
                                session->model->has_cache && !has_source ? &cached : &model, err));
    session->pixels_value = is_vision ? ft_plan_find(&session->plan, FT_PIXEL_VALUES) : -1;
    if (is_vision) /* images are written once and may be run several times */
        session->plan.value[session->pixels_value].keep = true;
    if (!has_source)
        return FT_OK;
    cached.name[FT_INPUT_IDS] = "decoder_input_ids";
    cached.name[FT_INPUT_MASK] = "decoder_attention_mask";
    return ft_padded_batch_init(&session->text[FT_PADDED_DECODER], &cached, err);
}

/* An array for each input of the batch that the plan reads. */
static ft_status open_packed(ft_session *session, ft_error *err)
{
    size_t tokens = session->limits.tokens;
    if (session->chunks != NULL)
        session->packed[FT_BATCH_IDS] = session->chunks->ids;
    for (int i = 0; i < session->plan.nvalue; i++) {
        ft_batch_input input = session->plan.value[i].input;
        if (input == FT_BATCH_NONE || session->packed[input] != NULL)
            continue;
        session->packed[input] = ft_calloc(tokens, sizeof *session->packed[input]);
        if (session->packed[input] == NULL)
            return ft_fail(err, FT_ENOMEM, "no memory for a session of %zu tokens", tokens);
    }
    return FT_OK;
}

static ft_status allocate(ft_session *session, ft_error *err)
{
    FT_TRY(open_padded(session, err));
    if (session->model->has_cache)
        FT_TRY(ft_chunk_batch_open(&session->chunks, &session->limits, err));
    FT_TRY(open_packed(session, err));
    FT_TRY(ft_plan_layout(&session->plan, &session->limits, err));
    return session->model->backend->prepare(&session->exec, session->model->device, &session->plan,
                                            &session->limits, err);
}

/*
 * Every image has the same number of rows, so max_tokens and max_sequences determine each other.
 * The default number of sequences differs from text models, since images take memory before
 * patchify.
 */
static ft_status set_image_limits(ft_session *session, const ft_session_options *options,
                                  ft_error *err)
{
    ft_limits *limits = &session->limits;
    size_t rows = (size_t) session->model->config.positions, max_images = limits->tokens / rows;
    if (options->max_tokens == 0 && options->max_sequences > 0)
        max_images = limits->sequences;
    else if (options->max_tokens == 0 && max_images == 0)
        max_images = 1;
    if (max_images == 0)
        return ft_fail(err, FT_ELIMIT, "max_tokens is %zu, but an image has %zu rows",
                       limits->tokens, rows);
    limits->sequences = ft_min_size(limits->sequences, max_images);
    if (limits->sequences > INT32_MAX / rows)
        return ft_fail(err, FT_ELIMIT,
                       "a forward pass has at most %d tokens, but %zu images have more", INT32_MAX,
                       limits->sequences);
    limits->tokens = limits->sequences * rows;
    return FT_OK;
}

static ft_status set_limits(ft_session *session, const ft_session_options *options, ft_error *err)
{
    if (options->threads < 0 || options->max_tokens < 0 || options->max_sequences < 0)
        return ft_fail(err, FT_EARG, "threads, tokens and sequences cannot be negative");
    if (options->max_tokens > INT32_MAX || options->max_sequences > INT32_MAX)
        return ft_fail(err, FT_ELIMIT, "a forward pass has at most %d tokens and sequences",
                       INT32_MAX);
    if (options->threads > FT_MAX_THREADS)
        return ft_fail(err, FT_ELIMIT, "%d threads, but a session has at most %d", options->threads,
                       FT_MAX_THREADS);
    session->limits = (ft_limits){
        .tokens = options->max_tokens > 0 ? (size_t) options->max_tokens : 4096,
        .sequences = options->max_sequences > 0  ? (size_t) options->max_sequences
                     : session->model->has_cache ? 64
                                                 : 512,
        .threads = options->threads > 0 ? options->threads : ft_num_processors(),
    };
    /* Counters are not thread-safe: calibration opens one session per thread instead. */
    if (session->model->quant.mode == FT_MODE_OBSERVE)
        session->limits.threads = 1;
    if (ft_config_is_vision(&session->model->config))
        return set_image_limits(session, options, err);
    return session->model->has_cache ? set_cache_limits(session, options, err) : FT_OK;
}

ft_status ft_session_open(ft_session **out, const ft_model *model,
                          const ft_session_options *options, ft_error *err)
{
    ft_session_options known;
    FT_REQUIRE(out, err);
    *out = NULL;
    FT_REQUIRE(model, err);
    FT_TRY(FT_READ_OPTIONS(&known, ft_session_options, source_tokens, options, err));
    ft_session *session = ft_calloc(1, sizeof *session);
    if (session == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a session");
    session->model = model;
    ft_status status = ft_plan_copy(&session->plan, &model->plan, err);
    if (status == FT_OK)
        status = set_limits(session, &known, err);
    if (status == FT_OK)
        status = keep_values(session, known.keep, err);
    if (status == FT_OK)
        status = allocate(session, err);
    if (status != FT_OK) {
        ft_session_close(session);
        return status;
    }
    *out = session;
    return FT_OK;
}

void ft_session_close(ft_session *session)
{
    if (session == NULL)
        return;
    if (session->exec != NULL)
        session->model->backend->release(session->exec);
    ft_plan_fini(&session->plan);
    for (int i = 0; i < FT_NUM_BATCH_INPUTS; i++)
        if (session->chunks == NULL || session->packed[i] != session->chunks->ids)
            free(session->packed[i]);
    ft_chunk_batch_close(session->chunks);
    for (int i = 0; i < session->texts; i++)
        ft_padded_batch_fini(&session->text[i]);
    free(session);
}
