/*
 * labels.c - looks up the labels of the rows of an output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/mixed/labels.h"

/* The token behind a position of a text. */
static int32_t next_token(const ft_dataset *data, size_t sample, size_t position)
{
    size_t next = sample * data->cols + position + 1;
    bool is_last = position + 1 >= data->cols;
    return is_last || (data->mask != NULL && data->mask[next] == 0) ? -1 : data->ids[next];
}

static int32_t next_target(const ft_dataset *data, size_t sample, size_t position)
{
    return data->target_labels == NULL || position >= data->target_cols
               ? -1
               : data->target_labels[sample * data->target_cols + position];
}

static int32_t token_label(const ft_dataset *data, size_t sample, size_t position)
{
    return data->token_labels == NULL || position >= data->cols
               ? -1
               : data->token_labels[sample * data->cols + position];
}

int32_t ft_label_of_row(const ft_dataset *data, const ft_model *model, size_t sample, size_t row)
{
    if (model->graph.encoder_ops > 0)
        return next_target(data, sample, row);
    if (ft_model_generates(model))
        return next_token(data, sample, row);
    if (model->config.head == FT_HEAD_TOKENS)
        return token_label(data, sample, row);
    return data->labels != NULL && ft_head_is_classifier(model->config.head) ? data->labels[sample]
                                                                             : -1;
}
