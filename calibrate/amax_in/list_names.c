/*
 * list_names.c - our names of the entries of FasterTransformer's amaxList.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/amax_in/list_names.h"

#include "runtime/container/amax.h"

#include <stdio.h>
#include <string.h>

/* The input of a layer is the norm output of the layer before. */
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

bool ft_amax_list_describes(const ft_model *model)
{
    return strcmp(model->family->name, "bert") == 0 &&
           (int64_t) model->config.ffn == 4 * (int64_t) model->config.hidden;
}

const char *ft_amax_list_point(char name[FT_NAME], size_t layer, int index)
{
    if (index == FT_AMAX_LIST_INPUT && layer == 0)
        snprintf(name, FT_NAME, "embed.norm");
    else if (index == FT_AMAX_LIST_INPUT)
        snprintf(name, FT_NAME, "layer.%zu.ffn.norm", layer - 1);
    else
        snprintf(name, FT_NAME, "layer.%zu.%s", layer, points[index]);
    return name;
}

const char *ft_amax_list_weight(char name[FT_NAME], size_t layer, int index)
{
    snprintf(name, FT_NAME, "layer.%zu.%s", layer, weights[index]);
    return name;
}
