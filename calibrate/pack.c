/*
 * pack.c - a float artifact, ranges and scales become an int8 artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/pack.h"

#include "calibrate/amax_lists.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- Scales ------------------------------------------------------------------------------- */

/*
 * What the model reads as codes, it has for observing among its quantizable weights.  Their values
 * are those of the file: the model's own may lie on a device.
 */
static ft_status add_quantized(ft_quantized *q, const ft_model *model, const ft_weight *weight,
                               ft_error *err)
{
    const ft_artifact_tensor *stored = ft_artifact_find(model->artifact, weight->name);
    if (stored == NULL) /* a head that the file has as the table of words */
        stored = ft_artifact_find(model->artifact, "embed.word");
    q->weights = (ft_weights){
        .name = weight->name,
        .dtype = weight->dtype,
        .data = stored->data,
        .rows = weight->rows,
        .cols = weight->cols,
    };
    q->scale = ft_array(weight->rows, sizeof *q->scale);
    if (q->scale == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for scales", weight->name);
    return ft_weights_scales(q->scale, &q->weights, err);
}

ft_status ft_quantized_new(ft_quantized **out, size_t *count, const ft_model *model, ft_error *err)
{
    *count = 0;
    *out = ft_array((size_t) model->nweight, sizeof **out);
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %d weights", model->path, model->nweight);
    for (int i = 0; i < model->nweight; i++)
        if (model->quantizable[i])
            FT_TRY(add_quantized(&(*out)[(*count)++], model, &model->weight[i], err));
    return FT_OK;
}

void ft_quantized_free(ft_quantized *quantized, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(quantized[i].scale);
    free(quantized);
}

/* ---- Producers ---------------------------------------------------------------------------- */

/* Bytes that are there: a tensor which stays as it is. */
typedef struct copy_source {
    const char *data;
    size_t left;
} copy_source;

static ft_status produce_copy(void *user, void *buffer, size_t bytes, size_t *produced,
                              ft_error *err)
{
    (void) err;
    copy_source *source = user;
    *produced = ft_min_size(bytes, source->left);
    memcpy(buffer, source->data, *produced);
    source->data += *produced;
    source->left -= *produced;
    return FT_OK;
}

/* Codes that are made as they are written; the block is allocated when its turn comes. */
typedef struct code_source {
    const ft_quantized *quantized;
    ft_weights_stream stream;
    bool begun;
} code_source;

static ft_status produce_codes(void *user, void *buffer, size_t bytes, size_t *produced,
                               ft_error *err)
{
    code_source *source = user;
    if (!source->begun) {
        FT_TRY(ft_weights_stream_init(&source->stream, &source->quantized->weights,
                                      source->quantized->scale, err));
        source->begun = true;
    }
    *produced = ft_weights_stream_read(&source->stream, buffer, bytes);
    return FT_OK;
}

/* ---- Entries ------------------------------------------------------------------------------ */

/* What the entries borrow until the file is written. */
typedef struct parcel {
    ft_artifact_writer *writer;
    const ft_model *model;
    copy_source *copy; /* [tensors] */
    code_source *code; /* [tensors] */
    char *amax_text;
    ft_amax_lists lists;
} parcel;

/* Number `index` of the tensors to be written; `from` has its shape. */
static ft_status add_codes(parcel *p, size_t index, const ft_artifact_tensor *from,
                           const ft_quantized *quantized, ft_error *err)
{
    ft_artifact_tensor tensor = *from;
    tensor.name = quantized->weights.name;
    tensor.role = ft_role_name(FT_ROLE_LINEAR);
    tensor.dtype = FT_I8;
    tensor.layout = FT_COL4_4R2_8C;
    tensor.scale = quantized->scale;
    p->code[index].quantized = quantized;
    return ft_artifact_add_tensor(p->writer, &tensor, produce_codes, &p->code[index], err);
}

static ft_status add_tensor(parcel *p, size_t index, const ft_quantized **next,
                            const ft_quantized *end, ft_error *err)
{
    const ft_artifact_tensor *from = ft_artifact_at(p->model->artifact, index);
    if (*next < end && strcmp(from->name, (*next)->weights.name) == 0)
        return add_codes(p, index, from, (*next)++, err);
    ft_artifact_tensor tensor = *from;
    p->copy[index] = (copy_source){ from->data, from->bytes };
    return ft_artifact_add_tensor(p->writer, &tensor, produce_copy, &p->copy[index], err);
}

/* config.json, tokenizer.json and whatever else came with the checkpoint. */
static ft_status add_files(parcel *p, ft_error *err)
{
    for (size_t i = 0; i < ft_artifact_file_count(p->model->artifact); i++) {
        const ft_artifact_entry *file = ft_artifact_file_at(p->model->artifact, i);
        FT_TRY(ft_artifact_add_memory(p->writer, file->name, file->data, file->bytes, err));
    }
    return FT_OK;
}

static ft_status add_amax(parcel *p, const ft_amax *amax, const ft_quantized *quantized,
                          size_t count, ft_error *err)
{
    size_t bytes;
    if (amax == NULL)
        return FT_OK;
    FT_TRY(ft_amax_format(amax, &p->amax_text, &bytes, err));
    FT_TRY(ft_artifact_add_memory(p->writer, "amax.tsv", p->amax_text, bytes, err));
    FT_TRY(ft_amax_lists_init(&p->lists, p->model, amax, quantized, count, err));
    for (size_t i = 0; i < p->lists.layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "amax_list/%zu", i);
        FT_TRY(ft_artifact_add_memory(p->writer, name, p->lists.list + i * p->lists.length,
                                      p->lists.length * sizeof(float), err));
    }
    return FT_OK;
}

