/*
 * loss_kind.h - how the outputs of a quantized model are compared with those of the float model.
 *
 * Two measures, by what the model is for, that every sample agrees on well enough to rank parts of
 * it:
 *
 *   FT_LOSS_KL      logits of classes or tokens: the Kullback-Leibler divergence of the quantized
 *                   probabilities from the float ones in nats, mean over rows; multi-label: the sum
 *                   over labels
 *   FT_LOSS_COSINE  embeddings and hidden states: 1 - cosine, mean over rows; regression: the
 *                   square error divided by the square of the outputs
 *
 * Two that users know, by which whole models can be judged:
 *
 *   FT_LOSS_PERPLEXITY  text generation: the logarithm of the perplexity of the samples, divided by
 *                       that of the float model
 *   FT_LOSS_ACCURACY    classes, of texts, tokens or positions: the share of rows with the right
 *                       label that is lost; without labels, that with another class than float's
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_MIXED_LOSS_KIND_H
#define FT_CALIBRATE_MIXED_LOSS_KIND_H

#include "runtime/model/model.h"

typedef enum ft_loss_kind {
    FT_LOSS_KL,
    FT_LOSS_COSINE,
    FT_LOSS_PERPLEXITY,
    FT_LOSS_ACCURACY,
} ft_loss_kind;

/* "kl", "cosine", "ppl", "accuracy". */
const char *ft_loss_name(ft_loss_kind kind);

/* The measure that ranks parts of a model. */
ft_loss_kind ft_loss_kind_of(const ft_model *model);

/* Whether a model can be judged by a measure. */
bool ft_loss_kind_applies(ft_loss_kind kind, const ft_model *model);

/* Whether the outputs that are compared are logits of a softmax. */
bool ft_has_softmax(const ft_model *model);

/* Names of the outputs that users judge the model by; the second may be NULL. */
enum { FT_COMPARED_OUTPUTS = 2 };
void ft_compared_outputs(const char *name[FT_COMPARED_OUTPUTS], const ft_model *model);

#endif
