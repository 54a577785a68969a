/*
 * job_inputs.c - copy the inputs of an encoder and the names of its outputs, and check them as a
 * session would.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/engine/job.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/pixels.h"

#include <stdlib.h>
#include <string.h>

const char *const ft_job_input_name[FT_NUM_INPUTS] = {
    [FT_INPUT_IDS] = "input_ids",
    [FT_INPUT_MASK] = "attention_mask",
    [FT_INPUT_TYPES] = "token_type_ids",
};

ft_status ft_job_copy_strings(char ***out, const char *const *strings, ft_error *err)
{
    size_t count = 0;
    while (strings != NULL && strings[count] != NULL)
        count++;
    if (strings == NULL)
        return FT_OK;
    *out = ft_calloc(count + 1, sizeof **out);
    for (size_t i = 0; *out != NULL && i < count; i++) {
        (*out)[i] = ft_strdup(strings[i]);
        if ((*out)[i] == NULL)
            return ft_fail(err, FT_ENOMEM, "no memory for a request");
    }
    return *out != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for a request");
}

static ft_status copy_pixels(ft_job_inputs *to, const ft_tensor *from, ft_error *err)
{
    size_t bytes = ft_tensor_bytes(from);
    if (from->dtype != FT_F32 || from->ndim != 4 || bytes == 0 || from->data == NULL)
        return ft_fail(err, FT_ESHAPE,
                       "pixel_values: expected F32 [images, channels, height, width]");
    to->rows = (size_t) from->dim[0];
    memcpy(to->image, from->dim + 1, sizeof to->image);
    to->pixels = ft_calloc(bytes, 1);
    if (to->pixels == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a request");
    memcpy(to->pixels, from->data, bytes);
    return FT_OK;
}

static ft_status copy_integers(int32_t *to, const ft_tensor *from, const char *name, ft_error *err)
{
    for (size_t i = 0; i < ft_tensor_numel(from); i++) {
        int64_t value = from->dtype == FT_I32 ? ((const int32_t *) from->data)[i]
                                              : ((const int64_t *) from->data)[i];
        if (value < INT32_MIN || value > INT32_MAX)
            return ft_fail(err, FT_EARG, "%s: element %zu exceeds 32 bits", name, i);
        to[i] = (int32_t) value;
    }
    return FT_OK;
}

static ft_status copy_tokens(ft_job_inputs *to, int input, const ft_engine_tensor *from,
                             ft_error *err)
{
    const ft_tensor *t = &from->tensor;
    size_t count = ft_tensor_numel(t);
    if ((t->dtype != FT_I32 && t->dtype != FT_I64) || t->ndim != 2 || count == 0 || t->data == NULL)
        return ft_fail(err, FT_ESHAPE, "%s: expected I32 or I64 [rows, columns]", from->name);
    if (to->rows > 0 && (to->rows != (size_t) t->dim[0] || to->cols != (size_t) t->dim[1]))
        return ft_fail(err, FT_ESHAPE, "%s: its shape differs from that of another input",
                       from->name);
    if (to->value[input] != NULL)
        return ft_fail(err, FT_EARG, "%s: is given twice", from->name);
    to->rows = (size_t) t->dim[0];
    to->cols = (size_t) t->dim[1];
    to->value[input] = ft_calloc(count, sizeof(int32_t));
    if (to->value[input] == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a request");
    return copy_integers(to->value[input], t, from->name, err);
}

static ft_status copy_input(ft_job_inputs *to, const ft_engine_tensor *from, ft_error *err)
{
    FT_REQUIRE(from->name, err);
    if (from->tensor.layout != FT_ROW)
        return ft_fail(err, FT_EARG, "%s: its layout is not FT_ROW", from->name);
    if (strcmp(from->name, FT_PIXEL_VALUES) == 0 && to->pixels == NULL)
        return copy_pixels(to, &from->tensor, err);
    for (int i = 0; i < FT_NUM_INPUTS; i++)
        if (strcmp(from->name, ft_job_input_name[i]) == 0)
            return copy_tokens(to, i, from, err);
    return ft_fail(err, FT_EARG, "%s: the model has no such input", from->name);
}

ft_status ft_job_copy_inputs(ft_job *job, const ft_engine_request *from, ft_error *err)
{
    for (size_t i = 0; i < from->num_inputs; i++)
        FT_TRY(copy_input(&job->inputs, &from->inputs[i], err));
    FT_TRY(ft_job_copy_strings(&job->outputs, from->outputs, err));
    while (job->outputs != NULL && job->outputs[job->num_outputs] != NULL)
        job->num_outputs++;
    return job->num_outputs > 0 ? FT_OK : ft_fail(err, FT_EARG, "a request names no output");
}

/* ---- Checks ------------------------------------------------------------------------------- */

