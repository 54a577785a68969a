/*
 * class_scores_text.h - what a classifier tells, and how well it does, for people and for programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_CLASS_SCORES_TEXT_H
#define FT_RUNTIME_CLI_CLASS_SCORES_TEXT_H

#include "runtime/scores/class_scores.h"
#include "runtime/model/model.h"
#include "runtime/cli/json_stream.h"

/*
 * A line: the likeliest class and its probability, all labels that hold and theirs, or all
 * quantities; and behind them the title.  "none": none of several labels holds.  One label is told
 * whether it holds or not.
 */
void ft_print_classes(const ft_model *model, const float *logits, const char *title);

/*
 * Members of a row's object: "index", "label" and "probability" of the likeliest class or label,
 * "probabilities" of all where several may hold, and "logits", which are all of a regression.
 */
void ft_classes_to_json(ft_json_stream *json, const ft_model *model, const float *logits);

/* "NAME VALUE" lines, or members of an object; `suffix` goes behind the names. */
void ft_print_metrics(const ft_metric *metric, size_t count, const char *suffix);
void ft_metrics_to_json(ft_json_stream *json, const ft_metric *metric, size_t count,
                        const char *suffix);

#endif
