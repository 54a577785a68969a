/*
 * pack.c - writes the quantized artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/pack.h"

#include "calibrate/amax_in/list_out.h"
#include "runtime/graph/plan.h"
#include "runtime/mem.h"
#include "runtime/selftest/selftest.h"

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
typedef struct int8_source {
    const ft_quantized_weight *quantized;
    ft_int8_weight_stream stream;
    bool started;
} int8_source;

static ft_status produce_int8(void *user, void *buffer, size_t bytes, size_t *produced,
                              ft_error *err)
{
    int8_source *source = user;
    if (!source->started) {
        FT_TRY(ft_int8_weight_stream_init(&source->stream, &source->quantized->weights,
                                          source->quantized->scale, err));
        source->started = true;
    }
    *produced = ft_int8_weight_stream_read(&source->stream, buffer, bytes);
    return FT_OK;
}

/*
 * Group-wise quantized weights: values, then scales, then zero points. Their error is complete
 * after the last byte.
 */
typedef struct groupwise_source {
    ft_quantized_weight *quantized;
    ft_groupwise_stream stream;
    const ft_pack_options *options;
    bool started;
} groupwise_source;

/* The bytes of a matrix that is quantized already; data NULL: it is not. */
static copy_source quantized_bytes(const ft_pack_options *options,
                                   const ft_quantized_weight *quantized)
{
    ft_groupwise_bytes bytes = ft_groupwise_stream_bytes(&quantized->weights, &quantized->options);
    return (copy_source){
        .data =
            options->refining != NULL ? ft_refinement_bytes(options->refining, quantized) : NULL,
        .left = bytes.quantized + bytes.scales + bytes.zeros,
    };
}

static ft_status produce_groupwise(void *user, void *buffer, size_t bytes, size_t *produced,
                                   ft_error *err)
{
    groupwise_source *source = user;
    if (!source->started) {
        if (source->options->refining != NULL)
            FT_TRY(ft_refinement_prepare(source->options->refining, source->quantized, err));
        FT_TRY(ft_groupwise_stream_init(&source->stream, &source->quantized->weights,
                                        &source->quantized->options, source->options->threads,
                                        err));
        source->started = true;
    }
    FT_TRY(ft_groupwise_stream_read(&source->stream, buffer, bytes, produced, err));
    source->quantized->error = source->stream.error;
    return FT_OK;
}

/* ---- Entries ------------------------------------------------------------------------------ */

/* What the entries reference until the file is written. */
typedef struct pack_state {
    ft_artifact_writer *writer;
    const ft_pack_options *options;
    copy_source *copy;        /* [tensors] */
    int8_source *int8;        /* [tensors] */
    groupwise_source *groupwise; /* [tensors] */
    float **smoothing;           /* [n_smoothing] */
    copy_source *smoothing_copy; /* [n_smoothing] */
    char *amax_text;
    ft_amax_lists lists;
} pack_state;

static ft_status add_groupwise(pack_state *p, size_t index, ft_artifact_tensor *tensor,
                               ft_quantized_weight *quantized, ft_error *err)
{
    const ft_groupwise_options *how = &quantized->options;
    tensor->dtype = how->bits == 4 ? FT_U4 : FT_U8;
    tensor->layout = FT_PANEL32;
    tensor->groupwise =
        (ft_groupwise){ .group = how->group, .int8_activations = how->int8_activations };
    tensor->has_zero_points = how->asymmetric;
    p->groupwise[index] = (groupwise_source){ .quantized = quantized, .options = p->options };
    p->copy[index] = quantized_bytes(p->options, quantized);
    if (p->copy[index].data != NULL)
        return ft_artifact_add_tensor(p->writer, tensor, produce_copy, &p->copy[index], err);
    return ft_artifact_add_tensor(p->writer, tensor, produce_groupwise, &p->groupwise[index], err);
}

/* Tensor number `index` of the file; `from` has its shape. */
static ft_status add_quantized(pack_state *p, size_t index, const ft_artifact_tensor *from,
                               ft_quantized_weight *quantized, ft_error *err)
{
    ft_artifact_tensor tensor = *from;
    tensor.name = quantized->weights.name;
    tensor.role = ft_role_name(FT_ROLE_LINEAR);
    if (ft_scheme_is_groupwise(quantized->scheme))
        return add_groupwise(p, index, &tensor, quantized, err);
    tensor.dtype = FT_I8;
    tensor.layout = FT_COL4_4R2_8C;
    tensor.scale = quantized->scale;
    p->int8[index].quantized = quantized;
    return ft_artifact_add_tensor(p->writer, &tensor, produce_int8, &p->int8[index], err);
}

