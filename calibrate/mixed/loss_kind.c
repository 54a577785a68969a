/*
 * loss_kind.c - which measure suits which model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/mixed/loss_kind.h"

#include "runtime/base/affix.h"

const char *ft_loss_name(ft_loss_kind kind)
{
    static const char *const names[] = { [FT_LOSS_KL] = "kl",
                                         [FT_LOSS_COSINE] = "cosine",
                                         [FT_LOSS_PERPLEXITY] = "ppl",
                                         [FT_LOSS_ACCURACY] = "accuracy" };
    return names[kind];
}

void ft_compared_outputs(const char *name[FT_COMPARED_OUTPUTS], const ft_model *model)
{
    const ft_config *config = &model->config;
    bool embeds = config->embedding != FT_EMBEDDING_NONE;
    name[0] = ft_model_generates(model) || config->head == FT_HEAD_LM || config->labels > 0
                  ? "logits"
              : embeds ? "embedding"
                       : "last_hidden_state";
    name[1] = NULL;
    if (config->head == FT_HEAD_SPAN) {
        name[0] = "start_logits";
        name[1] = "end_logits";
    }
}

ft_loss_kind ft_loss_kind_of(const ft_model *model)
{
    const char *name[FT_COMPARED_OUTPUTS];
    ft_compared_outputs(name, model);
    bool regression = ft_head_is_classifier(model->config.head) &&
                      model->config.problem_type == FT_PROBLEM_REGRESSION;
    return ft_ends_with(name[0], "logits") && !regression ? FT_LOSS_KL : FT_LOSS_COSINE;
}

bool ft_has_softmax(const ft_model *model)
{
    bool classifies = ft_head_is_classifier(model->config.head);
    return ft_loss_kind_of(model) == FT_LOSS_KL &&
           !(classifies && model->config.problem_type == FT_PROBLEM_MULTI);
}

bool ft_loss_kind_applies(ft_loss_kind kind, const ft_model *model)
{
    bool generates = ft_model_generates(model);
    switch (kind) {
    case FT_LOSS_PERPLEXITY:
        return generates;
    case FT_LOSS_ACCURACY:
        return !generates && model->config.head != FT_HEAD_LM && ft_has_softmax(model);
    case FT_LOSS_KL:
    case FT_LOSS_COSINE:
        break;
    }
    return kind == ft_loss_kind_of(model);
}
