/*
 * pack.c - writes the quantized artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/pack.h"

#include "calibrate/amax_lists.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- Producers ---------------------------------------------------------------------------- */

/* A tensor that is copied unchanged. */
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

/* int8 weights, quantized while they are written; the block is allocated when it is needed. */
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

/*
 * Group-wise quantized weights: values, then scales, then zero points. Their error is complete
 * after the last byte.
 */
typedef struct blocks_source {
    ft_quantized *quantized;
    ft_blocks_stream stream;
    const ft_packing *what;
    bool begun;
} blocks_source;

static ft_status produce_blocks(void *user, void *buffer, size_t bytes, size_t *produced,
                                ft_error *err)
{
    blocks_source *source = user;
    if (!source->begun) {
        if (source->what->refining != NULL)
            FT_TRY(ft_refining_prepare(source->what->refining, source->quantized, err));
        FT_TRY(ft_blocks_stream_init(&source->stream, &source->quantized->weights,
                                     &source->quantized->how, source->what->threads, err));
        source->begun = true;
    }
    FT_TRY(ft_blocks_stream_read(&source->stream, buffer, bytes, produced, err));
    source->quantized->cost = source->stream.cost;
    return FT_OK;
}

/* ---- Entries ------------------------------------------------------------------------------ */

/* What the entries reference until the file is written. */
typedef struct parcel {
    ft_artifact_writer *writer;
    const ft_packing *what;
    copy_source *copy;     /* [tensors] */
    code_source *code;     /* [tensors] */
    blocks_source *blocks; /* [tensors] */
    char *amax_text;
    ft_amax_lists lists;
} parcel;

static ft_status add_blocks(parcel *p, size_t index, ft_artifact_tensor *tensor,
                            ft_quantized *quantized, ft_error *err)
{
    const ft_blocks_how *how = &quantized->how;
    tensor->dtype = how->bits == 4 ? FT_U4 : FT_U8;
    tensor->layout = FT_PANEL32;
    tensor->blocks = (ft_blocks){ .group = how->group, .by_codes = how->by_codes };
    tensor->zeros = how->asymmetric;
    p->blocks[index] = (blocks_source){ .quantized = quantized, .what = p->what };
    return ft_artifact_add_tensor(p->writer, tensor, produce_blocks, &p->blocks[index], err);
}

/* Tensor number `index` of the file; `from` has its shape. */
static ft_status add_codes(parcel *p, size_t index, const ft_artifact_tensor *from,
                           ft_quantized *quantized, ft_error *err)
{
    ft_artifact_tensor tensor = *from;
    tensor.name = quantized->weights.name;
    tensor.role = ft_role_name(FT_ROLE_LINEAR);
    if (ft_scheme_is_blocks(quantized->scheme))
        return add_blocks(p, index, &tensor, quantized, err);
    tensor.dtype = FT_I8;
    tensor.layout = FT_COL4_4R2_8C;
    tensor.scale = quantized->scale;
    p->code[index].quantized = quantized;
    return ft_artifact_add_tensor(p->writer, &tensor, produce_codes, &p->code[index], err);
}

static ft_status add_tensor(parcel *p, size_t index, ft_error *err)
{
    const ft_artifact_tensor *from = ft_artifact_at(p->what->model->artifact, index);
    ft_quantized *quantized = ft_quantized_find(p->what->quantized, p->what->count, from->name);
    if (quantized != NULL && quantized->scheme != FT_SCHEME_FLOAT)
        return add_codes(p, index, from, quantized, err);
    ft_artifact_tensor tensor = *from;
    const void *changed =
        p->what->refining != NULL ? ft_refining_vector(p->what->refining, from->name) : NULL;
    p->copy[index] = (copy_source){ changed != NULL ? changed : from->data, from->bytes };
    return ft_artifact_add_tensor(p->writer, &tensor, produce_copy, &p->copy[index], err);
}

/* config.json, tokenizer.json and the other files of the checkpoint. */
static ft_status add_files(parcel *p, ft_error *err)
{
    for (size_t i = 0; i < ft_artifact_file_count(p->what->model->artifact); i++) {
        const ft_artifact_entry *file = ft_artifact_file_at(p->what->model->artifact, i);
        FT_TRY(ft_artifact_add_memory(p->writer, file->name, file->data, file->bytes, err));
    }
    return FT_OK;
}