static ft_status check_pixels(ft_job *job, const ft_session *session, ft_error *err)
{
    const ft_config *config = &session->model->config;
    ft_job_inputs *in = &job->inputs;
    if (in->pixels == NULL)
        return ft_fail(err, FT_EARG, "%s is not set", FT_PIXEL_VALUES);
    const ft_tensor tensor = ft_job_pixel_tensor(in, in->pixels, in->rows);
    in->tokens = in->rows * (size_t) config->positions;
    if (in->rows > session->limits.sequences)
        return ft_fail(err, FT_ELIMIT, "%s: %zu images, but a batch has at most %zu",
                       FT_PIXEL_VALUES, in->rows, session->limits.sequences);
    return ft_pixels_check(config, &tensor, FT_PIXEL_VALUES, err);
}

ft_tensor ft_job_token_tensor(int32_t *values, size_t rows, size_t cols)
{
    return (ft_tensor){
        .dtype = FT_I32, .ndim = 2, .dim = { (int64_t) rows, (int64_t) cols }, .data = values
    };
}

ft_tensor ft_job_pixel_tensor(const ft_job_inputs *like, float *pixels, size_t rows)
{
    const int64_t *image = like->image;
    return (ft_tensor){ .dtype = FT_F32,
                        .ndim = 4,
                        .dim = { (int64_t) rows, image[0], image[1], image[2] },
                        .data = pixels };
}

static ft_status set_padded(ft_padded_batch *padded, const ft_job_inputs *in, ft_error *err)
{
    if (in->pixels != NULL)
        return ft_fail(err, FT_EARG, "%s: the model has no such input", FT_PIXEL_VALUES);
    for (int i = 0; i < FT_NUM_INPUTS; i++) {
        if (in->value[i] == NULL)
            continue;
        const ft_tensor tensor = ft_job_token_tensor(in->value[i], in->rows, in->cols);
        if (ft_padded_batch_find_input(padded, ft_job_input_name[i]) != i)
            return ft_fail(err, FT_EARG, "%s: the model has no such input", ft_job_input_name[i]);
        FT_TRY(ft_padded_batch_set(padded, i, &tensor, err));
    }
    return ft_padded_batch_pack(padded, err);
}

static ft_status check_ids(const ft_padded_batch *padded, const ft_config *config, ft_error *err)
{
    int32_t *packed = ft_calloc(padded->tokens, sizeof *packed);
    if (packed == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a request");
    ft_status status =
        ft_padded_batch_packed_ids(padded, FT_INPUT_IDS, config->vocabulary, packed, err);
    if (status == FT_OK && config->types > 0)
        status = ft_padded_batch_packed_ids(padded, FT_INPUT_TYPES, config->types, packed, err);
    free(packed);
    return status;
}

static ft_status check_tokens(ft_job *job, const ft_session *session, ft_error *err)
{
    ft_padded_batch padded;
    ft_status status = ft_padded_batch_init(&padded, &session->text[FT_PADDED_INPUT].limits, err);
    if (status == FT_OK)
        status = set_padded(&padded, &job->inputs, err);
    if (status == FT_OK)
        status = check_ids(&padded, &session->model->config, err);
    job->inputs.tokens = padded.tokens;
    ft_padded_batch_fini(&padded);
    return status;
}

/* An output of the model, which the request names once. */
static ft_status check_output(const ft_job *job, size_t index, const ft_plan *plan, ft_error *err)
{
    const char *name = job->outputs[index];
    for (size_t i = 0; i < index; i++)
        if (strcmp(job->outputs[i], name) == 0)
            return ft_fail(err, FT_EARG, "%s: a request names this output twice", name);
    for (int i = 0; i < plan->noutput; i++)
        if (strcmp(plan->output[i].name, name) == 0)
            return FT_OK;
    return ft_fail(err, FT_EARG, "%s: not an output of the model", name);
}

ft_status ft_job_check_inputs(ft_job *job, const ft_session *session, ft_error *err)
{
    for (size_t i = 0; i < job->num_outputs; i++)
        FT_TRY(check_output(job, i, &session->plan, err));
    return session->pixels_value >= 0 ? check_pixels(job, session, err)
                                      : check_tokens(job, session, err);
}
