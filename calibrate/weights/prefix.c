/*
 * prefix.c - the quantized prefix: a model whose first matrices are quantized and the others float.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/prefix.h"

#include "calibrate/weights/groupwise_weight.h"
#include "runtime/base/file_memory.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>

/* The values of the file, because the model's own copy may be on a device. */
static ft_weight original_weight(const ft_model *model, size_t index,
                                 const ft_folded_scales *scaling)
{
    ft_weight weight = model->weight[index];
    const ft_artifact_tensor *stored = ft_artifact_find(model->artifact, weight.name);
    if (stored == NULL) /* a head that the file stores as the embedding table */
        stored = ft_artifact_find(model->artifact, "embed.word");
    const float *scaled = scaling->vector[index];
    weight.data = scaled != NULL ? scaled : stored->data;
    weight.prepacked = NULL;
    return weight;
}

ft_status ft_prefix_init(ft_prefix *p, const ft_model *model, const ft_folded_scales *scaling,
                         ft_error *err)
{
    bool has_positions = model->positions != NULL; /* computed, behind the weights of the file */
    *p = (ft_prefix){ .model = model, .nweight = (size_t) model->nweight - has_positions };
    p->weight = ft_calloc(p->nweight, sizeof *p->weight);
    p->quantized = ft_calloc(p->nweight, sizeof *p->quantized);
    p->bytes = ft_calloc(p->nweight, sizeof *p->bytes);
    if (p->weight == NULL || p->quantized == NULL || p->bytes == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu weights", model->path, p->nweight);
    for (size_t i = 0; i < p->nweight; i++)
        p->weight[i] = original_weight(model, i, scaling);
    return FT_OK;
}

void ft_prefix_fini(ft_prefix *p)
{
    for (size_t i = 0; i < p->nweight && p->quantized != NULL; i++)
        if (p->folder != NULL)
            ft_file_memory_free(p->quantized[i], p->bytes[i]);
        else
            free(p->quantized[i]);
    free(p->quantized);
    free(p->bytes);
    free(p->weight);
    *p = (ft_prefix){ 0 };
}

ft_status ft_prefix_alloc(ft_prefix *p, int index, size_t bytes, ft_error *err)
{
    if (p->folder != NULL)
        FT_TRY(ft_file_memory_alloc(&p->quantized[index], bytes, p->folder, err));
    else
        p->quantized[index] = ft_calloc_aligned(bytes);
    p->bytes[index] = bytes;
    return p->quantized[index] != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "%s: no memory for %zu bytes", p->weight[index].name,
                         bytes);
}

ft_status ft_prefix_quantize(ft_prefix *p, int index, ft_quantized_weight *quantized, int threads,
                             ft_error *err)
{
    size_t bytes = ft_groupwise_weight_bytes(&quantized->weights, &quantized->options);
    FT_TRY(ft_prefix_alloc(p, index, bytes, err));
    return ft_groupwise_weight_init(&p->weight[index], p->quantized[index], &quantized->error,
                                    &quantized->weights, &quantized->options, threads, err);
}

ft_status ft_prefix_open(ft_model **out, const ft_prefix *p, const char *device, ft_error *err)
{
    const ft_model *model = p->model;
    ft_model_parts parts = { model->path, model->family, &model->config, p->weight, p->nweight };
    return ft_model_from_weights(out, &parts, &(ft_model_options){ .device = device },
                                 &model->quant, err);
}
