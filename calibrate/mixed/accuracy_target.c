/*
 * accuracy_target.c - how close to the float model the quantized model should be.
 *
 * The defaults are where trained models do their task as in float (docs/accuracy.md, "Targets").
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/mixed/accuracy_target.h"

#include "runtime/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double default_cosine = 0.998, default_kl = 0.01, default_kl_dynamic = 0.002;

static double default_loss(ft_loss_kind kind, ft_scheme scheme)
{
    if (kind == FT_LOSS_COSINE)
        return 1.0 - default_cosine;
    return scheme == FT_SCHEME_W8A8_DYNAMIC ? default_kl_dynamic : default_kl;
}

/* The number behind a prefix, between two bounds. */
static bool parse_value(double *out, const char *text, const char *prefix, double low, double high)
{
    char *end;
    if (strncmp(text, prefix, strlen(prefix)) != 0)
        return false;
    *out = strtod(text + strlen(prefix), &end);
    return end != text + strlen(prefix) && *end == '\0' && *out > low && *out < high;
}

bool ft_accuracy_target_parse(ft_accuracy_target *out, const char *text)
{
    out->kind = FT_TARGET_NONE;
    if (strcmp(text, "none") == 0)
        return true;
    out->kind = FT_TARGET_COSINE;
    if (parse_value(&out->value, text, "cosine=", 0.0, 1.0))
        return true;
    out->kind = FT_TARGET_KL;
    return parse_value(&out->value, text, "kl=", 0.0, 100.0);
}

bool ft_accuracy_target_is_set(const ft_accuracy_target *target)
{
    return target->kind == FT_TARGET_COSINE || target->kind == FT_TARGET_KL;
}

ft_status ft_accuracy_target_loss(double *out, const ft_accuracy_target *target,
                                  const ft_model *model, ft_scheme scheme, ft_error *err)
{
    ft_loss_kind kind = ft_loss_kind_of(model);
    bool fits = target->kind == FT_TARGET_DEFAULT ||
                (target->kind == FT_TARGET_COSINE) == (kind == FT_LOSS_COSINE);
    *out = target->kind == FT_TARGET_DEFAULT ? default_loss(kind, scheme)
           : kind == FT_LOSS_COSINE          ? 1.0 - target->value
                                             : target->value;
    if (fits)
        return FT_OK;
    return ft_fail(err, FT_EARG,
                   "%s: --target %s=...: the outputs of this model are compared by %s", model->path,
                   kind == FT_LOSS_COSINE ? "kl" : "cosine", ft_loss_name(kind));
}

const char *ft_accuracy_target_describe(char text[FT_TARGET_TEXT], ft_loss_kind kind, double loss)
{
    if (kind == FT_LOSS_COSINE)
        snprintf(text, FT_TARGET_TEXT, "cosine %.4f", 1.0 - loss);
    else
        snprintf(text, FT_TARGET_TEXT, "kl %.2g", loss);
    return text;
}

const char *ft_accuracy_target_describe_exactly(char text[FT_TARGET_TEXT], ft_loss_kind kind,
                                                double loss)
{
    if (kind == FT_LOSS_COSINE)
        snprintf(text, FT_TARGET_TEXT, "cosine %.6f", 1.0 - loss);
    else
        snprintf(text, FT_TARGET_TEXT, "kl %.4g", loss);
    return text;
}
