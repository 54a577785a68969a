/*
 * session.c - one user's memory and inputs: pack rows, run the plan, hand out results.
 *
 * An encoder-decoder runs twice: its first part on the sources, the other on the targets.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/session.h"

#include "kernels/half.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/pixels.h"
#include "runtime/plan.h"
#include "runtime/tensor.h"

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* ---- Opening ------------------------------------------------------------------------------ */

static ft_status keep_values(ft_session *session, const char *const *names, ft_error *err)
{
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        int value = ft_plan_find(&session->plan, names[i]);
        if (value < 0)
            return ft_fail(err, FT_EARG, "%s: no value \"%s\" in the plan", session->model->path,
                           names[i]);
        if (!ft_plan_stores(&session->plan, value))
            return ft_fail(err, FT_EARG, "%s: value \"%s\" exists only inside a fused operation",
                           session->model->path, names[i]);
        session->plan.value[value].keep = true;
    }
    return FT_OK;
}

/* Whether positions beyond those of the model are rotated too. */
static bool stretches(const ft_plan *plan)
{
    for (int i = 0; i < plan->nop; i++)
        if (plan->op[i].kind == FT_OP_STORE)
            return plan->op[i].attr.rope_positions > 0;
    return false;
}

/* One whole context, or all sequences of a run that are read from their beginning. */
static size_t pages_of_one_run(const ft_limits *limits)
{
    size_t run = ft_pages_for(limits->tokens) + ft_min_size(limits->sequences, limits->tokens);
    size_t context = limits->context / FT_PAGE;
    return run > context ? run : context;
}

/* What is remembered of sources: of one as much as a run can read, of all as much as they are. */
static ft_status set_source_limits(ft_session *session, const ft_session_options *options,
                                   ft_error *err)
{
    ft_limits *limits = &session->limits;
    const ft_config *config = &session->model->config;
    size_t positions = (size_t) (config->positions - config->position_offset);
    if (options->source_tokens < 0)
        return ft_fail(err, FT_EARG, "tokens of sources cannot be negative");
    if (options->source_tokens > INT32_MAX)
        return ft_fail(err, FT_ELIMIT, "sources have at most %d tokens", INT32_MAX);
    limits->memory = ft_round_up(ft_min_size(positions, limits->tokens), FT_PAGE);
    limits->memory_pages =
        options->source_tokens > 0
            ? ft_pages_for((size_t) options->source_tokens)
            : ft_pages_for(limits->tokens) + ft_min_size(limits->sequences, limits->tokens);
    return FT_OK;
}

/* Every page of every sequence may be there, or fewer: memory is what the tokens need. */
static ft_status set_cache_limits(ft_session *session, const ft_session_options *options,
                                  ft_error *err)
{
    const ft_config *config = &session->model->config;
    int64_t positions = config->positions - config->position_offset;
    int64_t context = options->context > 0 ? options->context : positions < 4096 ? positions : 4096;
    if (options->context < 0 || options->cache_tokens < 0)
        return ft_fail(err, FT_EARG, "context and cache cannot be negative");
    if (context > positions && !stretches(&session->plan))
        return ft_fail(err, FT_ELIMIT,
                       "%s: a context of %" PRId64 " tokens, but the model has %" PRId64
                       " positions",
                       session->model->path, context, positions);
    if (context > INT32_MAX / 2 || options->cache_tokens > INT32_MAX)
        return ft_fail(err, FT_ELIMIT, "a cache has at most %d tokens", INT32_MAX);
    ft_limits *limits = &session->limits;
    session->context = (size_t) context;
    limits->context = ft_round_up((size_t) context, FT_PAGE);
    limits->pages = options->cache_tokens > 0 ? ft_pages_for((size_t) options->cache_tokens)
                                              : pages_of_one_run(limits);
    limits->selected = options->every_logits ? limits->tokens : limits->sequences;
    session->every_logits = options->every_logits;
    return session->plan.source_ops > 0 ? set_source_limits(session, options, err) : FT_OK;
}

static bool reads_first(const ft_plan *plan)
{
    for (int i = 0; i < plan->nop; i++)
        if (plan->op[i].kind == FT_OP_POOL && plan->op[i].attr.pooling == FT_POOL_FIRST)
            return true;
    return false;
}

