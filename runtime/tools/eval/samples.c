/*
 * samples.c - the samples of an evaluation, whose form the command line names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/eval/eval.h"

ft_status ft_eval_read_samples(ft_dataset *out, const ft_eval *eval, const ft_model *model,
                               ft_error *err)
{
    return eval->texts.path != NULL ? ft_dataset_read_texts(out, &eval->texts, model, err)
                                    : ft_dataset_read(out, eval->data, model, err);
}
