/*
 * target_labels.c - labels are next tokens: decoder inputs are the labels one position later.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/target_labels.h"

#include "runtime/error.h"
#include "runtime/mem.h"

ft_status ft_dataset_shift_labels(ft_dataset *out, const ft_config *config, ft_error *err)
{
    size_t count = out->rows * out->target_cols;
    out->target_ids = ft_calloc(count, sizeof *out->target_ids);
    out->target_mask = ft_calloc(count, sizeof *out->target_mask);
    if (out->target_ids == NULL || out->target_mask == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu target tokens", count);
    for (size_t i = 0; i < count; i++) {
        bool starts = i % out->target_cols == 0;
        int32_t previous = starts ? config->decoder_start_id : out->target_labels[i - 1];
        out->target_mask[i] = previous >= 0;
        out->target_ids[i] = previous >= 0 ? previous : config->pad_id;
    }
    return FT_OK;
}
