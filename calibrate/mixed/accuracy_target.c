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

#include <math.h>
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

/* How a target is written: NAME=VALUE UNIT. */
typedef struct target_form {
    ft_accuracy_target_kind kind;
    ft_loss_kind measure;
    const char *name, *unit;
    double most; /* values are above 0 and below this */
} target_form;

static const target_form forms[] = {
    { FT_TARGET_COSINE, FT_LOSS_COSINE, "cosine", "", 1.0 },
    { FT_TARGET_KL, FT_LOSS_KL, "kl", "", 100.0 },
    { FT_TARGET_PPL, FT_LOSS_PERPLEXITY, "ppl", "%", 1000.0 },
    { FT_TARGET_ACCURACY, FT_LOSS_ACCURACY, "accuracy", "pt", 100.0 },
};

/* NULL: the target is not set. */
static const target_form *form_of(const ft_accuracy_target *target)
{
    for (size_t i = 0; i < FT_COUNT(forms); i++)
        if (forms[i].kind == target->kind)
            return &forms[i];
    return NULL;
}

static bool parse_form(double *out, const char *text, const target_form *form)
{
    char *end;
    size_t name = strlen(form->name);
    if (strncmp(text, form->name, name) != 0 || text[name] != '=')
        return false;
    *out = strtod(text + name + 1, &end);
    return end != text + name + 1 && strcmp(end, form->unit) == 0 && *out > 0.0 &&
           *out < form->most;
}

bool ft_accuracy_target_parse(ft_accuracy_target *out, const char *text)
{
    out->kind = FT_TARGET_NONE;
    if (strcmp(text, "none") == 0)
        return true;
    for (size_t i = 0; i < FT_COUNT(forms); i++) {
        out->kind = forms[i].kind;
        if (parse_form(&out->value, text, &forms[i]))
            return true;
    }
    return false;
}

bool ft_accuracy_target_is_set(const ft_accuracy_target *target)
{
    return form_of(target) != NULL;
}

ft_loss_kind ft_accuracy_target_measure(const ft_accuracy_target *target, const ft_model *model)
{
    const target_form *form = form_of(target);
    return form != NULL ? form->measure : ft_loss_kind_of(model);
}

const char *ft_accuracy_target_name(const ft_accuracy_target *target)
{
    const target_form *form = form_of(target);
    return form != NULL ? form->name : "none";
}

static double loss_of_value(const ft_accuracy_target *target)
{
    switch (target->kind) {
    case FT_TARGET_COSINE:
        return 1.0 - target->value;
    case FT_TARGET_PPL:
        return log1p(target->value / 100.0);
    case FT_TARGET_ACCURACY:
        return target->value / 100.0;
    default:
        return target->value;
    }
}

ft_status ft_accuracy_target_loss(double *out, const ft_accuracy_target *target,
                                  const ft_model *model, ft_scheme scheme, ft_error *err)
{
    ft_loss_kind kind = ft_loss_kind_of(model);
    const target_form *form = form_of(target);
    *out = form != NULL ? loss_of_value(target) : default_loss(kind, scheme);
    if (form == NULL || ft_loss_kind_applies(form->measure, model))
        return FT_OK;
    return ft_fail(err, FT_EARG,
                   "%s: --target %s=...: the outputs of this model are compared by %s%s",
                   model->path, form->name, ft_loss_name(kind),
                   ft_loss_kind_applies(FT_LOSS_PERPLEXITY, model) ? " or ppl"
                   : ft_loss_kind_applies(FT_LOSS_ACCURACY, model) ? " or accuracy"
                                                                   : "");
}

static const char *describe(char text[FT_TARGET_TEXT], ft_loss_kind kind, double loss, int digits)
{
    switch (kind) {
    case FT_LOSS_KL:
        snprintf(text, FT_TARGET_TEXT, "kl %.*g", digits, loss);
        break;
    case FT_LOSS_COSINE:
        snprintf(text, FT_TARGET_TEXT, "cosine %.*f", digits + 2, 1.0 - loss);
        break;
    case FT_LOSS_PERPLEXITY:
        snprintf(text, FT_TARGET_TEXT, "perplexity %+.*f %%", digits, 100.0 * expm1(loss));
        break;
    case FT_LOSS_ACCURACY:
        snprintf(text, FT_TARGET_TEXT, "accuracy %+.*f pt", digits, 0.0 - 100.0 * loss);
        break;
    }
    return text;
}

const char *ft_accuracy_target_describe(char text[FT_TARGET_TEXT], ft_loss_kind kind, double loss)
{
    return describe(text, kind, loss, 2);
}

const char *ft_accuracy_target_describe_exactly(char text[FT_TARGET_TEXT], ft_loss_kind kind,
                                                double loss)
{
    return describe(text, kind, loss, 4);
}
