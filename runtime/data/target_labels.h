/*
 * target_labels.h - shift the labels of an encoder-decoder right to make its decoder inputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_TARGET_LABELS_H
#define FT_RUNTIME_DATA_TARGET_LABELS_H

#include "runtime/data/dataset.h"
#include "runtime/graph/model_config.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * Fill in target_ids and target_mask of a dataset that has target_labels and target_cols: the start
 * token, then all labels of the row but the last. A label of -1 is padding.
 */
FT_MUST_USE ft_status ft_dataset_shift_labels(ft_dataset *out, const ft_config *config,
                                              ft_error *err);

#pragma GCC visibility pop

#endif
