/*
 * encoder_response.c - the response to a call of an encoder, and what its logits mean.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/serving/serving.h"

#include "runtime/mem.h"
#include "runtime/scores/class_scores.h"

#include <stdlib.h>
#include <string.h>

void ft_serving_choose_outputs(ft_serving_call *call)
{
    size_t i;
    json_t *io;
    bool has_logits = false, needs_logits = false;
    json_array_foreach(call->instance->shared->signature.outputs, i, io)
    {
        const char *name = json_string_value(json_object_get(io, "name"));
        if ((call->wanted & 1u << i) == 0)
            continue;
        if (strcmp(name, "label") == 0 || strcmp(name, "probabilities") == 0) {
            needs_logits = true;
            continue;
        }
        has_logits |= strcmp(name, "logits") == 0;
        call->output[call->outputs++] = name;
    }
    if (needs_logits && !has_logits)
        call->output[call->outputs++] = "logits";
}

/* An output of all rows, each padded with zeros to the longest; its shape is that of *out. */
static ft_status gather(ft_tensor *out, const ft_serving_call *call, size_t k, ft_error *err)
{
    *out = call->row[0].output[k];
    out->dim[0] = (int64_t) call->rows;
    for (size_t i = 1; i < call->rows; i++)
        if (call->row[i].output[k].dim[1] > out->dim[1])
            out->dim[1] = call->row[i].output[k].dim[1];
    size_t bytes = ft_tensor_bytes(out), each = bytes / call->rows;
    char *to = out->data = ft_calloc(bytes, 1);
    if (to == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu rows", call->rows);
    for (size_t i = 0; i < call->rows; i++)
        memcpy(to + i * each, call->row[i].output[k].data,
               ft_tensor_bytes(&call->row[i].output[k]));
    return FT_OK;
}

/* Append the probabilities of a row of logits, and the name of the likeliest label. */
static ft_status add_classes(ft_serving_buffer *probabilities, ft_serving_buffer *labels,
                             const ft_model *model, const float *logits, ft_error *err)
{
    const size_t classes = (size_t) model->config.labels, best = ft_argmax(logits, classes);
    const char *name = ft_model_label(model, (int32_t) best);
    char unnamed[32];
    snprintf(unnamed, sizeof unnamed, "LABEL_%zu", best);
    name = name != NULL ? name : unnamed;
    for (size_t i = 0; i < classes; i++) {
        float p = (float) ft_class_probability(model->config.problem_type, logits, classes, i);
        FT_TRY(ft_serving_append(probabilities, &p, sizeof p, err));
    }
    return ft_serving_append_text(labels, name, strlen(name), err);
}

/* The response, as far as it has been made. */
typedef struct response {
    ft_serving_output output[FT_MAX_OUTPUTS + 2];
    size_t count;
    ft_tensor tensor[FT_MAX_OUTPUTS]; /* data is owned */
    int64_t label_shape[2];
    ft_serving_buffer probabilities, labels;
} response;

/* What logits mean. */
static ft_status add_derived(response *r, const ft_serving_call *call, const ft_tensor *logits,
                             ft_error *err)
{
    for (size_t i = 0; i < call->rows; i++)
        FT_TRY(add_classes(&r->probabilities, &r->labels, call->instance->model,
                           (const float *) logits->data + i * (size_t) logits->dim[1], err));
    r->label_shape[0] = (int64_t) call->rows;
    r->label_shape[1] = 1;
    r->output[r->count++] =
        (ft_serving_output){ "probabilities",       FT_F32, 2, logits->dim, r->probabilities.data,
                             r->probabilities.bytes };
    r->output[r->count++] =
        (ft_serving_output){ "label", FT_U8, 2, r->label_shape, r->labels.data, r->labels.bytes };
    return FT_OK;
}

static ft_status make_response(response *r, const ft_serving_call *call, ft_error *err)
{
    const bool classifies =
        ft_serving_find(call->instance->shared->signature.outputs, "label") >= 0;
    for (size_t k = 0; k < call->outputs; k++) {
        ft_tensor *t = &r->tensor[k];
        FT_TRY(gather(t, call, k, err));
        r->output[r->count++] = (ft_serving_output){ call->output[k], FT_F32,  t->ndim,
                                                     t->dim,          t->data, ft_tensor_bytes(t) };
        if (classifies && strcmp(call->output[k], "logits") == 0)
            FT_TRY(add_derived(r, call, t, err));
    }
    return FT_OK;
}

ft_status ft_serving_respond_encoded(ft_serving_call *call, ft_error *err)
{
    response r = { .count = 0 };
    ft_status status = make_response(&r, call, err);
    if (status == FT_OK)
        status = call->server->send(call, r.output, r.count, true, err);
    for (size_t k = 0; k < call->outputs; k++)
        free(r.tensor[k].data);
    free(r.probabilities.data);
    free(r.labels.data);
    return status;
}
