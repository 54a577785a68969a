/*
 * selftest.c - computes the outputs of a self-test and compares them with those that it holds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/selftest/selftest.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Plans -------------------------------------------------------------------------------- */

static const char *output_name(const ft_model *model)
{
    ft_model_info info = ft_model_get_info(model);
    return info.labels > 0 || ft_model_generates(model) ? "logits"
           : info.embedding                             ? "embedding"
                                                        : "last_hidden_state";
}

/* Whether attention adds floats: in the KV cache, or of an encoder without static scales. */
static bool is_float_attention(const ft_plan *plan, const ft_op *op)
{
    return ft_op_uses_cache(op->kind) || (ft_op_info_of(op->kind)->reads == FT_READS_STATIC &&
                                          plan->value[op->in[0]].scale == 0.0f);
}

/* Whether a GEMM adds floats, whose order differs between CPUs and GPUs. */
static bool adds_floats(const ft_weight *weight)
{
    return weight->scale == NULL && !weight->groupwise.int8_activations;
}

float ft_selftest_tolerance(const ft_model *model)
{
    const ft_plan *plan = &model->plan;
    bool any_floats = false;
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        if (is_float_attention(plan, op))
            return FT_SELFTEST_FLOAT_INSIDE;
        if (!ft_op_is_gemm(op->kind))
            continue;
        const ft_weight *weight = &plan->weight[op->weight[0]];
        bool floats = adds_floats(weight);
        if ((any_floats && !floats) || (floats && weight->groupwise.scale != NULL))
            return FT_SELFTEST_FLOAT_INSIDE;
        any_floats = floats;
    }
    return any_floats ? FT_SELFTEST_FLOAT_HEAD : 0.0f;
}

/* ---- Inputs ------------------------------------------------------------------------------- */

/* Pixel values of the images of the test; each stored one stands for a square. */
static ft_status expand_pixels(ft_tensor *out, const ft_selftest *test, const ft_model *model,
                               ft_error *err)
{
    const ft_config *config = &model->config;
    const ft_tensor *stored = &test->tensor[FT_SELFTEST_PIXEL_VALUES];
    const float scale = *(const float *) test->tensor[FT_SELFTEST_PIXEL_SCALE].data;
    int64_t height = config->image_height, width = config->image_width;
    int64_t step = (height + stored->dim[2] - 1) / stored->dim[2];
    if (stored->dim[1] != config->channels || step < 1 ||
        (height + step - 1) / step != stored->dim[2] || (width + step - 1) / step != stored->dim[3])
        return ft_fail(err, FT_EFORMAT,
                       "%s: " FT_SELFTEST_ENTRY ": pixel_values do not fit the images of the model",
                       model->path);
    *out =
        (ft_tensor){ FT_F32, FT_ROW, 4, { stored->dim[0], config->channels, height, width }, NULL };
    float *pixel = ft_calloc(ft_tensor_numel(out), sizeof *pixel);
    if (pixel == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for images", model->path);
    out->data = pixel;
    const int8_t *plane = stored->data;
    for (int64_t i = 0; i < stored->dim[0] * stored->dim[1]; i++) {
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < width; x++)
                *pixel++ = scale * (float) plane[y / step * stored->dim[3] + x / step];
        plane += stored->dim[2] * stored->dim[3];
    }
    return FT_OK;
}

static ft_status set_images(ft_session *session, const ft_selftest *test, const ft_model *model,
                            ft_error *err)
{
    ft_tensor pixels = { .data = NULL };
    ft_status status = expand_pixels(&pixels, test, model, err);
    if (status == FT_OK)
        status = ft_session_set(session, "pixel_values", &pixels, err);
    free(pixels.data);
    return status;
}

static ft_status set_inputs(ft_session *session, const ft_selftest *test, const ft_model *model,
                            ft_error *err)
{
    static const char *const names[] = {
        [FT_SELFTEST_IDS] = "input_ids",
        [FT_SELFTEST_MASK] = "attention_mask",
        [FT_SELFTEST_TYPES] = "token_type_ids",
        [FT_SELFTEST_TARGET_IDS] = "decoder_input_ids",
        [FT_SELFTEST_TARGET_MASK] = "decoder_attention_mask",
    };
    bool has_images = test->tensor[FT_SELFTEST_PIXEL_VALUES].data != NULL;
    if (has_images != ft_config_is_vision(&model->config))
        return ft_fail(err, FT_EFORMAT, "%s: " FT_SELFTEST_ENTRY ": inputs of another model",
                       model->path);
    if (has_images)
        return set_images(session, test, model, err);
    for (size_t i = 0; i < FT_COUNT(names); i++)
        if (test->tensor[i].data != NULL)
            FT_TRY(ft_session_set(session, names[i], &test->tensor[i], err));
    return FT_OK;
}