/* FasterTransformer's lists describe models whose linears are all int8. */
static ft_status add_lists(parcel *p, ft_error *err)
{
    const ft_packing *what = p->what;
    for (size_t i = 0; i < what->count; i++)
        if (!ft_scheme_is_int8(what->quantized[i].scheme))
            return FT_OK;
    FT_TRY(
        ft_amax_lists_init(&p->lists, what->model, what->amax, what->quantized, what->count, err));
    for (size_t i = 0; i < p->lists.layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "amax_list/%zu", i);
        FT_TRY(ft_artifact_add_memory(p->writer, name, p->lists.list + i * p->lists.length,
                                      p->lists.length * sizeof(float), err));
    }
    return FT_OK;
}

static ft_status add_amax(parcel *p, ft_error *err)
{
    size_t bytes;
    if (p->what->amax == NULL)
        return FT_OK;
    FT_TRY(ft_amax_format(p->what->amax, &p->amax_text, &bytes, err));
    FT_TRY(ft_artifact_add_memory(p->writer, "amax.tsv", p->amax_text, bytes, err));
    return add_lists(p, err);
}

/*
 * The float artifact stores a tied embedding and head once; here the embedding stays float and the
 * head is a separate quantized tensor.
 */
static ft_status add_borrowed_head(parcel *p, size_t index, ft_error *err)
{
    const ft_model *model = p->what->model;
    if (!model->borrows_head)
        return FT_OK;
    return add_codes(p, index, ft_artifact_find(model->artifact, "embed.word"),
                     ft_quantized_find(p->what->quantized, p->what->count, FT_HEAD_WEIGHT), err);
}

static ft_status add_entries(parcel *p, ft_error *err)
{
    size_t tensors = ft_artifact_count(p->what->model->artifact);
    p->copy = ft_array(tensors + 1, sizeof *p->copy);
    p->code = ft_array(tensors + 1, sizeof *p->code);
    p->blocks = ft_array(tensors + 1, sizeof *p->blocks);
    if (p->copy == NULL || p->code == NULL || p->blocks == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to pack %zu tensors", tensors);
    for (size_t i = 0; i < tensors; i++)
        FT_TRY(add_tensor(p, i, err));
    FT_TRY(add_borrowed_head(p, tensors, err));
    FT_TRY(add_amax(p, err));
    return add_files(p, err);
}

static void parcel_fini(parcel *p)
{
    size_t tensors = ft_artifact_count(p->what->model->artifact);
    for (size_t i = 0; i <= tensors && p->code != NULL; i++)
        ft_weights_stream_fini(&p->code[i].stream);
    for (size_t i = 0; i <= tensors && p->blocks != NULL; i++)
        ft_blocks_stream_fini(&p->blocks[i].stream);
    free(p->copy);
    free(p->code);
    free(p->blocks);
    free(p->amax_text);
    ft_amax_lists_fini(&p->lists);
}

static ft_state state_of(const ft_packing *what)
{
    for (size_t i = 0; i < what->count; i++)
        if (ft_scheme_is_int8(what->quantized[i].scheme))
            return FT_STATE_INT8;
    return FT_STATE_BLOCKS;
}

ft_status ft_pack(ft_artifact_writer *writer, const ft_packing *what, ft_error *err)
{
    parcel p = { .writer = writer, .what = what };
    json_t *config =
        ft_config_to_json(&what->model->config); /* a quantized head is no longer tied */
    ft_artifact_head head = {
        .state = state_of(what),
        .family = ft_artifact_get_head(what->model->artifact)->family,
        .tool = "ft-calibrate",
        .config = config,
        .recipe = what->recipe,
    };
    ft_status status = config != NULL ? add_entries(&p, err)
                                      : ft_fail(err, FT_ENOMEM, "no memory for the manifest");
    if (status == FT_OK)
        status = ft_artifact_write(writer, &head, err);
    parcel_fini(&p);
    json_decref(config);
    return status;
}
