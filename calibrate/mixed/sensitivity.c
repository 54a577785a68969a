/*
 * sensitivity.c - measures units one at a time, in rounds of samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/mixed/sensitivity.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/scores/metrics/spearman.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND = 16 /* samples */ };

/*
 * The reliability of an order: its correlation with that of as many other samples.  It is estimated
 * from few units, hence high.
 */
static const double reliable = 0.98;

typedef struct pass {
    const ft_sensitivity_options *options;
    ft_model *real;          /* in float */
    ft_precision *precision; /* [units] of the model that is measured */
    double *half[2];         /* [units]: sums of losses of every other sample */
    size_t units, rounds;    /* rounds at most */
    size_t rows;             /* of outputs, measured so far */
    uint64_t models;         /* measured so far */
} pass;

static void pass_fini(pass *p)
{
    for (int i = 0; i < 2; i++)
        free(p->half[i]);
    free(p->precision);
    ft_model_close(p->real);
}

static ft_status pass_init(pass *p, const ft_sensitivity_options *o, ft_error *err)
{
    size_t units = o->variants->options.units;
    *p = (pass){ .options = o, .units = units };
    p->rounds = o->reference->samples > ROUND ? o->reference->samples / ROUND : 1;
    p->precision = ft_calloc(units, sizeof *p->precision);
    for (int i = 0; i < 2; i++)
        p->half[i] = ft_calloc(units, sizeof *p->half[i]);
    if (p->precision == NULL || p->half[0] == NULL || p->half[1] == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the losses of %zu units", units);
    for (size_t i = 0; i < units; i++)
        p->precision[i] = ft_unit_finest(&o->variants->options.unit[i]);
    return ft_variant_open_float(&p->real, o->variants, err);
}

/* ---- One round ---------------------------------------------------------------------------- */

static void report_progress(pass *p)
{
    const ft_sensitivity_options *o = p->options;
    p->models++;
    if (o->progress != NULL)
        o->progress(o->user, p->models, p->units * p->rounds);
}

/* The losses of the samples of the base, [samples], when one unit alone is quantized. */
static ft_status measure_unit(ft_loss_sum *loss, pass *p, ft_loss_base *base, size_t unit, ft_error *err)
{
    const ft_sensitivity_options *o = p->options;
    const ft_unit *alone = &o->variants->options.unit[unit];
    ft_model *model;
    p->precision[unit] = o->precision[unit];
    ft_status status = ft_variant_open(&model, o->variants, p->precision, err);
    p->precision[unit] = ft_unit_finest(alone);
    FT_TRY(status);
    status = ft_loss_measure_change(loss, base, o->reference, model, alone->name, err);
    ft_model_close(model);
    report_progress(p);
    return status;
}

/* Each half gets every other sample of the round; returns the rows. */
static size_t add_losses(pass *p, size_t unit, const ft_loss_sum *loss, size_t samples)
{
    size_t rows = 0;
    for (size_t i = 0; i < samples; i++) {
        p->half[i % 2][unit] += fmin(loss[i].sum, FT_WORST_LOSS * (double) loss[i].rows);
        rows += loss[i].rows;
    }
    return rows;
}

static ft_status measure_units(pass *p, ft_loss_base *base, ft_error *err)
{
    ft_loss_sum *loss = ft_calloc(base->samples.count, sizeof *loss);
    if (loss == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the losses of %zu samples",
                       base->samples.count);
    ft_status status = FT_OK;
    size_t rows = 0;
    for (size_t i = 0; i < p->units && status == FT_OK; i++) {
        if (p->options->precision[i] == p->precision[i])
            continue;
        status = measure_unit(loss, p, base, i, err);
        if (status == FT_OK)
            rows = add_losses(p, i, loss, base->samples.count);
    }
    p->rows += rows;
    free(loss);
    return status;
}

/* Rounds interleave, so that each spreads over all samples of the reference. */
static ft_status measure_round(pass *p, size_t round, ft_error *err)
{
    ft_loss_base base;
    const ft_loss_samples samples = { .first = round,
                                      .step = p->rounds,
                                      .count = ft_min_size(p->options->reference->samples, ROUND) };
    ft_status status = ft_loss_base_init(&base, p->real, &samples, err);
    if (status == FT_OK)
        status = measure_units(p, &base, err);
    ft_loss_base_fini(&base);
    return status;
}

/* ---- All rounds --------------------------------------------------------------------------- */

/* From the correlation of the halves by the formula of Spearman and Brown. */
static bool is_reliable(const pass *p)
{
    double correlation;
    if (!ft_spearman(p->half[0], p->half[1], p->units, &correlation))
        return false;
    return 2.0 * correlation / (1.0 + correlation) >= reliable;
}

static bool has_quantized_units(const ft_sensitivity_options *o)
{
    const ft_variant_options *of = &o->variants->options;
    for (size_t i = 0; i < of->units; i++)
        if (o->precision[i] != ft_unit_finest(&of->unit[i]))
            return true;
    return false;
}

ft_status ft_sensitivities_measure(double *loss, const ft_sensitivity_options *o, ft_error *err)
{
    pass p;
    if (!has_quantized_units(o)) {
        memset(loss, 0, o->variants->options.units * sizeof *loss);
        return FT_OK;
    }
    ft_status status = pass_init(&p, o, err);
    for (size_t i = 0; i < p.rounds && status == FT_OK && !(i > 0 && is_reliable(&p)); i++)
        status = measure_round(&p, i, err);
    for (size_t i = 0; i < p.units && status == FT_OK; i++)
        loss[i] = p.rows > 0 ? (p.half[0][i] + p.half[1][i]) / (double) p.rows : 0.0;
    pass_fini(&p);
    return status;
}
