/*
 * accuracy_target.h - how close to the float model the quantized model should be.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_MIXED_ACCURACY_TARGET_H
#define FT_CALIBRATE_MIXED_ACCURACY_TARGET_H

#include "calibrate/mixed/loss.h"
#include "calibrate/weights/recipe.h"

/* Other samples lose more: plans are chosen for this part of the loss that a target allows. */
#define FT_TARGET_MARGIN 0.8

/* The chosen plan is verified on so many samples at most. */
enum { FT_TARGET_SAMPLES = 256 };

typedef enum ft_accuracy_target_kind {
    FT_TARGET_DEFAULT,  /* the default of the scheme and the model's task; a miss is a warning */
    FT_TARGET_NONE,     /* no target: all int8 activations have the scheme's scales */
    FT_TARGET_COSINE,   /* mean cosine of embeddings or hidden states, at least `value` */
    FT_TARGET_KL,       /* mean KL divergence of logits in nats, at most `value` */
    FT_TARGET_PPL,      /* perplexity of text generation, at most `value` per cent above float's */
    FT_TARGET_ACCURACY, /* accuracy of classes, at most `value` points below float's */
} ft_accuracy_target_kind;

typedef struct ft_accuracy_target {
    ft_accuracy_target_kind kind;
    double value;
} ft_accuracy_target;

/*
 * "none", "cosine=0.998", "kl=0.01", "ppl=0.5%" or "accuracy=0.3pt"; false for other texts and for
 * values out of range.
 */
bool ft_accuracy_target_parse(ft_accuracy_target *out, const char *text);

/* Whether it is a number that the user gave. */
bool ft_accuracy_target_is_set(const ft_accuracy_target *target);

/* How a target is measured; the default and none: as ft_loss_kind_of(). */
ft_loss_kind ft_accuracy_target_measure(const ft_accuracy_target *target, const ft_model *model);

/* The name of a target that was set: "kl". */
const char *ft_accuracy_target_name(const ft_accuracy_target *target);

/*
 * The loss (calibrate/mixed/loss.h) that a target allows; `scheme` decides the default.  FT_EARG:
 * the outputs of the model cannot be judged by it.
 */
FT_MUST_USE ft_status ft_accuracy_target_loss(double *out, const ft_accuracy_target *target,
                                              const ft_model *model, ft_scheme scheme,
                                              ft_error *err);

/* "cosine 0.9985", "kl 0.0021", "perplexity +0.34 %" or "accuracy -0.21 pt" from a loss; with more
 * digits, "kl 0.002134". */
enum { FT_TARGET_TEXT = 32 };
const char *ft_accuracy_target_describe(char text[FT_TARGET_TEXT], ft_loss_kind kind, double loss);
const char *ft_accuracy_target_describe_exactly(char text[FT_TARGET_TEXT], ft_loss_kind kind,
                                                double loss);

#endif