static ft_status open_session(ft_session **out, const ft_selftest *test, const ft_model *model,
                              ft_error *err)
{
    const ft_tensor *ids = &test->tensor[FT_SELFTEST_IDS];
    const ft_tensor *targets = &test->tensor[FT_SELFTEST_TARGET_IDS];
    ft_session_options options = { .max_sequences = FT_SELFTEST_SAMPLES };
    if (ids->data != NULL)
        options.max_tokens = (int64_t) ft_max_size(ft_tensor_numel(ids), ft_tensor_numel(targets));
    if (model->has_cache)
        options.context = targets->data != NULL ? targets->dim[1] : ids->dim[1];
    return ft_session_open(out, model, &options, err);
}

/* ---- Outputs ------------------------------------------------------------------------------ */

/* Copies every n-th row and column, so that the limits are kept. */
static ft_status store_some(ft_selftest *test, ft_selftest_tensor which, const ft_tensor *all,
                            ft_error *err)
{
    size_t columns = (size_t) all->dim[all->ndim - 1], rows = ft_tensor_numel(all) / columns;
    size_t column_step = ft_divide_up(columns, FT_SELFTEST_COLUMNS);
    size_t stored_columns = ft_divide_up(columns, column_step);
    size_t row_step = ft_divide_up(rows * stored_columns, FT_SELFTEST_VALUES);
    size_t stored_rows = ft_divide_up(rows, row_step);
    FT_TRY(ft_selftest_add(test, which, FT_F32, 2,
                           (int64_t[]){ (int64_t) stored_rows, (int64_t) stored_columns }, err));
    float *out = test->tensor[which].data;
    for (size_t row = 0; row < rows; row += row_step)
        for (size_t column = 0; column < columns; column += column_step)
            *out++ = ((const float *) all->data)[row * columns + column];
    return FT_OK;
}

static ft_status read_output(ft_selftest *test, ft_selftest_tensor which,
                             uint8_t digest[FT_SHA256_BYTES], const ft_session *session,
                             const ft_model *model, ft_error *err)
{
    ft_tensor all = { .data = NULL };
    const char *name = output_name(model);
    FT_TRY(ft_session_get(session, name, &all, err));
    all.data = ft_calloc(ft_tensor_numel(&all), sizeof(float));
    ft_status status = all.data != NULL
                           ? ft_session_get(session, name, &all, err)
                           : ft_fail(err, FT_ENOMEM, "%s: no memory for %s", model->path, name);
    if (status == FT_OK && !ft_sha256_digest(all.data, ft_tensor_bytes(&all), digest))
        status = ft_fail(err, FT_ENOMEM, "%s: cannot compute SHA-256", model->path);
    if (status == FT_OK)
        status = store_some(test, which, &all, err);
    free(all.data);
    return status;
}

ft_status ft_selftest_compute(ft_selftest *test, ft_selftest_tensor which,
                              uint8_t digest[FT_SHA256_BYTES], const ft_model *model, ft_error *err)
{
    ft_session *session;
    FT_TRY(open_session(&session, test, model, err));
    ft_status status = set_inputs(session, test, model, err);
    if (status == FT_OK)
        status = ft_session_run(session, err);
    if (status == FT_OK)
        status = read_output(test, which, digest, session, model, err);
    ft_session_close(session);
    return status;
}

/* ---- Comparing ---------------------------------------------------------------------------- */

/* The norm of a - b, relative to that of b. */
static double relative_difference(const ft_tensor *a, const ft_tensor *b)
{
    const float *x = a->data, *y = b->data;
    double noise = 0.0, signal = 0.0;
    for (size_t i = 0; i < ft_tensor_numel(b); i++) {
        double difference = (double) x[i] - (double) y[i];
        noise += difference * difference;
        signal += (double) y[i] * (double) y[i];
    }
    return noise == 0.0 ? 0.0 : sqrt(noise / signal);
}

