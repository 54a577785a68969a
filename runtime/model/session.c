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
#include "runtime/model/smoothing.h"
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
    ft_padded_batch *rows = &session->text[FT_PADDED_INPUT];
    session->ran = false;
    rows->rows = 0;
    FT_TRY(ft_pixels_check(config, tensor, FT_PIXEL_VALUES, err));
    if (images > session->limits.sequences)
        return ft_fail(err, FT_ELIMIT, "%s: %zu images, but the session allows %zu",
                       FT_PIXEL_VALUES, images, session->limits.sequences);
    FT_TRY(session->model->backend->write(session->exec, session->pixels_value, tensor->data,
                                          images, err));
    ft_padded_batch_fill(rows, images, (size_t) config->positions);
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
    FT_REQUIRE(session, err);
    FT_REQUIRE(name, err);
    FT_REQUIRE(tensor, err);
    FT_TRY(check_tensor(name, tensor, err));
    if (session->pixels_value >= 0 && strcmp(name, FT_PIXEL_VALUES) == 0)
        return set_images(session, tensor, err);
    for (int i = 0; i < session->texts; i++) {
        int input = ft_padded_batch_find_input(&session->text[i], name);
        if (input < 0)
            continue;
        session->ran = false;
        return ft_padded_batch_set(&session->text[i], input, tensor, err);
    }
    return ft_fail(err, FT_EARG, "%s: the model has no such input", name);
}

/* The rows of an array of the batch [tokens], packed from the inputs of a text and checked. */
static ft_status pack_input(const ft_session *session, const ft_padded_batch *text,
                            ft_batch_input input, int32_t *out, ft_error *err)
{
    const ft_config *config = &session->model->config;
    if (input == FT_BATCH_IDS)
        return ft_padded_batch_packed_ids(text, FT_INPUT_IDS, config->vocabulary, out, err);
    if (input == FT_BATCH_TYPES)
        return ft_padded_batch_packed_ids(text, FT_INPUT_TYPES, config->types, out, err);
    ft_padded_batch_positions(text, config->position_offset, config->padding_id, out);
    return FT_OK;
}

/* Pack a text.  The decoder of an encoder-decoder has no inputs but its ids. */
static ft_status pack_text(ft_session *session, int index, ft_error *err)
{
    ft_padded_batch *text = &session->text[index];
    int end = index == FT_PADDED_INPUT ? FT_NUM_BATCH_INPUTS : FT_BATCH_IDS + 1;
    FT_TRY(ft_padded_batch_pack(text, err));
    for (int i = FT_BATCH_IDS; i < end; i++)
        if (session->packed[i] != NULL)
            FT_TRY(pack_input(session, text, (ft_batch_input) i, session->packed[i], err));
    return FT_OK;
}

/* ---- Running ------------------------------------------------------------------------------ */

static ft_status run(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    return session->model->backend->run(session->exec, &session->batch, counts, err);
}

/* The batch of an encoder pass over text[0]. */
static ft_batch encoder_batch(const ft_session *session)
{
    const ft_padded_batch *text = &session->text[FT_PADDED_INPUT];
    ft_batch batch = { .tokens = text->tokens,
                       .sequences = text->rows,
                       .longest = text->longest,
                       .start = text->start };
    for (int i = 0; i < FT_NUM_BATCH_INPUTS; i++)
        batch.input[i] = session->packed[i];
    return batch;
}

static ft_status fail_capacity(const ft_session *session, int text, const char *where, size_t pages,
                               ft_error *err)
{
    return ft_fail(err, FT_ELIMIT, "%s: %zu tokens do not fit into the session's %s of %zu",
                   session->text[text].limits.name[FT_INPUT_IDS], session->text[text].tokens, where,
                   pages * FT_PAGE_TOKENS);
}

/* One chunk per complete sequence, in a cleared KV cache. */
static ft_status add_chunks(ft_session *session, int text, ft_error *err)
{
    ft_chunk_batch *chunks = session->chunks;
    const ft_padded_batch *from = &session->text[text];
    ft_page_table_clear(&chunks->pages);
    ft_chunk_batch_clear(chunks);
    for (size_t i = 0; i < from->rows; i++) {
        size_t first = (size_t) from->start[i], count = (size_t) from->start[i + 1] - first;
        if (!ft_page_table_reserve(&chunks->pages, i, count))
            return fail_capacity(session, text, "cache", session->limits.pages, err);
        ft_chunk_batch_add(
            chunks,
            &(ft_prefill_chunk){ .slot = i,
                                 .source = i,
                                 .n_tokens = count,
                                 .ids = chunks->ids + first,
                                 .count = count,
                                 .logits = session->all_logits ? FT_LOGITS_ALL : FT_LOGITS_LAST });
    }
    session->batch = chunks->batch;
    return FT_OK;
}

