/*
 * example_labels.h - the labels of classifiers in examples of JSON Lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_EXAMPLE_LABELS_H
#define FT_RUNTIME_DATA_EXAMPLE_LABELS_H

#include "runtime/data/dataset.h"
#include "runtime/data/texts/examples.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * Fill in the labels of `out`, whose rows are the examples, for a model with a classifier:
 *
 * - one label per text: "label" or "labels", a name of id2label or an index;
 * - multi-label: "labels", a list of names or indices, or of as many 0 and 1 as there are labels;
 * - regression: "score", "label" or "labels", a number or a list of one number per label.
 *
 * Examples without labels leave `out` without them; FT_EFORMAT, with file and line, if some have
 * none or one is not of the model.
 */
FT_MUST_USE ft_status ft_dataset_label_examples(ft_dataset *out, const ft_examples *examples,
                                                const ft_model *model, ft_error *err);

#pragma GCC visibility pop

#endif
