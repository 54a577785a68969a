/*
 * class_scores_text.h - print the predictions and metrics of a classifier as text and as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_CLASS_SCORES_TEXT_H
#define FT_RUNTIME_CLI_CLASS_SCORES_TEXT_H

#include "runtime/scores/class_metrics.h"
#include "runtime/scores/class_scores.h"
#include "runtime/model/model.h"
#include "runtime/cli/json_stream.h"

/*
 * A line with the most likely class and its probability, all predicted labels of a multi-label
 * model with theirs, or all values of a regression; followed by the title. "none": no label is
 * predicted. A model with a single label always prints it.
 */
void ft_print_predictions(const ft_model *model, const float *logits, const char *title);

/*
 * Members of a row's object: "index", "label" and "probability" of the most likely class or label,
 * "probabilities" of all labels of a multi-label model, and "logits", the values of a regression.
 */
void ft_predictions_to_json(ft_json_stream *json, const ft_model *model, const float *logits);

/* "NAME VALUE" lines, or members of an object; `suffix` is appended to the names. */
void ft_print_metrics(const ft_metric *metric, size_t count, const char *suffix);
void ft_metrics_to_json(ft_json_stream *json, const ft_metric *metric, size_t count,
                        const char *suffix);

#endif