/* The matrices that callers set. */
static ft_status open_texts(ft_session *session, ft_error *err)
{
    const ft_config *config = &session->model->config;
    bool has_source = session->plan.source_ops > 0;
    bool sees = ft_config_sees(config);
    ft_padded_limits model = { .name = { sees ? NULL : "input_ids", sees ? NULL : "attention_mask",
                                         config->types > 0 ? "token_type_ids" : NULL },
                               .tokens = session->limits.tokens,
                               .sequences = session->limits.sequences,
                               .positions = config->positions - config->position_offset,
                               .whose = "model",
                               .reads_first = reads_first(&session->plan) };
    ft_padded_limits cached = model;
    cached.positions = (int64_t) session->context;
    cached.whose = "session's context";
    session->texts = has_source ? 2 : 1;
    FT_TRY(ft_padded_init(&session->text[FT_TEXT],
                          session->model->has_cache && !has_source ? &cached : &model, err));
    session->ids_value[FT_TEXT] = ft_plan_find(&session->plan, "input_ids");
    session->pixels_value = sees ? ft_plan_find(&session->plan, FT_PIXEL_VALUES) : -1;
    if (sees) /* they are written once, for as many runs as there are */
        session->plan.value[session->pixels_value].keep = true;
    if (!has_source)
        return FT_OK;
    cached.name[FT_INPUT_IDS] = "decoder_input_ids";
    cached.name[FT_INPUT_MASK] = "decoder_attention_mask";
    session->ids_value[FT_TARGET] = ft_plan_find(&session->plan, "decoder_input_ids");
    return ft_padded_init(&session->text[FT_TARGET], &cached, err);
}