static void find_worst(ft_selftest_result *out, const ft_tensor *found, const ft_tensor *expected)
{
    const float *x = found->data, *y = expected->data;
    size_t worst = 0, columns = (size_t) expected->dim[1];
    for (size_t i = 0; i < ft_tensor_numel(expected); i++)
        if (fabsf(x[i] - y[i]) > fabsf(x[worst] - y[worst]))
            worst = i;
    out->row = worst / columns;
    out->column = worst % columns;
    out->found = x[worst];
    out->expected = y[worst];
}

static void compare(ft_selftest_result *out, const ft_tensor *found, const ft_selftest *test,
                    const uint8_t digest[FT_SHA256_BYTES], const ft_model *model)
{
    const ft_tensor *expected = &test->tensor[FT_SELFTEST_EXPECTED];
    bool on_cpu = strcmp(model->backend->name, "cpu") == 0;
    out->same_bits = memcmp(digest, test->tensor[FT_SELFTEST_DIGEST].data, FT_SHA256_BYTES) == 0;
    out->tolerance =
        on_cpu ? 0.0 : (double) *(const float *) test->tensor[FT_SELFTEST_TOLERANCE].data;
    out->difference = relative_difference(found, expected);
    out->quantization = relative_difference(expected, &test->tensor[FT_SELFTEST_FLOAT]);
    find_worst(out, found, expected);
    out->passed = out->same_bits || (out->tolerance > 0.0 && out->difference <= out->tolerance);
}

/* Computes the outputs of a parsed test and compares them. */
static ft_status check(ft_selftest_result *out, const ft_selftest *test, const ft_model *model,
                       ft_error *err)
{
    ft_selftest again = *test; /* borrows the inputs */
    uint8_t digest[FT_SHA256_BYTES];
    ft_tensor *found = &again.tensor[FT_SELFTEST_EXPECTED];
    const ft_tensor *expected = &test->tensor[FT_SELFTEST_EXPECTED];
    *found = (ft_tensor){ .data = NULL };
    ft_status status = ft_selftest_compute(&again, FT_SELFTEST_EXPECTED, digest, model, err);
    if (status == FT_OK && memcmp(found->dim, expected->dim, 2 * sizeof found->dim[0]) != 0)
        status = ft_fail(err, FT_EFORMAT, "%s: " FT_SELFTEST_ENTRY ": outputs of another model",
                         model->path);
    if (status == FT_OK)
        compare(out, found, test, digest, model);
    free(found->data);
    return status;
}

ft_status ft_selftest_run(ft_selftest_result *out, const ft_model *model, ft_error *err)
{
    const ft_artifact_entry *entry = ft_artifact_find_file(model->artifact, FT_SELFTEST_ENTRY);
    ft_selftest test;
    *out = (ft_selftest_result){ .output = output_name(model) };
    if (entry == NULL)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: has no self-test; ft-calibrate stores one if it has samples",
                       model->path);
    if (model->int8_kv_cache || model->f16_kv_cache)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: the self-test needs the KV cache of the default dtype", model->path);
    FT_TRY(ft_selftest_parse(&test, model->path, entry->data, entry->bytes, err));
    bool has_images = test.tensor[FT_SELFTEST_PIXEL_VALUES].data != NULL;
    out->samples =
        (size_t) test.tensor[has_images ? FT_SELFTEST_PIXEL_VALUES : FT_SELFTEST_IDS].dim[0];
    ft_status status = check(out, &test, model, err);
    ft_selftest_fini(&test);
    return status;
}

char *ft_selftest_describe(char text[FT_SELFTEST_TEXT], const ft_selftest_result *r)
{
    if (r->same_bits)
        snprintf(text, FT_SELFTEST_TEXT,
                 "this machine computes what the builder measured: %s of %zu samples, bit for bit",
                 r->output, r->samples);
    else if (r->passed)
        snprintf(text, FT_SELFTEST_TEXT,
                 "this machine computes what the builder measured: %s of %zu samples differ by "
                 "%.2g, at most %.2g is expected",
                 r->output, r->samples, r->difference, r->tolerance);
    else
        snprintf(text, FT_SELFTEST_TEXT,
                 "this machine does not compute what the builder measured: %s of %zu samples "
                 "differ by %.2g, at most %.2g is expected; row %zu, column %zu of the stored "
                 "values is %.9g, expected %.9g",
                 r->output, r->samples, r->difference, r->tolerance, r->row, r->column,
                 (double) r->found, (double) r->expected);
    return text;
}
