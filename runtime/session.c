/*
 * session.c - one user's memory and inputs: pack rows, run the plan, hand out results.
 *
 * Inputs come as padded matrices [N, S]; only the positions that the mask keeps become rows of the
 * run.  Everything that could go wrong in a kernel because of an input is refused here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/session.h"

#include "kernels/half.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/plan.h"
#include "runtime/tensor.h"

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static const char *const input_names[FT_INPUTS] = {
    [FT_INPUT_IDS] = "input_ids",
    [FT_INPUT_MASK] = "attention_mask",
    [FT_INPUT_TYPES] = "token_type_ids",
};

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

/* Every page of every sequence may be there, or fewer: memory is what the tokens need. */
static ft_status set_cache_limits(ft_session *session, const ft_session_options *options,
                                  ft_error *err)
{
    int64_t positions = session->model->config.positions;
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
    return FT_OK;
}

static ft_status allocate(ft_session *session, ft_error *err)
{
    size_t tokens = session->limits.tokens, sequences = session->limits.sequences;
    session->start = ft_array(sequences + 1, sizeof *session->start);
    session->place = ft_array(tokens, sizeof *session->place);
    session->column = ft_array(tokens, sizeof *session->column);
    if (session->start == NULL || session->place == NULL || session->column == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a session of %zu tokens", tokens);
    if (session->model->has_cache)
        FT_TRY(ft_passages_open(&session->passages, &session->limits, err));
    session->ids_value = ft_plan_find(&session->plan, "input_ids");
    FT_TRY(ft_plan_layout(&session->plan, &session->limits, err));
    return session->model->backend->prepare(&session->exec, session->model->device, &session->plan,
                                            &session->limits, err);
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
    for (int i = 0; i < FT_INPUTS; i++)
        free(session->input[i]);
    free(session->start);
    free(session->place);
    free(session->column);
    free(session);
}

/* ---- Inputs ------------------------------------------------------------------------------- */

/* Read element i of an I32 or I64 tensor, which may be unaligned. */
static int64_t whole_number(const ft_tensor *tensor, size_t i)
{
    int32_t narrow;
    int64_t wide;
    if (tensor->dtype == FT_I64) {
        memcpy(&wide, (const char *) tensor->data + i * sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&narrow, (const char *) tensor->data + i * sizeof narrow, sizeof narrow);
    return narrow;
}

static ft_status check_input(const ft_session *session, int input, const ft_tensor *tensor,
                             ft_error *err)
{
    const char *name = input_names[input];
    char shape[FT_SHAPE_TEXT];
    ft_shape_text(shape, tensor->ndim, tensor->dim);
    int64_t positions = session->model->config.positions - session->model->config.position_offset;
    if (session->model->has_cache)
        positions = (int64_t) session->context;
    if (tensor->dtype != FT_I32 && tensor->dtype != FT_I64)
        return ft_fail(err, FT_EARG, "%s: dtype %s, expected I32 or I64", name,
                       ft_dtype_name(tensor->dtype));
    if (tensor->ndim != 2 || ft_tensor_count(tensor) == 0)
        return ft_fail(err, FT_ESHAPE, "%s: shape %s, expected [sequences, positions]", name,
                       shape);
    if (input != FT_INPUT_IDS &&
        ((size_t) tensor->dim[0] != session->rows || (size_t) tensor->dim[1] != session->cols))
        return ft_fail(err, FT_ESHAPE, "%s: shape %s, expected that of input_ids [%zu, %zu]", name,
                       shape, session->rows, session->cols);
    if ((size_t) tensor->dim[0] > session->limits.sequences)
        return ft_fail(err, FT_ELIMIT, "%s: %" PRId64 " sequences, but the session allows %zu",
                       name, tensor->dim[0], session->limits.sequences);
    if (tensor->dim[1] > positions)
        return ft_fail(
            err, FT_ELIMIT, "%s: sequences of %" PRId64 " positions, but the %s has %" PRId64, name,
            tensor->dim[1], session->model->has_cache ? "session's context" : "model", positions);
    return FT_OK;
}

static ft_status check_mask(const int64_t *mask, size_t count, size_t cols, ft_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (mask[i] != 0 && mask[i] != 1)
            return ft_fail(err, FT_EARG, "attention_mask[%zu][%zu]: %" PRId64 ", expected 0 or 1",
                           i / cols, i % cols, mask[i]);
    return FT_OK;
}

/* A copy of the tensor's numbers; free() it. */
static ft_status copy_input(int64_t **out, int input, const ft_tensor *tensor, ft_error *err)
{
    size_t count = ft_tensor_count(tensor);
    int64_t *copy = ft_array(count, sizeof *copy);
    if (copy == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu elements", input_names[input], count);
    for (size_t i = 0; i < count; i++)
        copy[i] = whole_number(tensor, i);
    ft_status status = FT_OK;
    if (input == FT_INPUT_MASK)
        status = check_mask(copy, count, (size_t) tensor->dim[1], err);
    if (status == FT_OK)
        *out = copy;
    else
        free(copy);
    return status;
}

static int find_input(const ft_session *session, const char *name)
{
    for (int i = 0; i < FT_INPUTS; i++)
        if (strcmp(input_names[i], name) == 0 &&
            (i != FT_INPUT_TYPES || session->model->config.types > 0))
            return i;
    return -1;
}

ft_status ft_session_set(ft_session *session, const char *name, const ft_tensor *tensor,
                         ft_error *err)
{
    int input = find_input(session, name);
    if (input < 0)
        return ft_fail(err, FT_EARG, "%s: the model has no such input", name);
    if (input != FT_INPUT_IDS && session->input[FT_INPUT_IDS] == NULL)
        return ft_fail(err, FT_EARG, "%s: set input_ids first", name);
    FT_TRY(check_input(session, input, tensor, err));
    int64_t *copy = NULL;
    FT_TRY(copy_input(&copy, input, tensor, err));
    for (int i = 0; i < FT_INPUTS; i++)
        if (i == input || input == FT_INPUT_IDS) {
            free(session->input[i]);
            session->input[i] = NULL;
        }
    session->input[input] = copy;
    session->rows = (size_t) tensor->dim[0];
    session->cols = (size_t) tensor->dim[1];
    session->ran = false;
    return FT_OK;
}

/* ---- Packing ------------------------------------------------------------------------------ */

static bool is_token(const ft_session *session, size_t place)
{
    const int64_t *mask = session->input[FT_INPUT_MASK];
    return mask == NULL || mask[place] != 0;
}

/* The rows of sequence `row`: where each came from. */
static ft_status pack_sequence(ft_session *session, size_t row, size_t *tokens, ft_error *err)
{
    size_t before = *tokens;
    session->start[row] = (int32_t) before;
    for (size_t col = 0; col < session->cols; col++) {
        size_t place = row * session->cols + col;
        if (!is_token(session, place))
            continue;
        if (*tokens == session->limits.tokens)
            return ft_fail(err, FT_ELIMIT,
                           "input_ids: more than the %zu tokens that the session allows",
                           session->limits.tokens);
        session->place[(*tokens)++] = place;
    }
    if (*tokens == before)
        return ft_fail(err, FT_EARG, "attention_mask: sequence %zu has no token", row);
    if (session->place[before] != row * session->cols && session->reads_first)
        return ft_fail(err, FT_EARG,
                       "attention_mask: sequence %zu masks its first token, which the model reads",
                       row);
    if (session->batch.longest < *tokens - before)
        session->batch.longest = *tokens - before;
    return FT_OK;
}

static ft_status pack(ft_session *session, ft_error *err)
{
    size_t tokens = 0;
    session->batch = (ft_batch){ .sequences = session->rows, .start = session->start };
    session->reads_first = false;
    for (int i = 0; i < session->plan.nop; i++)
        session->reads_first =
            session->reads_first || (session->plan.op[i].kind == FT_OP_POOL &&
                                     session->plan.op[i].attr.pooling == FT_POOL_FIRST);
    for (size_t row = 0; row < session->rows; row++)
        FT_TRY(pack_sequence(session, row, &tokens, err));
    session->start[session->rows] = (int32_t) tokens;
    session->batch.tokens = tokens;
    return FT_OK;
}

/* Write one int32 a token, after checking that each lies below `bound`. */
static ft_status write_column(ft_session *session, const char *name, const int64_t *source,
                              int32_t bound, ft_error *err)
{
    int value = ft_plan_find(&session->plan, name);
    if (value < 0)
        return FT_OK;
    for (size_t i = 0; i < session->batch.tokens; i++) {
        size_t place = session->place[i];
        int64_t number = source == NULL ? 0 : source[place];
        if (number < 0 || number >= bound)
            return ft_fail(err, FT_EARG, "%s[%zu][%zu]: %" PRId64 " is outside 0 to %d", name,
                           place / session->cols, place % session->cols, number, bound - 1);
        session->column[i] = (int32_t) number;
    }
    return session->model->backend->write(session->exec, value, session->column,
                                          session->batch.tokens, err);
}

/*
 * BERT numbers positions by column.  RoBERTa counts the tokens of a row that are not padding, also
 * masked ones, and gives padding tokens the padding id itself.
 */
static ft_status write_positions(ft_session *session, ft_error *err)
{
    const ft_config *config = &session->model->config;
    const int64_t *ids = session->input[FT_INPUT_IDS];
    int value = ft_plan_find(&session->plan, "positions");
    if (value < 0)
        return FT_OK;
    size_t next = 0; /* tokens before this place are counted */
    int32_t counted = 0;
    for (size_t i = 0; i < session->batch.tokens; i++) {
        size_t place = session->place[i], column = place % session->cols;
        if (next <= place - column) {
            next = place - column;
            counted = 0;
        }
        for (; next < place; next++)
            counted += ids[next] != config->padding_id;
        if (config->position_offset == 0)
            session->column[i] = (int32_t) column;
        else if (ids[place] == config->padding_id)
            session->column[i] = config->padding_id;
        else
            session->column[i] = config->position_offset + counted;
    }
    return session->model->backend->write(session->exec, value, session->column,
                                          session->batch.tokens, err);
}

/* Every sequence from its beginning, in a cache that forgets what it held. */
static ft_status pack_passages(ft_session *session, ft_error *err)
{
    ft_passages *passages = session->passages;
    const ft_batch *batch = &session->batch;
    ft_pages_clear(&passages->pages);
    ft_passages_clear(passages);
    for (size_t i = 0; i < batch->sequences; i++) {
        size_t first = (size_t) batch->start[i], count = (size_t) batch->start[i + 1] - first;
        if (!ft_pages_reserve(&passages->pages, i, count))
            return ft_fail(err, FT_ELIMIT,
                           "input_ids: %zu tokens do not fit into the session's cache of %zu",
                           batch->tokens, session->limits.pages * FT_PAGE);
        ft_passages_add(passages, &(ft_passage){ .seat = i,
                                                 .reach = count,
                                                 .ids = session->column + first,
                                                 .count = count,
                                                 .wanted = session->every_logits ? FT_WANT_ALL
                                                                                 : FT_WANT_LAST });
    }
    return FT_OK;
}

ft_status ft_session_run_counting(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    const ft_config *config = &session->model->config;
    session->ran = false;
    if (session->input[FT_INPUT_IDS] == NULL)
        return ft_fail(err, FT_EARG, "input_ids is not set");
    FT_TRY(pack(session, err));
    FT_TRY(write_column(session, "token_type_ids", session->input[FT_INPUT_TYPES], config->types,
                        err));
    FT_TRY(
        write_column(session, "input_ids", session->input[FT_INPUT_IDS], config->vocabulary, err));
    if (session->passages != NULL) {
        FT_TRY(pack_passages(session, err));
        session->batch = session->passages->batch;
    }
    FT_TRY(write_positions(session, err));
    FT_TRY(session->model->backend->run(session->exec, &session->batch, counts, err));
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

ft_status ft_session_run_passages(ft_session *session, ft_error *err)
{
    const ft_backend *backend = session->model->backend;
    session->ran = false;
    session->batch = session->passages->batch;
    FT_TRY(backend->write(session->exec, session->ids_value, session->passages->ids,
                          session->batch.tokens, err));
    return backend->run(session->exec, &session->batch, NULL, err);
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

/* Move packed rows to their places in [N, S, cols], last first; the rest becomes zeros. */
static void unpack(const ft_session *session, float *out, size_t cols)
{
    size_t place = session->rows * session->cols;
    for (size_t i = session->batch.tokens; i-- > 0;) {
        for (place--; place > session->place[i]; place--)
            memset(out + place * cols, 0, cols * sizeof *out);
        memmove(out + place * cols, out + i * cols, cols * sizeof *out);
    }
    memset(out, 0, place * cols * sizeof *out);
}

ft_status ft_session_get(const ft_session *session, const char *name, ft_tensor *out, ft_error *err)
{
    int value = find_result(session, name);
    if (value < 0)
        return ft_fail(err, FT_EARG, "%s: neither an output of the model nor a kept value", name);
    if (!session->ran)
        return ft_fail(err, FT_EARG, "%s: nothing has been run", name);
    const ft_value *v = &session->plan.value[value];
    size_t rows = ft_batch_rows(&session->batch, v->rows);
    void *data = out->data;
    *out =
        (ft_tensor){ .dtype = FT_F32, .ndim = 2, .dim = { (int64_t) rows, v->cols }, .data = data };
    bool padded = is_padded_output(session, name);
    if (padded) {
        out->ndim = 3;
        out->dim[0] = (int64_t) session->rows;
        out->dim[1] = (int64_t) session->cols;
        out->dim[2] = v->cols;
    }
    if (data == NULL)
        return FT_OK;
    FT_TRY(ft_session_read_real(session, value, data, rows, err));
    if (padded)
        unpack(session, data, (size_t) v->cols);
    return FT_OK;
}