static ft_status add_entries(parcel *p, const ft_amax *amax, const ft_quantized *quantized,
                             size_t count, ft_error *err)
{
    size_t tensors = ft_artifact_count(p->model->artifact);
    const ft_quantized *next = quantized;
    p->copy = ft_array(tensors + 1, sizeof *p->copy);
    p->code = ft_array(tensors + 1, sizeof *p->code);
    if (p->copy == NULL || p->code == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to pack %zu tensors", tensors);
    for (size_t i = 0; i < tensors; i++)
        FT_TRY(add_tensor(p, i, &next, quantized + count, err));
    if (p->model
            ->borrows_head) /* what the float artifact has once is here twice: table and codes */
        FT_TRY(
            add_codes(p, tensors, ft_artifact_find(p->model->artifact, "embed.word"), next, err));
    FT_TRY(add_amax(p, amax, quantized, count, err));
    return add_files(p, err);
}

static void parcel_fini(parcel *p)
{
    for (size_t i = 0; p->code != NULL && i <= ft_artifact_count(p->model->artifact); i++)
        ft_weights_stream_fini(&p->code[i].stream);
    free(p->copy);
    free(p->code);
    free(p->amax_text);
    ft_amax_lists_fini(&p->lists);
}

ft_status ft_pack(ft_artifact_writer *writer, const ft_model *model, const ft_amax *amax,
                  const ft_quantized *quantized, size_t count, json_t *recipe, ft_error *err)
{
    parcel p = { .writer = writer, .model = model };
    json_t *config = ft_config_to_json(&model->config); /* an int8 head is no longer tied */
    const ft_artifact_head *from = ft_artifact_get_head(model->artifact);
    ft_artifact_head head = {
        .state = FT_STATE_INT8,
        .family = from->family,
        .tool = "ft-calibrate",
        .config = config,
        .recipe = recipe,
    };
    ft_status status = config != NULL ? add_entries(&p, amax, quantized, count, err)
                                      : ft_fail(err, FT_ENOMEM, "no memory for the manifest");
    if (status == FT_OK)
        status = ft_artifact_finish(writer, &head, err);
    parcel_fini(&p);
    json_decref(config);
    json_decref(recipe);
    return status;
}