static ft_status allocate(ft_session *session, ft_error *err)
{
    size_t tokens = session->limits.tokens;
    session->column = ft_array(tokens, sizeof *session->column);
    if (session->column == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a session of %zu tokens", tokens);
    FT_TRY(open_texts(session, err));
    if (session->model->has_cache)
        FT_TRY(ft_passages_open(&session->passages, &session->limits, err));
    session->positions_value = ft_plan_find(&session->plan, "positions");
    FT_TRY(ft_plan_layout(&session->plan, &session->limits, err));
    return session->model->backend->prepare(&session->exec, session->model->device, &session->plan,
                                            &session->limits, err);
}

/*
 * All images have as many rows: a run takes so many that both bounds hold.  The default is not that
 * of texts, for images take memory before they are rows.
 */
static ft_status set_image_limits(ft_session *session, const ft_session_options *options,
                                  ft_error *err)
{
    ft_limits *limits = &session->limits;
    size_t rows = (size_t) session->model->config.positions, most = limits->tokens / rows;
    if (options->max_tokens == 0 && options->max_sequences > 0)
        most = limits->sequences;
    else if (options->max_tokens == 0 && most == 0)
        most = 1;
    if (most == 0)
        return ft_fail(err, FT_ELIMIT, "runs of %zu tokens, but an image has %zu", limits->tokens,
                       rows);
    limits->sequences = ft_min_size(limits->sequences, most);
    if (limits->sequences > INT32_MAX / rows)
        return ft_fail(err, FT_ELIMIT, "a run has at most %d tokens, but %zu images have more",
                       INT32_MAX, limits->sequences);
    limits->tokens = limits->sequences * rows;
    return FT_OK;
}

static ft_status set_limits(ft_session *session, const ft_session_options *options, ft_error *err)
{
    if (options->threads < 0 || options->max_tokens < 0 || options->max_sequences < 0)
        return ft_fail(err, FT_EARG, "threads, tokens and sequences cannot be negative");
    if (options->max_tokens > INT32_MAX || options->max_sequences > INT32_MAX)
        return ft_fail(err, FT_ELIMIT, "a run has at most %d tokens and sequences", INT32_MAX);
    if (options->threads > FT_MAX_THREADS)
        return ft_fail(err, FT_ELIMIT, "%d threads, but a session has at most %d", options->threads,
                       FT_MAX_THREADS);
    session->limits = (ft_limits){
        .tokens = options->max_tokens > 0 ? (size_t) options->max_tokens : 4096,
        .sequences = options->max_sequences > 0  ? (size_t) options->max_sequences
                     : session->model->has_cache ? 64
                                                 : 512,
        .threads = options->threads > 0 ? options->threads : omp_get_num_procs(),
    };
    /* Counters have one owner: calibration runs a session for each thread instead. */
    if (session->model->purpose.mode == FT_MODE_OBSERVE)
        session->limits.threads = 1;
    if (ft_config_sees(&session->model->config))
        return set_image_limits(session, options, err);
    return session->model->has_cache ? set_cache_limits(session, options, err) : FT_OK;
}

ft_status ft_session_open(ft_session **out, const ft_model *model,
                          const ft_session_options *options, ft_error *err)
{
    static const ft_session_options defaults;
    *out = NULL;
    ft_session *session = ft_array(1, sizeof *session);
    if (session == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a session");
    session->model = model;
    if (options == NULL)
        options = &defaults;
    ft_status status = ft_plan_copy(&session->plan, &model->plan, err);
    if (status == FT_OK)
        status = set_limits(session, options, err);
    if (status == FT_OK)
        status = keep_values(session, options->keep, err);
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
    ft_passages_close(session->passages);
    for (int i = 0; i < session->texts; i++)
        ft_padded_fini(&session->text[i]);
    free(session->column);
    free(session);
}

/* ---- Inputs ------------------------------------------------------------------------------- */

/* Images go where the run reads them: nothing else is made of them before. */
static ft_status set_images(ft_session *session, const ft_tensor *tensor, ft_error *err)
{
    const ft_config *config = &session->model->config;
    size_t images = (size_t) tensor->dim[0];
    ft_padded *rows = &session->text[FT_TEXT];
    session->ran = false;
    rows->rows = 0;
    FT_TRY(ft_pixels_check(config, tensor, FT_PIXEL_VALUES, err));
    if (images > session->limits.sequences)
        return ft_fail(err, FT_ELIMIT, "%s: %zu images, but the session allows %zu",
                       FT_PIXEL_VALUES, images, session->limits.sequences);
    FT_TRY(session->model->backend->write(session->exec, session->pixels_value, tensor->data,
                                          images, err));
    ft_padded_fill(rows, images, (size_t) config->positions);
    return FT_OK;
}

ft_status ft_session_set(ft_session *session, const char *name, const ft_tensor *tensor,
                         ft_error *err)
{
    if (session->pixels_value >= 0 && strcmp(name, FT_PIXEL_VALUES) == 0)
        return set_images(session, tensor, err);
    for (int i = 0; i < session->texts; i++) {
        int input = ft_padded_find(&session->text[i], name);
        if (input < 0)
            continue;
        session->ran = false;
        return ft_padded_set(&session->text[i], input, tensor, err);
    }
    return ft_fail(err, FT_EARG, "%s: the model has no such input", name);
}

static ft_status write_column(ft_session *session, int value, size_t tokens, ft_error *err)
{
    return session->model->backend->write(session->exec, value, session->column, tokens, err);
}

/* The ids of a text, packed, into session->column. */
static ft_status take_ids(ft_session *session, int text, ft_error *err)
{
    FT_TRY(ft_padded_pack(&session->text[text], err));
    return ft_padded_column(&session->text[text], FT_INPUT_IDS, session->model->config.vocabulary,
                            session->column, err);
}

/* Inputs beside the ids. */
static ft_status write_others(ft_session *session, ft_error *err)
{
    const ft_config *config = &session->model->config;
    const ft_padded *text = &session->text[FT_TEXT];
    int types = ft_plan_find(&session->plan, "token_type_ids");
    if (types >= 0) {
        FT_TRY(ft_padded_column(text, FT_INPUT_TYPES, config->types, session->column, err));
        FT_TRY(write_column(session, types, text->tokens, err));
    }
    if (session->positions_value < 0)
        return FT_OK;
    ft_padded_positions(text, config->position_offset, config->padding_id, session->column);
    return write_column(session, session->positions_value, text->tokens, err);
}

/* ---- Running ------------------------------------------------------------------------------ */

static ft_status run(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    return session->model->backend->run(session->exec, &session->batch, counts, err);
}

/* An encoder, or of an encoder-decoder the encoder. */
static ft_batch batch_of(const ft_padded *text)
{
    return (ft_batch){ .tokens = text->tokens,
                       .sequences = text->rows,
                       .longest = text->longest,
                       .start = text->start };
}

static ft_status refuse_to_keep(const ft_session *session, int text, const char *where,
                                size_t pages, ft_error *err)
{
    return ft_fail(err, FT_ELIMIT, "%s: %zu tokens do not fit into the session's %s of %zu",
                   session->text[text].limits.name[FT_INPUT_IDS], session->text[text].tokens, where,
                   pages * FT_PAGE);
}

/* Every text from its beginning, in a cache that forgets what it held. */
static ft_status add_passages(ft_session *session, int text, ft_error *err)
{
    ft_passages *passages = session->passages;
    const ft_padded *from = &session->text[text];
    ft_pages_clear(&passages->pages);
    ft_passages_clear(passages);
    for (size_t i = 0; i < from->rows; i++) {
        size_t first = (size_t) from->start[i], count = (size_t) from->start[i + 1] - first;
        if (!ft_pages_reserve(&passages->pages, i, count))
            return refuse_to_keep(session, text, "cache", session->limits.pages, err);
        ft_passages_add(passages, &(ft_passage){ .seat = i,
                                                 .source = i,
                                                 .reach = count,
                                                 .ids = session->column + first,
                                                 .count = count,
                                                 .wanted = session->every_logits ? FT_WANT_ALL
                                                                                 : FT_WANT_LAST });
    }
    session->batch = passages->batch;
    return FT_OK;
}

/* Every source, into a memory that forgets what it held. */
static ft_status add_sources(ft_session *session, ft_error *err)
{
    ft_passages *passages = session->passages;
    const ft_padded *from = &session->text[FT_SOURCE];
    ft_pages_clear(&passages->sources);
    ft_passages_clear_for_sources(passages);
    for (size_t i = 0; i < from->rows; i++) {
        size_t first = (size_t) from->start[i], count = (size_t) from->start[i + 1] - first;
        if (!ft_pages_reserve(&passages->sources, i, count))
            return refuse_to_keep(session, FT_SOURCE, "memory", session->limits.memory_pages, err);
        ft_passages_add_source(passages, i, session->column + first, count);
    }
    session->batch = session->source_batch = passages->batch;
    return FT_OK;
}

static ft_status run_sources(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    FT_TRY(take_ids(session, FT_SOURCE, err));
    FT_TRY(add_sources(session, err));
    FT_TRY(write_column(session, session->ids_value[FT_SOURCE], session->batch.tokens, err));
    FT_TRY(write_others(session, err));
    return run(session, counts, err);
}

/* A decoder's texts, or the targets of an encoder-decoder. */
static ft_status run_texts(ft_session *session, int text, ft_counts *const *counts, ft_error *err)
{
    FT_TRY(take_ids(session, text, err));
    FT_TRY(add_passages(session, text, err));
    FT_TRY(write_column(session, session->ids_value[text], session->batch.tokens, err));
    return run(session, counts, err);
}

static ft_status run_encoder(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    FT_TRY(take_ids(session, FT_TEXT, err));
    session->batch = batch_of(&session->text[FT_TEXT]);
    FT_TRY(write_column(session, session->ids_value[FT_TEXT], session->batch.tokens, err));
    FT_TRY(write_others(session, err));
    return run(session, counts, err);
}

static ft_status run_images(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    if (session->text[FT_TEXT].rows == 0)
        return ft_fail(err, FT_EARG, "%s is not set", FT_PIXEL_VALUES);
    session->batch = batch_of(&session->text[FT_TEXT]);
    return run(session, counts, err);
}

static ft_status run_translator(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    const ft_padded *source = &session->text[FT_SOURCE], *target = &session->text[FT_TARGET];
    if (target->input[FT_INPUT_IDS] != NULL && source->input[FT_INPUT_IDS] != NULL &&
        target->rows != source->rows)
        return ft_fail(err, FT_ESHAPE, "decoder_input_ids: %zu sequences, but %zu sources",
                       target->rows, source->rows);
    FT_TRY(run_sources(session, counts, err));
    return run_texts(session, FT_TARGET, counts, err);
}

ft_status ft_session_run_counting(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    session->ran = false;
    if (session->texts > 1)
        FT_TRY(run_translator(session, counts, err));
    else if (session->pixels_value >= 0)
        FT_TRY(run_images(session, counts, err));
    else if (session->passages != NULL)
        FT_TRY(run_texts(session, FT_TEXT, counts, err));
    else
        FT_TRY(run_encoder(session, counts, err));
    session->ran = true;
    return FT_OK;
}

ft_status ft_session_collect(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    return session->model->backend->collect(session->exec, counts, err);
}

ft_status ft_session_run(ft_session *session, ft_error *err)
{
    return ft_session_run_counting(session, NULL, err);
}

/* Positions of sources that were added without padding: ft_padded_positions() of such a matrix. */
static ft_status write_source_positions(ft_session *session, ft_error *err)
{
    const ft_config *config = &session->model->config;
    const ft_batch *batch = &session->batch;
    for (size_t i = 0; i < batch->sequences; i++) {
        int32_t counted = 0;
        for (int32_t row = batch->start[i]; row < batch->start[i + 1]; row++) {
            bool pads = session->passages->ids[row] == config->padding_id;
            session->column[row] = pads ? config->padding_id : config->position_offset + counted;
            counted += !pads;
        }
    }
    return write_column(session, session->positions_value, batch->tokens, err);
}

ft_status ft_session_run_passages(ft_session *session, ft_error *err)
{
    const ft_backend *backend = session->model->backend;
    session->ran = false;
    session->batch = session->passages->batch;
    bool target = session->texts > 1 && !session->batch.source;
    FT_TRY(backend->write(session->exec, session->ids_value[target ? FT_TARGET : FT_TEXT],
                          session->passages->ids, session->batch.tokens, err));
    if (session->batch.source)
        FT_TRY(write_source_positions(session, err));
    return run(session, NULL, err);
}

/* ---- Outputs ------------------------------------------------------------------------------ */

/* The value that holds output or kept value `name`, or -1. */
static int find_result(const ft_session *session, const char *name)
{
    for (int i = 0; i < session->plan.noutput; i++)
        if (strcmp(session->plan.output[i].name, name) == 0)
            return session->plan.output[i].value;
    int value = ft_plan_find(&session->plan, name);
    return value >= 0 && session->plan.value[value].keep ? value : -1;
}

static bool is_padded_output(const ft_session *session, const char *name)
{
    return strcmp(name, "last_hidden_state") == 0 ||
           strcmp(name, "encoder_last_hidden_state") == 0 ||
           (session->every_logits && strcmp(name, "logits") == 0);
}

/* Element i of a matrix as it is stored: a real value, a code, or the number of an input. */
static float stored_number(ft_dtype dtype, const void *data, size_t i)
{
    int32_t number;
    uint16_t half;
    float real;
    if (dtype == FT_I8)
        return (float) ((const int8_t *) data)[i];
    if (dtype == FT_F16 || dtype == FT_BF16) {
        memcpy(&half, (const char *) data + i * sizeof half, sizeof half);
        return dtype == FT_F16 ? ft_float_from_f16(half) : ft_float_from_bf16(half);
    }
    if (dtype == FT_I32) {
        memcpy(&number, (const char *) data + i * sizeof number, sizeof number);
        return (float) number;
    }
    memcpy(&real, (const char *) data + i * sizeof real, sizeof real);
    return real;
}

/* Stored elements may be narrower than real numbers, so expand from the back. */
ft_status ft_session_read_real(const ft_session *session, int value, float *out, size_t rows,
                               ft_error *err)
{
    const ft_value *v = &session->plan.value[value];
    size_t cols = (size_t) v->cols;
    float *scales = v->dynamic ? ft_array(rows, sizeof *scales) : NULL;
    if (v->dynamic && scales == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu scales", v->name, rows);
    ft_status status = session->model->backend->read(session->exec, value, out, scales, rows, err);
    for (size_t i = status == FT_OK ? rows * cols : 0; i-- > 0;) {
        float scale = v->dynamic ? scales[i / cols] : v->scale > 0.0f ? v->scale : 1.0f;
        out[i] = scale * stored_number(v->dtype, out, i);
    }
    free(scales);
    return status;
}

bool ft_session_has_source_rows(const ft_session *session, int value)
{
    int maker = ft_plan_producer(&session->plan, value);
    if (maker < 0)
        return session->texts > 1 && value != session->ids_value[FT_TARGET];
    return maker < session->plan.source_ops;
}

ft_status ft_session_get(const ft_session *session, const char *name, ft_tensor *out, ft_error *err)
{
    int value = find_result(session, name);
    if (value < 0)
        return ft_fail(err, FT_EARG, "%s: neither an output of the model nor a kept value", name);
    if (!session->ran)
        return ft_fail(err, FT_EARG, "%s: nothing has been run", name);
    const ft_value *v = &session->plan.value[value];
    bool source = ft_session_has_source_rows(session, value);
    const ft_padded *text = &session->text[source ? FT_SOURCE : session->texts - 1];
    size_t rows = ft_batch_rows(source ? &session->source_batch : &session->batch, v->rows);
    void *data = out->data;
    *out =
        (ft_tensor){ .dtype = FT_F32, .ndim = 2, .dim = { (int64_t) rows, v->cols }, .data = data };
    bool padded = is_padded_output(session, name);
    if (padded) {
        out->ndim = 3;
        out->dim[0] = (int64_t) text->rows;
        out->dim[1] = (int64_t) text->cols;
        out->dim[2] = v->cols;
    }
    if (data == NULL)
        return FT_OK;
    FT_TRY(ft_session_read_real(session, value, data, rows, err));
    if (padded)
        ft_padded_unpack(text, data, (size_t) v->cols);
    return FT_OK;
}
