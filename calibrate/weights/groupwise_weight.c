/*
 * groupwise_weight.c - a group-wise quantized matrix in memory, as a weight of a model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/groupwise_weight.h"

#include "runtime/error.h"

/* Values, scales and zero points as they would be written. */
static ft_status read_stream(char *out, size_t bytes, ft_groupwise_error *error,
                             const ft_weight_matrix *matrix, const ft_groupwise_options *options,
                             int threads, ft_error *err)
{
    ft_groupwise_stream stream;
    size_t n_read;
    ft_status status = ft_groupwise_stream_init(&stream, matrix, options, threads, err);
    if (status == FT_OK)
        status = ft_groupwise_stream_read(&stream, out, bytes, &n_read, err);
    *error = stream.error;
    ft_groupwise_stream_fini(&stream);
    return status;
}

/* All three sections are multiples of 64 bytes, so each is aligned. */
static void set_weight(ft_weight *weight, char *bytes, const ft_groupwise_bytes *sections,
                       const ft_groupwise_options *options)
{
    char *scale = bytes + sections->quantized, *zero = scale + sections->scales;
    weight->dtype = options->bits == 4 ? FT_U4 : FT_U8;
    weight->layout = FT_PANEL32;
    weight->data = bytes;
    weight->groupwise = (ft_groupwise){ .group = options->group,
                                        .int8_activations = options->int8_activations,
                                        .scale = (void *) scale,
                                        .zero = options->asymmetric ? (void *) zero : NULL };
}

size_t ft_groupwise_weight_bytes(const ft_weight_matrix *matrix,
                                 const ft_groupwise_options *options)
{
    ft_groupwise_bytes sections = ft_groupwise_stream_bytes(matrix, options);
    return sections.quantized + sections.scales + sections.zeros;
}

ft_status ft_groupwise_weight_init(ft_weight *weight, void *bytes, ft_groupwise_error *error,
                                   const ft_weight_matrix *matrix,
                                   const ft_groupwise_options *options, int threads, ft_error *err)
{
    ft_groupwise_bytes sections = ft_groupwise_stream_bytes(matrix, options);
    size_t size = ft_groupwise_weight_bytes(matrix, options);
    FT_TRY(read_stream(bytes, size, error, matrix, options, threads, err));
    set_weight(weight, bytes, &sections, options);
    return FT_OK;
}
