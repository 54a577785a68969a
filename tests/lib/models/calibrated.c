/*
 * calibrated.c - converts and calibrates a tiny checkpoint and runs it in a session.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/models/calibrated.h"

#include "calibrate/calibrate.h"
#include "runtime/mem.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <stdlib.h>

static void must(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        bail_out("%s", err->text);
}

/* ---- Files -------------------------------------------------------------------------------- */

/* Rows of 1 to 8 tokens 2..19, padded on the right. */
static void write_samples(const char *path)
{
    enum { COLS = 8 };
    int32_t ids[CALIBRATED_SAMPLES * COLS] = { 0 }, mask[CALIBRATED_SAMPLES * COLS] = { 0 };
    rng r = { 5 };
    for (int row = 0; row < CALIBRATED_SAMPLES; row++)
        for (int col = 0; col <= row % COLS; col++) {
            ids[row * COLS + col] = 2 + (int32_t) rng_below(&r, 18);
            mask[row * COLS + col] = 1;
        }
    ft_tensor tensor = { .dtype = FT_I32, .ndim = 2, .dim = { CALIBRATED_SAMPLES, COLS } };
    ft_named_tensor named[] = { { "input_ids", tensor }, { "attention_mask", tensor } };
    named[0].tensor.data = ids;
    named[1].tensor.data = mask;
    ft_error err;
    must(ft_safetensors_write(path, named, FT_COUNT(named), true, &err), &err);
}

void calibrated_make(calibrated *out, tiny *t)
{
    ft_artifact *artifact = converted(t, &(ft_convert_options){ 0 });
    if (artifact == NULL)
        bail_out("%s", converted_problem(0));
    ft_artifact_close(artifact);
    snprintf(out->real, sizeof out->real, "%s/model.ft", t->folder);
    snprintf(out->samples, sizeof out->samples, "%s/samples.safetensors", t->folder);
    snprintf(out->quantized, sizeof out->quantized, "%s/model.int8.ft", t->folder);
    write_samples(out->samples);
    ft_report report;
    ft_error err;
    must(ft_calibrate(&(ft_calibration_options){ .input = out->real,
                                                 .output = out->quantized,
                                                 .data = out->samples,
                                                 .method = FT_METHOD_MAX,
                                                 .threads = 1 },
                      NULL, &report, &err),
         &err);
    ft_report_fini(&report);
}

/* ---- Runs --------------------------------------------------------------------------------- */

ft_model *calibrated_open(const char *path, const ft_model_options *options)
{
    ft_model *model;
    ft_error err;
    must(ft_model_open(&model, path, options, &err), &err);
    return model;
}

ft_session *calibrated_session(const ft_model *model, const ft_session_options *options)
{
    ft_session *session;
    ft_error err;
    must(ft_session_open(&session, model, options, &err), &err);
    return session;
}

static void set(ft_session *session, const char *name, const model_input *input,
                const int32_t *data)
{
    ft_tensor tensor = { .dtype = FT_I32, .ndim = 2, .dim = { input->rows, input->cols } };
    ft_error err;
    tensor.data = (void *) (uintptr_t) data;
    if (data != NULL)
        must(ft_session_set(session, name, &tensor, &err), &err);
}

void calibrated_run(ft_session *session, const model_input *input)
{
    ft_error err;
    set(session, "input_ids", input, input->ids);
    set(session, "attention_mask", input, input->mask);
    set(session, "token_type_ids", input, input->types);
    must(ft_session_run(session, &err), &err);
}

float *calibrated_get(const ft_session *session, const char *name, size_t *count)
{
    ft_tensor tensor = { .data = NULL };
    ft_error err;
    must(ft_session_get(session, name, &tensor, &err), &err);
    *count = ft_tensor_numel(&tensor);
    tensor.data = ft_calloc(*count, sizeof(float));
    if (tensor.data == NULL)
        bail_out("out of memory: %s", name);
    must(ft_session_get(session, name, &tensor, &err), &err);
    return tensor.data;
}

float *calibrated_result(const ft_model *model, const model_input *input, const char *name,
                         size_t *count)
{
    ft_session *session = calibrated_session(model, &(ft_session_options){ .threads = 1 });
    calibrated_run(session, input);
    float *result = calibrated_get(session, name, count);
    ft_session_close(session);
    return result;
}
