/*
 * head_rows.h - the outputs of a model's head for each text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_EVAL_HEAD_ROWS_H
#define FT_RUNTIME_TOOLS_EVAL_HEAD_ROWS_H

#include "runtime/tools/eval/eval.h"

/* Called for each row of the dataset, in order, with its part of each output: [tokens, ...]. */
typedef ft_status (*ft_head_row_fn)(void *user, size_t row, const float *const *output,
                                    ft_error *err);

/* Run the model on all rows; `outputs` are one or two names of outputs, ended by NULL. */
FT_MUST_USE ft_status ft_eval_head_rows(const ft_eval *eval, const ft_model *model,
                                        const ft_dataset *data, const char *const *outputs,
                                        ft_head_row_fn add, void *user, ft_error *err);

#endif