/* All sources, into a cleared cross-attention KV cache. */
static ft_status add_sources(ft_session *session, ft_error *err)
{
    ft_chunk_batch *chunks = session->chunks;
    const ft_padded_batch *from = &session->text[FT_PADDED_ENCODER];
    ft_page_table_clear(&chunks->sources);
    ft_chunk_batch_clear_for_encoder(chunks);
    for (size_t i = 0; i < from->rows; i++) {
        size_t first = (size_t) from->start[i], count = (size_t) from->start[i + 1] - first;
        if (!ft_page_table_reserve(&chunks->sources, i, count))
            return fail_capacity(session, FT_PADDED_ENCODER, "cross-attention cache",
                                 session->limits.cross_kv_pages, err);
        ft_chunk_batch_add_source(chunks, i, chunks->ids + first, count);
    }
    session->batch = chunks->batch;
    session->batch.input[FT_BATCH_POSITIONS] = session->packed[FT_BATCH_POSITIONS];
    session->encoder_batch = session->batch;
    return FT_OK;
}

static ft_status run_encoder_stack(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    FT_TRY(pack_text(session, FT_PADDED_ENCODER, err));
    FT_TRY(add_sources(session, err));
    return run(session, counts, err);
}

/* The decoder of an encoder-decoder. */
static ft_status run_decoder_stack(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    FT_TRY(pack_text(session, FT_PADDED_DECODER, err));
    FT_TRY(add_chunks(session, FT_PADDED_DECODER, err));
    return run(session, counts, err);
}

static ft_status run_encoder_decoder(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    const ft_padded_batch *source = &session->text[FT_PADDED_ENCODER],
                          *target = &session->text[FT_PADDED_DECODER];
    if (ft_padded_batch_has(target, FT_INPUT_IDS) && ft_padded_batch_has(source, FT_INPUT_IDS) &&
        target->rows != source->rows)
        return ft_fail(err, FT_ESHAPE, "decoder_input_ids: %zu sequences, but %zu sources",
                       target->rows, source->rows);
    FT_TRY(run_encoder_stack(session, counts, err));
    return run_decoder_stack(session, counts, err);
}

static ft_status prepare_images(ft_session *session, ft_error *err)
{
    if (session->text[FT_PADDED_INPUT].rows == 0)
        return ft_fail(err, FT_EARG, "%s is not set", FT_PIXEL_VALUES);
    session->batch = encoder_batch(session);
    return FT_OK;
}

ft_status ft_session_prepare_batch(ft_session *session, ft_error *err)
{
    if (session->pixels_value >= 0)
        return prepare_images(session, err);
    FT_TRY(pack_text(session, FT_PADDED_INPUT, err));
    if (session->chunks != NULL)
        return add_chunks(session, FT_PADDED_INPUT, err);
    session->batch = encoder_batch(session);
    return FT_OK;
}

static ft_status run_one_stack(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    FT_TRY(ft_session_prepare_batch(session, err));
    return run(session, counts, err);
}

ft_status ft_session_run_observed(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    session->ran = false;
    FT_TRY(session->texts > 1 ? run_encoder_decoder(session, counts, err)
                              : run_one_stack(session, counts, err));
    session->ran = true;
    return FT_OK;
}

ft_status ft_session_collect_counts(ft_session *session, ft_counts *const *counts, ft_error *err)
{
    return session->model->backend->collect(session->exec, counts, err);
}

ft_status ft_session_run(ft_session *session, ft_error *err)
{
    FT_REQUIRE(session, err);
    return ft_session_run_observed(session, NULL, err);
}