static ft_status add_tensor(pack_state *p, size_t index, ft_error *err)
{
    const ft_artifact_tensor *from = ft_artifact_at(p->options->model->artifact, index);
    ft_quantized_weight *quantized =
        ft_quantized_weights_find(p->options->quantized, p->options->count, from->name);
    if (quantized != NULL && quantized->scheme != FT_SCHEME_FLOAT)
        return add_quantized(p, index, from, quantized, err);
    ft_artifact_tensor tensor = *from;
    const void *rescaled = p->options->refining != NULL
                               ? ft_refinement_vector(p->options->refining, from->name)
                               : NULL;
    p->copy[index] = (copy_source){ rescaled != NULL ? rescaled : from->data, from->bytes };
    return ft_artifact_add_tensor(p->writer, &tensor, produce_copy, &p->copy[index], err);
}

/* The reciprocals of the factors of a smoothed point, as a tensor of their own. */
static ft_status add_smoothing(pack_state *p, size_t index, const ft_smoothing *smoothing,
                               ft_error *err)
{
    char name[FT_NAME + sizeof FT_SMOOTHING_SUFFIX];
    size_t bytes = smoothing->cols * sizeof(float);
    snprintf(name, sizeof name, "%s" FT_SMOOTHING_SUFFIX, smoothing->point);
    float *vector = p->smoothing[index] = ft_calloc(smoothing->cols, sizeof *vector);
    if (vector == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu factors", name, smoothing->cols);
    ft_smoothing_reciprocals(vector, smoothing->factor, smoothing->cols);
    p->smoothing_copy[index] = (copy_source){ (const char *) vector, bytes };
    const ft_artifact_tensor tensor = { .name = name,
                                        .role = FT_SMOOTHING_ROLE,
                                        .dtype = FT_F32,
                                        .layout = FT_ROW,
                                        .ndim = 1,
                                        .dim = { (int64_t) smoothing->cols } };
    return ft_artifact_add_tensor(p->writer, &tensor, produce_copy, &p->smoothing_copy[index], err);
}

/* config.json, tokenizer.json and the other files of the checkpoint. */
static ft_status add_files(pack_state *p, ft_error *err)
{
    for (size_t i = 0; i < ft_artifact_file_count(p->options->model->artifact); i++) {
        const ft_artifact_entry *file = ft_artifact_file_at(p->options->model->artifact, i);
        FT_TRY(ft_artifact_add_memory(p->writer, file->name, file->data, file->bytes, err));
    }
    return FT_OK;
}

/* FasterTransformer's lists describe models whose linears are all int8 with static scales. */
static ft_status add_lists(pack_state *p, ft_error *err)
{
    const ft_pack_options *options = p->options;
    for (size_t i = 0; i < options->count; i++)
        if (!ft_scheme_is_int8(options->quantized[i].scheme))
            return FT_OK;
    for (size_t i = 0; i < options->amax->count; i++)
        if (ft_amax_entry_is_per_token(&options->amax->entry[i]))
            return FT_OK;
    FT_TRY(ft_amax_lists_init(&p->lists, options->model, options->amax, options->quantized,
                              options->count, err));
    for (size_t i = 0; i < p->lists.layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "amax_list/%zu", i);
        FT_TRY(ft_artifact_add_memory(p->writer, name, p->lists.list + i * p->lists.length,
                                      p->lists.length * sizeof(float), err));
    }
    return FT_OK;
}

static ft_status add_amax(pack_state *p, ft_error *err)
{
    size_t bytes;
    if (p->options->amax == NULL)
        return FT_OK;
    FT_TRY(ft_amax_table_format(p->options->amax, &p->amax_text, &bytes, err));
    FT_TRY(ft_artifact_add_memory(p->writer, "amax.tsv", p->amax_text, bytes, err));
    return add_lists(p, err);
}

/*
 * The float artifact stores a tied embedding and head once; here the embedding stays float and the
 * head is a separate quantized tensor.
 */
