/*
 * labels.h - what the rows of an output should be: the next tokens, or the classes of a data set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_MIXED_LABELS_H
#define FT_CALIBRATE_MIXED_LABELS_H

#include "runtime/data/dataset.h"
#include "runtime/model/model.h"

/*
 * The label of row `row` of the logits of sample `sample`; -1: the data have none.  The rows of a
 * classifier are 1, of token classifiers and of text generation the positions, padding included.
 */
int32_t ft_label_of_row(const ft_dataset *data, const ft_model *model, size_t sample, size_t row);

#endif