/* Position ids of packed sources; the same rule as ft_padded_batch_positions(). */
static void compute_source_positions(const ft_session *session)
{
    const ft_config *config = &session->model->config;
    const ft_batch *batch = &session->batch;
    int32_t *positions = session->packed[FT_BATCH_POSITIONS];
    for (size_t i = 0; i < batch->sequences; i++) {
        int32_t counted = 0;
        for (int32_t row = batch->start[i]; row < batch->start[i + 1]; row++) {
            bool is_padding = session->chunks->ids[row] == config->padding_id;
            positions[row] = is_padding ? config->padding_id : config->position_offset + counted;
            counted += !is_padding;
        }
    }
}

ft_status ft_session_run_chunks(ft_session *session, ft_error *err)
{
    session->ran = false;
    session->batch = session->chunks->batch;
    if (session->batch.source) {
        compute_source_positions(session);
        session->batch.input[FT_BATCH_POSITIONS] = session->packed[FT_BATCH_POSITIONS];
    }
    return run(session, NULL, err);
}

/* ---- Outputs ------------------------------------------------------------------------------ */

static const ft_output *find_output(const ft_session *session, const char *name)
{
    for (int i = 0; i < session->plan.noutput; i++)
        if (strcmp(session->plan.output[i].name, name) == 0)
            return &session->plan.output[i];
    return NULL;
}

/* The plan value of output or kept value `name`, or -1. */
static int find_result(const ft_session *session, const char *name)
{
    const ft_output *output = find_output(session, name);
    if (output != NULL)
        return output->value;
    int value = ft_plan_find(&session->plan, name);
    return value >= 0 && session->plan.value[value].keep ? value : -1;
}

/* Outputs with a row per token have the caller's padding. */
bool ft_session_is_padded_output(const ft_session *session, const char *name)
{
    const ft_output *output = find_output(session, name);
    return output != NULL && (session->plan.value[output->value].rows == FT_TOKENS ||
                              (session->all_logits && strcmp(name, "logits") == 0));
}

/* Element i of a stored matrix as float, without its scale. */
static float stored_value(ft_dtype dtype, const void *data, size_t i)
{
    int32_t as_i32;
    uint16_t as_f16;
    float as_f32;
    if (dtype == FT_I8)
        return (float) ((const int8_t *) data)[i];
    if (dtype == FT_F16 || dtype == FT_BF16) {
        memcpy(&as_f16, (const char *) data + i * sizeof as_f16, sizeof as_f16);
        return dtype == FT_F16 ? ft_float_from_f16(as_f16) : ft_float_from_bf16(as_f16);
    }
    if (dtype == FT_I32) {
        memcpy(&as_i32, (const char *) data + i * sizeof as_i32, sizeof as_i32);
        return (float) as_i32;
    }
    memcpy(&as_f32, (const char *) data + i * sizeof as_f32, sizeof as_f32);
    return as_f32;
}

/* The vector by which a quantized value was multiplied, in host memory; NULL: none. */
static const float *smoothing_of(const ft_session *session, const ft_value *value)
{
    bool is_quantized = value->scale > 0.0f || value->dynamic;
    int weight = is_quantized ? ft_plan_find_smoothing(&session->plan, value->name) : -1;
    return weight >= 0 ? ft_smoothing_host_data(session->model, weight) : NULL;
}

