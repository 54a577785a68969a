/*
 * session.c - set inputs, run the plan, read outputs.
 *
 * An encoder-decoder runs in two passes: the encoder on the sources, the decoder on the targets.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/session.h"

#include "kernels/half.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/pixels.h"
#include "runtime/graph/plan.h"
#include "runtime/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* ---- Inputs ------------------------------------------------------------------------------- */

/* Images are copied directly into the plan's input value. */
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

/* Checks that apply to every input. */
static ft_status check_tensor(const char *name, const ft_tensor *tensor, ft_error *err)
{
    if (ft_dtype_name(tensor->dtype) == NULL)
        return ft_fail(err, FT_EARG, "%s: dtype is %d, which is not an ft_dtype", name,
                       (int) tensor->dtype);
    if (tensor->layout != FT_ROW)
        return ft_fail(err, FT_EARG, "%s: layout is %d, expected %d (FT_ROW)", name,
                       (int) tensor->layout, FT_ROW);
    if (tensor->ndim < 0 || tensor->ndim > FT_MAX_DIMS)
        return ft_fail(err, FT_EARG, "%s: ndim is %d, expected 0 to %d", name, tensor->ndim,
                       FT_MAX_DIMS);
    return tensor->data != NULL ? FT_OK : ft_fail(err, FT_EARG, "%s: has no data", name);
}

ft_status ft_session_set(ft_session *session, const char *name, const ft_tensor *tensor,
                         ft_error *err)
{
    FT_NEED(session, err);
    FT_NEED(name, err);
    FT_NEED(tensor, err);
    FT_TRY(check_tensor(name, tensor, err));
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

/* Pack the ids of an input into session->packed_ids. */
static ft_status take_ids(ft_session *session, int text, ft_error *err)
{
    FT_TRY(ft_padded_pack(&session->text[text], err));
    return ft_padded_column(&session->text[text], FT_INPUT_IDS, session->model->config.vocabulary,
                            session->column, err);
}

/* token_type_ids and position ids. */
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

/* The batch of an encoder pass. */
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

/* One chunk per complete sequence, in a cleared KV cache. */
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

/* All sources, into a cleared cross-attention KV cache. */
static ft_status add_sources(ft_session *session, ft_error *err)
{
    ft_passages *passages = session->passages;
    const ft_padded *from = &session->text[FT_SOURCE];
    ft_pages_clear(&passages->sources);
    ft_passages_clear_for_sources(passages);
    for (size_t i = 0; i < from->rows; i++) {
        size_t first = (size_t) from->start[i], count = (size_t) from->start[i + 1] - first;
        if (!ft_pages_reserve(&passages->sources, i, count))
            return refuse_to_keep(session, FT_SOURCE, "cross-attention cache",
                                  session->limits.memory_pages, err);
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

/* A decoder, or the decoder of an encoder-decoder. */
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
    FT_NEED(session, err);
    return ft_session_run_counting(session, NULL, err);
}

/* Position ids of packed sources; the same rule as ft_padded_positions(). */
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

/* The plan value of output or kept value `name`, or -1. */
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

/* Element i of a stored matrix as float, without its scale. */
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

/* Stored elements may be smaller than F32, so convert in place from the last to the first. */
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

static bool is_output(const ft_session *session, const char *name)
{
    for (int i = 0; i < session->plan.noutput; i++)
        if (strcmp(session->plan.output[i].name, name) == 0)
            return true;
    return false;
}

/* NaN and infinity must not silently become a class or a null in JSON. */
static ft_status check_finite(const ft_session *session, const char *name, size_t first,
                              const ft_tensor *out, ft_error *err)
{
    const float *x = out->data;
    size_t count = ft_tensor_count(out), cols = count / (size_t) out->dim[0], i = 0;
    while (i < count && isfinite(x[i]))
        i++;
    if (i == count)
        return FT_OK;
    return ft_fail(err, FT_ENUMBER,
                   "%s: %s: row %zu holds %g, expected finite numbers; weights or inputs may be "
                   "damaged or too large",
                   session->model->path, name, first + i / cols, (double) fabsf(x[i]));
}

ft_status ft_session_get_from(const ft_session *session, const char *name, size_t first,
                              ft_tensor *out, ft_error *err)
{
    int value = find_result(session, name);
    if (value < 0)
        return ft_fail(err, FT_EARG,
                       "%s: neither an output of the model nor a value named in options.keep",
                       name);
    if (!session->ran)
        return ft_fail(err, FT_EARG, "%s: call ft_session_run() after setting the inputs", name);
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
    return is_output(session, name) ? check_finite(session, name, first, out, err) : FT_OK;
}

ft_status ft_session_get(const ft_session *session, const char *name, ft_tensor *out, ft_error *err)
{
    FT_NEED(session, err);
    FT_NEED(name, err);
    FT_NEED(out, err);
    return ft_session_get_from(session, name, 0, out, err);
}