static ft_status add_tied_head(pack_state *p, size_t index, ft_error *err)
{
    const ft_model *model = p->options->model;
    if (!model->shares_embedding)
        return FT_OK;
    return add_quantized(
        p, index, ft_artifact_find(model->artifact, "embed.word"),
        ft_quantized_weights_find(p->options->quantized, p->options->count, FT_HEAD_WEIGHT), err);
}

static ft_status add_entries(pack_state *p, ft_error *err)
{
    size_t tensors = ft_artifact_count(p->options->model->artifact);
    p->copy = ft_calloc(tensors + 1, sizeof *p->copy);
    p->int8 = ft_calloc(tensors + 1, sizeof *p->int8);
    p->groupwise = ft_calloc(tensors + 1, sizeof *p->groupwise);
    p->smoothing = ft_calloc(p->options->n_smoothing + 1, sizeof *p->smoothing);
    p->smoothing_copy = ft_calloc(p->options->n_smoothing + 1, sizeof *p->smoothing_copy);
    if (p->copy == NULL || p->int8 == NULL || p->groupwise == NULL || p->smoothing == NULL ||
        p->smoothing_copy == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to pack %zu tensors", tensors);
    for (size_t i = 0; i < tensors; i++)
        FT_TRY(add_tensor(p, i, err));
    FT_TRY(add_tied_head(p, tensors, err));
    for (size_t i = 0; i < p->options->n_smoothing; i++)
        FT_TRY(add_smoothing(p, i, &p->options->smoothing[i], err));
    if (p->options->refining != NULL)
        FT_TRY(ft_folded_scales_write(&p->options->refining->scaling, p->writer, err));
    FT_TRY(add_amax(p, err));
    if (p->options->selftest != NULL)
        FT_TRY(ft_artifact_add_memory(p->writer, FT_SELFTEST_ENTRY, p->options->selftest,
                                      p->options->selftest_bytes, err));
    return add_files(p, err);
}

static void pack_state_fini(pack_state *p)
{
    size_t tensors = ft_artifact_count(p->options->model->artifact);
    for (size_t i = 0; i <= tensors && p->int8 != NULL; i++)
        ft_int8_weight_stream_fini(&p->int8[i].stream);
    for (size_t i = 0; i <= tensors && p->groupwise != NULL; i++)
        ft_groupwise_stream_fini(&p->groupwise[i].stream);
    for (size_t i = 0; i < p->options->n_smoothing && p->smoothing != NULL; i++)
        free(p->smoothing[i]);
    free(p->smoothing);
    free(p->smoothing_copy);
    free(p->copy);
    free(p->int8);
    free(p->groupwise);
    free(p->amax_text);
    ft_amax_lists_fini(&p->lists);
}

static ft_artifact_state artifact_state(const ft_pack_options *options)
{
    for (size_t i = 0; i < options->count; i++)
        if (ft_scheme_is_int8(options->quantized[i].scheme))
            return FT_ARTIFACT_INT8;
    return FT_ARTIFACT_GROUPWISE;
}

static ft_status write_artifact(const pack_state *p, ft_artifact_header *head, ft_error *err)
{
    const ft_refinement *refining = p->options->refining;
    FT_TRY(ft_folded_scales_require(&head->required, refining != NULL ? &refining->scaling : NULL,
                                    err));
    ft_status status = ft_artifact_write(p->writer, head, err);
    json_decref(head->required);
    return status;
}

ft_status ft_pack(ft_artifact_writer *writer, const ft_pack_options *options, ft_error *err)
{
    pack_state p = { .writer = writer, .options = options };
    json_t *config =
        ft_config_to_json(&options->model->config); /* a quantized head is no longer tied */
    ft_artifact_header head = {
        .state = artifact_state(options),
        .family = ft_artifact_get_header(options->model->artifact)->family,
        .tool = "ft-calibrate",
        .config = config,
        .recipe = options->recipe,
        .provenance = options->provenance != NULL
                          ? options->provenance
                          : ft_artifact_get_header(options->model->artifact)->provenance,
        .required = ft_artifact_get_header(options->model->artifact)->required,
    };
    ft_status status = config != NULL ? add_entries(&p, err)
                                      : ft_fail(err, FT_ENOMEM, "no memory for the manifest");
    if (status == FT_OK)
        status = write_artifact(&p, &head, err);
    pack_state_fini(&p);
    json_decref(config);
    return status;
}
