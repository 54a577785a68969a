/*
 * amax_lists.c - FasterTransformer's amaxList of every layer, for FasterTransformer users.
 *
 * The list is positional, our points are named. These tables map one to the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/amax_lists.h"

#include "kernels/quant.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/*
 * Calibration points by position in the list; the input of a layer is the norm output of the layer
 * before.
 */
static const char *const points[FT_AMAX_LIST_ACTIVATIONS] = {
    [FT_AMAX_LIST_Q] = "attn.q",
    [FT_AMAX_LIST_K] = "attn.k",
    [FT_AMAX_LIST_V] = "attn.v",
    [FT_AMAX_LIST_SOFTMAX] = "attn.probs",
    [FT_AMAX_LIST_CONTEXT] = "attn.context",
    [FT_AMAX_LIST_NORM1] = "attn.norm",
    [FT_AMAX_LIST_GELU] = "ffn.act",
    [FT_AMAX_LIST_NORM2] = "ffn.norm",
};

static const char *const weights[FT_AMAX_LIST_WEIGHTS] = {
    [FT_AMAX_LIST_WQ] = "attn.q.weight", [FT_AMAX_LIST_WK] = "attn.k.weight",
    [FT_AMAX_LIST_WV] = "attn.v.weight", [FT_AMAX_LIST_WO] = "attn.out.weight",
    [FT_AMAX_LIST_UP] = "ffn.up.weight", [FT_AMAX_LIST_DOWN] = "ffn.down.weight",
};

static float amax_of(const ft_amax_table *amax, size_t layer, const char *point)
{
    char name[FT_NAME];
    if (point == NULL && layer == 0)
        snprintf(name, sizeof name, "embed.norm");
    else if (point == NULL)
        snprintf(name, sizeof name, "layer.%zu.ffn.norm", layer - 1);
    else
        snprintf(name, sizeof name, "layer.%zu.%s", layer, point);
    const ft_amax_entry *entry = ft_amax_table_find(amax, name);
    return entry == NULL ? 0.0f : entry->amax;
}

/* Writes the amax of each channel of a weight, from its scales, to `out`; NULL if it is missing. */
static const float *channel_amax(const ft_quantized_weight *quantized, size_t count, size_t layer,
                                 const char *weight, float *out)
{
    char name[FT_NAME];
    snprintf(name, sizeof name, "layer.%zu.%s", layer, weight);
    for (size_t i = 0; i < count; i++)
        if (strcmp(quantized[i].weights.name, name) == 0) {
            for (size_t row = 0; row < quantized[i].weights.rows; row++)
                out[row] = quantized[i].scale[row] * FT_QUANT_MAX;
            return out;
        }
    return NULL;
}

static ft_status fill_list(float *list, const ft_model *model, const ft_amax_table *amax,
                           const ft_quantized_weight *quantized, size_t count, size_t layer,
                           float *channel_buffer, ft_error *err)
{
    size_t hidden = (size_t) model->config.hidden, ffn = (size_t) model->config.ffn;
    ft_amax_layer layer_amax = { .hidden = hidden, .ffn = ffn };
    for (int i = 0; i < FT_AMAX_LIST_ACTIVATIONS; i++)
        layer_amax.activation[i] = amax_of(amax, layer, points[i]);
    for (int i = 0; i < FT_AMAX_LIST_WEIGHTS; i++) {
        layer_amax.weight[i] = channel_amax(quantized, count, layer, weights[i], channel_buffer);
        if (layer_amax.weight[i] == NULL)
            return ft_fail(err, FT_EFORMAT, "%s: layer.%zu.%s: missing", model->path, layer,
                           weights[i]);
        channel_buffer += i == FT_AMAX_LIST_UP ? ffn : hidden;
    }
    return ft_amax_list_write_layer(list, &layer_amax, err);
}

ft_status ft_amax_lists_init(ft_amax_lists *out, const ft_model *model, const ft_amax_table *amax,
                             const ft_quantized_weight *quantized, size_t count, ft_error *err)
{
    size_t hidden = (size_t) model->config.hidden, ffn = (size_t) model->config.ffn;
    memset(out, 0, sizeof *out);
    if (strcmp(model->family->name, "bert") != 0 || ffn != 4 * hidden)
        return FT_OK;
    out->layers = (size_t) model->config.layers;
    out->length = ft_amax_list_size(hidden);
    out->list = ft_calloc(out->layers * out->length, sizeof *out->list);
    float *channel_buffer = ft_calloc(5 * hidden + ffn, sizeof *channel_buffer);
    ft_status status = FT_OK;
    if (out->list == NULL || channel_buffer == NULL)
        status = ft_fail(err, FT_ENOMEM, "%s: no memory for amax lists", model->path);
    for (size_t i = 0; i < out->layers && status == FT_OK; i++)
        status = fill_list(out->list + i * out->length, model, amax, quantized, count, i,
                           channel_buffer, err);
    free(channel_buffer);
    return status;
}

void ft_amax_lists_fini(ft_amax_lists *lists)
{
    free(lists->list);
    memset(lists, 0, sizeof *lists);
}
