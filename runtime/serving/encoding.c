/*
 * encoding.c - calls to encoders: each row is a job, so that the engine makes the batches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/serving/serving.h"

#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- Callbacks of the engine --------------------------------------------------------------- */

static void on_outputs(void *user, uint64_t id, const ft_engine_tensor *outputs, size_t count)
{
    ft_serving_row *row = user;
    size_t bytes = 0;
    (void) id;
    row->call->computed = ft_serving_now();
    for (size_t k = 0; k < count; k++)
        bytes += ft_tensor_bytes(&outputs[k].tensor);
    char *to = row->data = malloc(bytes);
    for (size_t k = 0; k < count && to != NULL; k++) {
        bytes = ft_tensor_bytes(&outputs[k].tensor);
        row->output[k] = outputs[k].tensor;
        row->output[k].data = memcpy(to, outputs[k].tensor.data, bytes);
        to += bytes;
    }
}

static void on_end(void *user, uint64_t id, ft_status status, const ft_error *failure)
{
    static const ft_error no_memory = { FT_ENOMEM, "no memory for outputs" };
    ft_serving_row *row = user;
    bool lost = status == FT_OK && row->data == NULL;
    (void) id;
    ft_serving_sweep(row->call->instance);
    ft_serving_call_leave(row->call, lost ? FT_ENOMEM : status, lost ? &no_memory : failure);
}

/* ---- Rows ---------------------------------------------------------------------------------- */

static ft_status submit(ft_serving_call *call, size_t row, const ft_engine_tensor *inputs,
                        size_t count, ft_error *err)
{
    call->row[row].call = call;
    ft_engine_request request = { .inputs = inputs,
                                  .num_inputs = count,
                                  .outputs = call->output,
                                  .on_outputs = on_outputs,
                                  .on_end = on_end,
                                  .user = &call->row[row] };
    return ft_serving_call_submit(call, &request, row, err);
}

static ft_status submit_encoding(ft_serving_call *call, size_t row, const ft_encoding *e,
                                 ft_error *err)
{
    const ft_config *config = &call->instance->model->config;
    const int32_t most = ft_model_get_info(call->instance->model).max_positions;
    ft_engine_tensor inputs[] = {
        { ft_serving_tensor_name[FT_IN_IDS],
          { .dtype = FT_I32, .ndim = 2, .dim = { 1, (int64_t) e->count } } },
        { .name = ft_serving_tensor_name[FT_IN_TYPES] },
    };
    inputs[1].tensor = inputs[0].tensor;
    inputs[0].tensor.data = (void *) (uintptr_t) e->ids;
    inputs[1].tensor.data = (void *) (uintptr_t) e->type_ids;
    if (e->count > (size_t) most)
        return ft_fail(err, FT_EARG, "text %zu: found %zu tokens, expected at most %d, or truncate",
                       row, e->count, most);
    return submit(call, row, inputs, config->types > 0 ? 2 : 1, err);
}

/* Encode a text with the prompt before it, or a pair of texts. */
static ft_status submit_text(ft_serving_call *call, size_t row, const char *prompt, ft_error *err)
{
    const json_t *text = json_array_get(call->settings.text_input, row),
                 *pair = json_array_get(call->settings.text_pair, row);
    const ft_encode_options options = {
        .pair = json_string_value(pair),
        .pair_bytes = json_string_length(pair),
        .max_length = call->settings.truncate
                          ? (size_t) ft_model_get_info(call->instance->model).max_seq_length
                          : 0,
    };
    ft_encoding *encoding = NULL;
    ft_serving_buffer whole = { 0 };
    ft_status status = ft_serving_append(&whole, prompt, strlen(prompt), err);
    if (status == FT_OK)
        status = ft_serving_append(&whole, json_string_value(text), json_string_length(text), err);
    if (status == FT_OK)
        status = ft_tokenizer_encode_text(call->instance->shared->tokenizers.source, whole.data,
                                          whole.bytes, &options, &encoding, err);
    if (status == FT_OK)
        status = submit_encoding(call, row, encoding, err);
    ft_encoding_free(encoding);
    free(whole.data);
    return status;
}

static ft_status submit_texts(ft_serving_call *call, ft_error *err)
{
    const ft_embedding_prompts *prompts = &call->instance->shared->prompts;
    const char *name = call->settings.prompt_name,
               *prompt =
                   name == NULL ? prompts->default_text : ft_embedding_prompts_find(prompts, name);
    if (prompt == NULL)
        return ft_fail(err, FT_EARG, "prompt_name: the model has no prompt \"%.80s\"", name);
    if (call->settings.text_pair != NULL && prompt[0] != '\0')
        return ft_fail(err, FT_EARG,
                       "text_pair: the model puts a prompt before each text, so it takes no pairs");
    for (size_t row = 0; row < call->rows; row++)
        FT_TRY(submit_text(call, row, prompt, err));
    return FT_OK;
}

/* A row of all tensors that are given. */
static ft_status submit_tensors(ft_serving_call *call, size_t row, ft_error *err)
{
    ft_engine_tensor inputs[FT_IN_COUNT];
    size_t count = 0;
    for (int i = 0; i < FT_IN_COUNT; i++) {
        const ft_tensor *t = &call->input[i];
        if (t->data == NULL)
            continue;
        if (t->dim[0] != (int64_t) call->rows)
            return ft_fail(err, FT_ESHAPE, "%s: found %lld rows, expected %zu",
                           ft_serving_tensor_name[i], (long long) t->dim[0], call->rows);
        inputs[count] = (ft_engine_tensor){ ft_serving_tensor_name[i], *t };
        inputs[count].tensor.data = (char *) t->data + row * (ft_tensor_bytes(t) / call->rows);
        inputs[count++].tensor.dim[0] = 1;
    }
    return submit(call, row, inputs, count, err);
}

ft_status ft_serving_encode(ft_serving_call *call, ft_error *err)
{
    const json_t *texts = call->settings.text_input;
    const ft_tensor *main =
        &call->input[call->input[FT_IN_IDS].data != NULL ? FT_IN_IDS : FT_IN_PIXELS];
    call->respond = ft_serving_respond_encoded;
    if ((texts == NULL) == (main->data == NULL) || json_is_string(texts))
        return ft_fail(err, FT_EARG, "found %s, expected either text_input or a tensor",
                       texts == NULL        ? "none"
                       : main->data != NULL ? "both"
                                            : "text_input as a parameter");
    const size_t rows = texts != NULL ? json_array_size(texts) : (size_t) main->dim[0];
    if (rows == 0 || (texts == NULL && ft_tensor_numel(main) == 0))
        return ft_fail(err, FT_ESHAPE, "found no row, expected at least one");
    ft_serving_choose_outputs(call);
    FT_TRY(ft_serving_call_set_rows(call, rows, err));
    if (texts != NULL)
        return submit_texts(call, err);
    for (size_t row = 0; row < rows; row++)
        FT_TRY(submit_tensors(call, row, err));
    return FT_OK;
}
