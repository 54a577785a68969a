/*
 * amax_list.c - FasterTransformer v3.0's list of one encoder layer's ranges, indexed by position.
 *
 * Source: FasterTransformer v3.0, bert_encoder_transformer.h, which reads a layer's list by index.
 * Later versions have other tensors at the same indices.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/amax.h"

#include "kernels/quant.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <string.h>

/* Output channels of the weights, in units of H. */
static const size_t weight_channels_per_h[FT_AMAX_LIST_WEIGHTS] = {
    [FT_AMAX_LIST_WQ] = 1, [FT_AMAX_LIST_WK] = 1, [FT_AMAX_LIST_WV] = 1,
    [FT_AMAX_LIST_WO] = 1, [FT_AMAX_LIST_UP] = 4, [FT_AMAX_LIST_DOWN] = 1,
};

static const char *const activation_names[FT_AMAX_LIST_ACTIVATIONS] = {
    [FT_AMAX_LIST_INPUT] = "layer input",
    [FT_AMAX_LIST_Q] = "q after bias",
    [FT_AMAX_LIST_K] = "k after bias",
    [FT_AMAX_LIST_V] = "v after bias",
    [FT_AMAX_LIST_SOFTMAX] = "softmax output",
    [FT_AMAX_LIST_CONTEXT] = "attention context",
    [FT_AMAX_LIST_NORM1] = "norm after attention",
    [FT_AMAX_LIST_GELU] = "activation in feed-forward",
    [FT_AMAX_LIST_NORM2] = "norm after feed-forward",
};

static const char *const weight_names[FT_AMAX_LIST_WEIGHTS] = {
    [FT_AMAX_LIST_WQ] = "q",
    [FT_AMAX_LIST_WK] = "k",
    [FT_AMAX_LIST_WV] = "v",
    [FT_AMAX_LIST_WO] = "attention output",
    [FT_AMAX_LIST_UP] = "feed-forward up",
    [FT_AMAX_LIST_DOWN] = "feed-forward down",
};

static const char *const derived_names[4] = { "amax", "amax / 127", "amax / 127 / 127",
                                              "127 / amax" };

size_t ft_amax_list_size(size_t hidden)
{
    size_t count;
    return ft_checked_mul(hidden, 9, &count) && ft_checked_add(count, FT_AMAX_LIST_HEADER, &count)
               ? count
               : 0;
}

ft_status ft_amax_list_write_layer(float *list, const ft_amax_layer *layer, ft_error *err)
{
    size_t h = layer->hidden;
    if (layer->ffn / 4 != h || layer->ffn % 4 != 0)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "amaxList has no place for a feed-forward width of %zu, expected 4 x %zu",
                       layer->ffn, h);
    memset(list, 0, FT_AMAX_LIST_HEADER * sizeof *list);
    for (int i = 0; i < FT_AMAX_LIST_ACTIVATIONS; i++) {
        double amax = (double) layer->activation[i];
        list[4 * i] = (float) amax;
        list[4 * i + 1] = (float) (amax / FT_QUANT_MAX);
        list[4 * i + 2] = (float) (amax / FT_QUANT_MAX / FT_QUANT_MAX);
        list[4 * i + 3] = amax > 0.0 ? (float) (FT_QUANT_MAX / amax) : 0.0f;
    }
    float *next = list + FT_AMAX_LIST_HEADER;
    for (int i = 0; i < FT_AMAX_LIST_WEIGHTS; i++) {
        size_t channels = weight_channels_per_h[i] * h;
        memcpy(next, layer->weight[i], channels * sizeof *next);
        next += channels;
    }
    return FT_OK;
}

char *ft_amax_list_describe(char text[FT_AMAX_LIST_DESCRIPTION_SIZE], size_t hidden, size_t index)
{
    if (index < 4 * FT_AMAX_LIST_ACTIVATIONS) {
        snprintf(text, FT_AMAX_LIST_DESCRIPTION_SIZE, "%s: %s", activation_names[index / 4],
                 derived_names[index % 4]);
        return text;
    }
    snprintf(text, FT_AMAX_LIST_DESCRIPTION_SIZE, "reserved");
    if (index < FT_AMAX_LIST_HEADER)
        return text;
    size_t channel = index - FT_AMAX_LIST_HEADER;
    for (int i = 0; i < FT_AMAX_LIST_WEIGHTS; i++) {
        size_t channels = weight_channels_per_h[i] * hidden;
        if (channel < channels) {
            snprintf(text, FT_AMAX_LIST_DESCRIPTION_SIZE, "%s weight amax, channel %zu",
                     weight_names[i], channel);
            break;
        }
        channel -= channels;
    }
    return text;
}