/* Stored elements may be smaller than F32, so convert in place from the last to the first. */
ft_status ft_session_read_f32(const ft_session *session, int value, float *out, size_t rows,
                              ft_error *err)
{
    const ft_value *v = &session->plan.value[value];
    size_t cols = (size_t) v->cols;
    float *scales = v->dynamic ? ft_calloc(rows, sizeof *scales) : NULL;
    if (v->dynamic && scales == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu scales", v->name, rows);
    ft_status status = session->model->backend->read(session->exec, value, out, scales, rows, err);
    const float *smoothing = smoothing_of(session, v);
    for (size_t i = status == FT_OK ? rows * cols : 0; i-- > 0;) {
        float scale = v->dynamic ? scales[i / cols] : v->scale > 0.0f ? v->scale : 1.0f;
        out[i] = scale * stored_value(v->dtype, out, i);
        if (smoothing != NULL)
            out[i] /= smoothing[i % cols];
    }
    free(scales);
    return status;
}

bool ft_session_has_encoder_rows(const ft_session *session, int value)
{
    int producer = ft_plan_producer(&session->plan, value);
    if (producer < 0)
        return session->texts > 1 &&
               strcmp(session->plan.value[value].name,
                      session->text[FT_PADDED_DECODER].limits.name[FT_INPUT_IDS]) != 0;
    return producer < session->plan.encoder_ops;
}

/* An array of the batch as F32.  Devices do not keep it, so that it is packed again. */
static ft_status read_input(const ft_session *session, const ft_padded_batch *text,
                            ft_batch_input input, float *out, ft_error *err)
{
    int32_t *packed = ft_calloc(text->tokens, sizeof *packed);
    if (packed == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu tokens", text->tokens);
    ft_status status = pack_input(session, text, input, packed, err);
    for (size_t i = 0; i < text->tokens; i++)
        out[i] = (float) packed[i];
    free(packed);
    return status;
}

/* NaN and infinity must not silently become a class or a null in JSON. */
static ft_status check_finite(const ft_session *session, const char *name, size_t first,
                              const ft_tensor *out, ft_error *err)
{
    const float *x = out->data;
    size_t count = ft_tensor_numel(out), cols = count / (size_t) out->dim[0], i = 0;
    while (i < count && isfinite(x[i]))
        i++;
    if (i == count)
        return FT_OK;
    return ft_fail(err, FT_ENONFINITE,
                   "%s: %s: row %zu holds %g, expected finite numbers; weights or inputs may be "
                   "damaged or too large",
                   session->model->path, name, first + i / cols, (double) fabsf(x[i]));
}

/* The shape of a result: `rows` rows of a value, or the caller's padded rows. */
static ft_tensor shape_of(const ft_output *output, const ft_value *value,
                          const ft_padded_batch *text, size_t rows, bool padded)
{
    ft_tensor shape = { .dtype = FT_F32, .ndim = 2, .dim = { (int64_t) rows, value->cols } };
    if (padded) {
        shape.ndim = 3;
        shape.dim[0] = (int64_t) text->rows;
        shape.dim[1] = (int64_t) text->cols;
        shape.dim[2] = value->cols;
    }
    if (output != NULL && output->one_column)
        shape.ndim--;
    return shape;
}

/* Read one column of a value, which is larger than the result. */
static ft_status read_column(const ft_session *session, const ft_output *output, float *out,
                             size_t rows, ft_error *err)
{
    size_t cols = (size_t) session->plan.value[output->value].cols;
    float *all = ft_calloc(rows, cols * sizeof *all);
    if (all == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu rows", output->name, rows);
    ft_status status = ft_session_read_f32(session, output->value, all, rows, err);
    for (size_t i = 0; i < rows; i++)
        out[i] = all[i * cols + (size_t) output->column];
    free(all);
    return status;
}

/* Read a result without padding. */
static ft_status read_result(const ft_session *session, const ft_output *output, int value,
                             const ft_padded_batch *text, float *out, size_t rows, ft_error *err)
{
    const ft_value *v = &session->plan.value[value];
    if (v->input != FT_BATCH_NONE)
        return read_input(session, text, v->input, out, err);
    if (output != NULL && output->one_column)
        return read_column(session, output, out, rows, err);
    return ft_session_read_f32(session, value, out, rows, err);
}

ft_status ft_session_get_rows(const ft_session *session, const char *name, size_t first,
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
    bool source = ft_session_has_encoder_rows(session, value);
    const ft_padded_batch *text = &session->text[source ? FT_PADDED_ENCODER : session->texts - 1];
    size_t rows = ft_batch_rows(source ? &session->encoder_batch : &session->batch, v->rows);
    const ft_output *output = find_output(session, name);
    bool padded = ft_session_is_padded_output(session, name);
    void *data = out->data;
    *out = shape_of(output, v, text, rows, padded);
    out->data = data;
    if (data == NULL)
        return FT_OK;
    FT_TRY(read_result(session, output, value, text, data, rows, err));
    if (padded)
        ft_padded_batch_unpack(text, data, output->one_column ? 1 : (size_t) v->cols);
    return output != NULL ? check_finite(session, name, first, out, err) : FT_OK;
}

ft_status ft_session_get(const ft_session *session, const char *name, ft_tensor *out, ft_error *err)
{
    FT_REQUIRE(session, err);
    FT_REQUIRE(name, err);
    FT_REQUIRE(out, err);
    return ft_session_get_rows(session, name, 0, out, err);
}
