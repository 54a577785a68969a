/*
 * list_out.c - FasterTransformer's amaxList of every layer, for FasterTransformer users.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/amax_in/list_out.h"

#include "calibrate/amax_in/list_names.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

static float amax_of(const ft_amax_table *amax, size_t layer, int index)
{
    char name[FT_NAME];
    const ft_amax_entry *entry = ft_amax_table_find(amax, ft_amax_list_point(name, layer, index));
    return entry == NULL ? 0.0f : entry->amax;
}

/* Writes the amax of each channel of a weight, from its scales, to `out`; NULL if it is missing. */
static const float *channel_amax(const ft_quantized_weight *quantized, size_t count,
                                 const char *name, float *out)
{
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
    char name[FT_NAME];
    size_t hidden = (size_t) model->config.hidden, ffn = (size_t) model->config.ffn;
    ft_amax_layer layer_amax = { .hidden = hidden, .ffn = ffn };
    for (int i = 0; i < FT_AMAX_LIST_ACTIVATIONS; i++)
        layer_amax.activation[i] = amax_of(amax, layer, i);
    for (int i = 0; i < FT_AMAX_LIST_WEIGHTS; i++) {
        ft_amax_list_weight(name, layer, i);
        layer_amax.weight[i] = channel_amax(quantized, count, name, channel_buffer);
        if (layer_amax.weight[i] == NULL)
            return ft_fail(err, FT_EFORMAT, "%s: %s: missing", model->path, name);
        channel_buffer += i == FT_AMAX_LIST_UP ? ffn : hidden;
    }
    return ft_amax_list_write_layer(list, &layer_amax, err);
}

ft_status ft_amax_lists_init(ft_amax_lists *out, const ft_model *model, const ft_amax_table *amax,
                             const ft_quantized_weight *quantized, size_t count, ft_error *err)
{
    size_t hidden = (size_t) model->config.hidden, ffn = (size_t) model->config.ffn;
    memset(out, 0, sizeof *out);
    if (!ft_amax_list_describes(model))
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
