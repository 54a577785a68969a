/*
 * prefix.h - the quantized prefix: a model whose first matrices are quantized and the others float.
 *
 * GPTAQ rounds the matrices in the order in which a forward pass uses them. The inputs of the next
 * ones are those that the quantized artifact will see, so their rounding can make up for errors of
 * the earlier ones.
 *
 * Quantized matrices stay in memory, 0.56 bytes a weight with 4 bits in groups of 32, until they
 * are written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_PREFIX_H
#define FT_CALIBRATE_WEIGHTS_PREFIX_H

#include "calibrate/weights/fold_ranges.h"

typedef struct ft_prefix {
    const ft_model *model; /* the original; borrowed */
    ft_weight *weight;     /* [nweight], in the order of the model's weights */
    void **quantized;      /* [nweight]: the bytes of quantized matrices, or NULL */
    size_t *bytes;         /* [nweight] of them */
    size_t nweight;
    const char *folder; /* of temporary files for these bytes; NULL: in memory */
} ft_prefix;

/*
 * Nothing is quantized yet; vectors are those of `scaling`. fini also accepts a zeroed or failed
 * one. FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_prefix_init(ft_prefix *prefix, const ft_model *model,
                                     const ft_folded_scales *scaling, ft_error *err);
void ft_prefix_fini(ft_prefix *prefix);

/* Memory for the bytes of a quantized matrix, until fini. FT_ENOMEM, FT_EIO. */
FT_MUST_USE ft_status ft_prefix_alloc(ft_prefix *prefix, int index, size_t bytes, ft_error *err);

/*
 * Quantizes weight number `index` as its options say, which sets its error, and puts it in place of
 * the float weight. Errors: those of ft_groupwise_stream.
 */
FT_MUST_USE ft_status ft_prefix_quantize(ft_prefix *prefix, int index,
                                         ft_quantized_weight *quantized, int threads,
                                         ft_error *err);

/* Opens the model as it is now, to be closed before the next matrix is quantized. */
FT_MUST_USE ft_status ft_prefix_open(ft_model **out, const ft_prefix *prefix, const char *device,
                                     ft_error *err);

#endif
