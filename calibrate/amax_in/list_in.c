/*
 * list_in.c - ranges from FasterTransformer v3.0's amaxList of all layers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/amax_in/list_in.h"

#include "calibrate/amax_in/list_names.h"
#include "kernels/quant.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t list_length(const ft_model *model)
{
    return ft_amax_list_size((size_t) model->config.hidden);
}

size_t ft_amax_lists_bytes(const ft_model *model)
{
    size_t bytes;
    if (!ft_amax_list_describes(model) ||
        !ft_checked_mul(list_length(model), (size_t) model->config.layers, &bytes) ||
        !ft_checked_mul(bytes, sizeof(float), &bytes))
        return 0;
    return bytes;
}

/* Whether the second number of an activation is amax / 127, but for a different rounding. */
static bool is_consistent(const float derived[4])
{
    double expected = (double) derived[0] / FT_QUANT_MAX;
    return fabs((double) derived[1] - expected) <= 1e-5 * fabs(expected);
}

/* Zero means that the list has no such range. */
static ft_status read_activations(ft_given_ranges *ranges, const float *list, size_t layer,
                                  ft_error *err)
{
    char name[FT_NAME], source[FT_NAME + 64];
    for (int i = 0; i < FT_AMAX_LIST_ACTIVATIONS; i++) {
        const float *derived = &list[4 * i];
        int value = ft_given_ranges_find(ranges, ft_amax_list_point(name, layer, i));
        if (!is_consistent(derived))
            return ft_fail(err, FT_EFORMAT,
                           "%s: layer %zu, position %d: %g after %g, expected %g (amax / 127); "
                           "this is not FasterTransformer v3.0's amaxList of this model",
                           ranges->path, layer, 4 * i + 1, (double) derived[1], (double) derived[0],
                           (double) derived[0] / FT_QUANT_MAX);
        snprintf(source, sizeof source, "layer %zu, position %d (%s)", layer, 4 * i, name);
        if (value >= 0 && derived[0] != 0.0f)
            FT_TRY(ft_given_ranges_add_amax(ranges, value, derived[0], "amax-list", source, err));
    }
    return FT_OK;
}

static ft_status read_weights(const ft_given_ranges *ranges, const float *amax, size_t layer,
                              ft_error *err)
{
    const ft_amax_input *in = ranges->input;
    char name[FT_NAME];
    for (int i = 0; i < FT_AMAX_LIST_WEIGHTS; i++) {
        ft_quantized_weight *q = ft_quantized_weights_find(in->quantized, in->count,
                                                           ft_amax_list_weight(name, layer, i));
        if (q == NULL)
            return ft_fail(err, FT_EUNSUPPORTED, "%s: %s: the model has no such matrix",
                           ranges->path, name);
        if (ft_scheme_is_int8(q->scheme))
            FT_TRY(ft_given_row_ranges(q, amax, ranges->path, name, err));
        amax += q->weights.rows;
    }
    return FT_OK;
}

ft_status ft_amax_lists_read(ft_given_ranges *ranges, const void *lists, ft_error *err)
{
    size_t length = list_length(ranges->input->model);
    float *list = ft_calloc(length, sizeof *list);
    ft_status status =
        list != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "%s: no memory", ranges->path);
    for (size_t i = 0; i < (size_t) ranges->input->model->config.layers && status == FT_OK; i++) {
        memcpy(list, (const float *) lists + i * length, length * sizeof *list);
        status = read_activations(ranges, list, i, err);
        if (status == FT_OK)
            status = read_weights(ranges, list + FT_AMAX_LIST_HEADER, i, err);
    }
    free(list);
    return status;
}
