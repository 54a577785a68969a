/*
 * prompts.c - prompts: rows of token ids from a file, or encoded texts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/run/prompts.h"

#include "runtime/data/dataset.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text/stop_ids.h"
#include "runtime/tools/run/conversation.h"
#include "runtime/tools/run/encode_text.h"

#include <stdlib.h>
#include <string.h>

static ft_status allocate(ft_prompts *out, size_t count, ft_error *err)
{
    out->count = count;
    out->start = ft_calloc(count + 1, sizeof *out->start);
    return out->start != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for %zu texts", count);
}

void ft_prompts_fini(ft_prompts *prompts)
{
    free(prompts->ids);
    free(prompts->start);
    ft_examples_fini(&prompts->texts);
    *prompts = (ft_prompts){ 0 };
}

/* ---- Data --------------------------------------------------------------------------------- */

/* pad_token_id in a file of the checkpoint, or -1. */
static int32_t padding_in(const ft_model *model, const char *name)
{
    ft_json_reader in = { .file = model->path };
    int32_t id = -1;
    (void) ft_artifact_load_json(model->artifact, name, &in);
    (void) ft_json_read_optional_int32(&in, "pad_token_id", 0, model->config.vocabulary - 1, -1,
                                       &id);
    json_decref(in.json);
    return id;
}

/* The padding id of rows without mask or lengths: pad_token_id, else eos_token_id; -1: none. */
static ft_status find_padding(int32_t *id, const ft_model *model, ft_error *err)
{
    ft_stop_ids ends;
    *id = padding_in(model, "generation_config.json");
    if (*id < 0)
        *id = padding_in(model, "config.json");
    if (*id >= 0)
        return FT_OK;
    FT_TRY(ft_stop_ids_read(&ends, model->artifact, model->path, model->config.vocabulary, err));
    *id = ends.count > 0 ? ends.id[0] : -1;
    return FT_OK;
}

/* Mask the trailing padding of each row. */
static ft_status strip_padding(ft_dataset *data, const ft_model *model, const char *path,
                               ft_error *err)
{
    int32_t padding;
    FT_TRY(find_padding(&padding, model, err));
    for (size_t row = 0; row < data->rows; row++) {
        size_t first = row * data->cols, end = first + data->cols;
        while (end > first && data->ids[end - 1] == padding)
            data->mask[--end] = 0;
        if (end == first)
            return ft_fail(err, FT_EFORMAT, "%s: input_ids: row %zu is all padding (%d)", path, row,
                           padding);
    }
    return FT_OK;
}

static ft_status pack_rows(ft_prompts *out, const ft_dataset *data, ft_error *err)
{
    size_t tokens = 0;
    FT_TRY(allocate(out, data->rows, err));
    out->cols = data->cols;
    out->ids = ft_calloc(ft_dataset_tokens(data), sizeof *out->ids);
    if (out->ids == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu texts", data->rows);
    for (size_t i = 0; i < data->rows * data->cols; i++) {
        if (data->mask[i] != 0)
            out->ids[tokens++] = data->ids[i];
        out->start[i / data->cols + 1] = tokens;
    }
    return FT_OK;
}

static ft_status read_data(ft_prompts *out, const ft_run *run, const ft_model *model, ft_error *err)
{
    ft_dataset data;
    FT_TRY(ft_dataset_read(&data, run->data, model, err));
    ft_status status = data.has_mask ? FT_OK : strip_padding(&data, model, run->data, err);
    if (status == FT_OK)
        status = pack_rows(out, &data, err);
    ft_dataset_fini(&data);
    return status;
}

/* ---- Texts -------------------------------------------------------------------------------- */

/* A chat with a single user message. */
static ft_status encode_message(const ft_run *run, const ft_model *model,
                                const ft_tokenizer *tokenizer, const char *text, int32_t **ids,
                                size_t *count, ft_error *err)
{
    ft_conversation conversation;
    ft_status status = ft_conversation_init(&conversation, model, run->date, err);
    if (status == FT_OK && run->system != NULL)
        status = ft_conversation_add(&conversation, "system", run->system, err);
    if (status == FT_OK)
        status = ft_conversation_add(&conversation, "user", text, err);
    if (status == FT_OK)
        status = ft_conversation_encode(&conversation, tokenizer, ids, count, err);
    ft_conversation_fini(&conversation);
    return status;
}

static ft_status add(ft_prompts *out, size_t index, const int32_t *ids, size_t count, ft_error *err)
{
    size_t before = out->start[index];
    int32_t *grown = realloc(out->ids, (before + count + 1) * sizeof *grown);
    if (grown == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu tokens", before + count);
    memcpy(grown + before, ids, count * sizeof *ids);
    out->ids = grown;
    out->start[index + 1] = before + count;
    out->cols = count > out->cols ? count : out->cols;
    return FT_OK;
}

static ft_status read_texts(ft_prompts *out, const ft_run *run, const ft_model *model,
                            const ft_tokenizer *tokenizer, ft_error *err)
{
    FT_TRY(ft_run_texts(&out->texts, run, err));
    FT_TRY(allocate(out, out->texts.count, err));
    for (size_t i = 0; i < out->count; i++) {
        const char *text = out->texts.example[i].text;
        int32_t *ids = NULL;
        size_t count;
        ft_status status = run->chat
                               ? encode_message(run, model, tokenizer, text, &ids, &count, err)
                               : ft_text_encode(tokenizer, text, false, &ids, &count, err);
        if (status == FT_OK)
            status = add(out, i, ids, count, err);
        free(ids);
        FT_TRY(status);
    }
    return FT_OK;
}

ft_status ft_prompts_read(ft_prompts *out, const ft_run *run, const ft_model *model,
                          const ft_tokenizer *tokenizer, ft_error *err)
{
    *out = (ft_prompts){ 0 };
    return run->data != NULL ? read_data(out, run, model, err)
                             : read_texts(out, run, model, tokenizer, err);
}
