/*
 * samples.c - the samples of an evaluation, whose form the command line names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/eval/eval.h"

#include "runtime/data/image_files/image_dataset.h"
#include "runtime/error.h"

static ft_status read_images(ft_eval_samples *out, const ft_eval *eval, const ft_model *model,
                             ft_error *err)
{
    FT_TRY(ft_image_list_read(&out->images, eval->images.path, eval->images.count, err));
    return ft_dataset_from_labeled_images(&out->data, &out->images, model, err);
}

ft_status ft_eval_samples_read(ft_eval_samples *out, const ft_eval *eval, const ft_model *model,
                               ft_error *err)
{
    *out = (ft_eval_samples){ .data = { .rows = 0 } };
    if (eval->images.count > 0)
        return read_images(out, eval, model, err);
    return eval->texts.path != NULL ? ft_dataset_read_texts(&out->data, &eval->texts, model, err)
                                    : ft_dataset_read(&out->data, eval->data, model, err);
}

void ft_eval_samples_fini(ft_eval_samples *samples)
{
    ft_dataset_fini(&samples->data);
    ft_image_list_fini(&samples->images);
}
