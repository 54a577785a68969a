/*
 * mix_precision.c - gives activations and matrices of an int8 plan the precision that the target
 * needs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/mix_precision.h"

#include "calibrate/mixed/mixed_plan.h"
#include "calibrate/check_budget.h"
#include "calibrate/prepare.h"
#include "calibrate/times/op_times.h"
#include "calibrate/times/time_plan.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES = 96,        /* on which plans are compared, at most */
    FEWEST_SAMPLES = 16, /* at least */
    TOKENS = 8192,       /* if every token is compared: about so many, within these limits */
};

/* What the choice works with. */
typedef struct mixing {
    ft_unit *unit;
    size_t units;
    ft_unit_times times; /* of the target machine; unit NULL: unknown */
    ft_variants variants;
    ft_reference reference;
    ft_mixed_plan plan;
} mixing;

static void mixing_fini(mixing *m)
{
    ft_mixed_plan_fini(&m->plan);
    ft_reference_fini(&m->reference);
    ft_variants_fini(&m->variants);
    ft_unit_times_fini(&m->times);
    free(m->unit);
}

/* ---- Applying a plan ----------------------------------------------------------------------- */

static ft_point_report *find_point(ft_report *report, const char *name)
{
    for (size_t i = 0; i < report->points; i++)
        if (strcmp(report->point[i].name, name) == 0)
            return &report->point[i];
    return NULL;
}

/* The int8 matrix by which an operation multiplies a unit; NULL: none. */
static ft_quantized_weight *int8_matrix(ft_calibration_job *j, const ft_unit *unit, const ft_op *op)
{
    if (op->kind != FT_OP_LINEAR || !ft_unit_is_read_by(unit, op))
        return NULL;
    ft_quantized_weight *matrix = ft_quantized_weights_find(
        j->quantized, j->n_quantized, j->model->graph.weight[op->weight[0]].name);
    return matrix != NULL && ft_scheme_is_int8(matrix->scheme) ? matrix : NULL;
}

/* The columns of the int8 matrices that read a unit are multiplied by factors; others read floats.
 */
static void multiply_columns(ft_calibration_job *j, const ft_unit *unit, const float *factor)
{
    for (int i = 0; i < j->model->graph.nop; i++) {
        ft_quantized_weight *matrix = int8_matrix(j, unit, &j->model->graph.op[i]);
        if (matrix != NULL)
            matrix->weights.col_factor = factor;
    }
}

static void smooth_unit(ft_calibration_job *j, const ft_unit *unit, const ft_smoothing *smoothing)
{
    j->smoothing[j->n_smoothing++] = *smoothing;
    multiply_columns(j, unit, smoothing->factor);
}

static void make_per_token(ft_calibration_job *j, const ft_unit *unit)
{
    for (int i = 0; i < unit->values; i++) {
        ft_point_report *point = find_point(j->report, j->model->graph.value[unit->value[i]].name);
        if (point != NULL)
            point->per_token = true;
    }
}

/* The value is no calibration point of the int8 model any more. */
static void remove_point(ft_report *report, const char *name)
{
    ft_point_report *point = find_point(report, name);
    if (point == NULL)
        return;
    memmove(point, point + 1,
            (size_t) (report->point + report->points - point - 1) * sizeof *point);
    report->points--;
}

/* The matrices that read a unit get a scheme without static scales. */
static void set_scheme(ft_calibration_job *j, const ft_unit *unit, ft_scheme scheme)
{
    for (int i = 0; i < j->model->graph.nop; i++) {
        ft_quantized_weight *matrix = int8_matrix(j, unit, &j->model->graph.op[i]);
        if (matrix == NULL)
            continue;
        matrix->scheme = scheme;
        matrix->options = ft_recipe_groupwise_options(j->recipe, scheme);
    }
    remove_point(j->report, unit->name);
}

static void make_per_group(ft_calibration_job *j, const ft_unit *unit)
{
    set_scheme(j, unit, FT_SCHEME_W8A8_BLOCK);
    j->is_groupwise = true;
}

static void apply_plan(ft_calibration_job *j, const mixing *m)
{
    for (size_t i = 0; i < m->units; i++)
        if (m->plan.precision[i] == FT_PRECISION_PER_TOKEN) {
            const ft_smoothing *smoothing = ft_variants_smoothing(&m->variants, &m->unit[i]);
            make_per_token(j, &m->unit[i]);
            if (smoothing != NULL)
                smooth_unit(j, &m->unit[i], smoothing);
        } else if (m->plan.precision[i] == FT_PRECISION_PER_GROUP)
            make_per_group(j, &m->unit[i]);
        else if (m->plan.precision[i] == FT_PRECISION_FLOAT)
            set_scheme(j, &m->unit[i], FT_SCHEME_FLOAT);
}

/* What each activation costs at the output, where that was measured. */
static ft_status report_sensitivities(ft_report *report, const mixing *m, ft_error *err)
{
    report->loss_name = ft_loss_name(ft_loss_kind_of(m->variants.real));
    report->sensitivity = ft_calloc(m->units, sizeof *report->sensitivity);
    if (report->sensitivity == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu sensitivities", m->units);
    for (size_t i = 0; i < m->units; i++) {
        ft_sensitivity *out = &report->sensitivity[report->sensitivities];
        if (isnan(m->plan.sensitivity[i]))
            continue;
        *out = (ft_sensitivity){ .scheme = report->scheme,
                                 .loss = m->plan.sensitivity[i],
                                 .bytes = (size_t) m->unit[i].macs };
        snprintf(out->name, sizeof out->name, "%s", m->unit[i].name);
        report->sensitivities++;
    }
    if (report->sensitivities == 0) {
        free(report->sensitivity);
        report->sensitivity = NULL;
    }
    return FT_OK;
}

/* The operations that the plan adds, relative to those of all int8 matrices. */
static double relative_cost(const mixing *m)
{
    double cost = 0.0, macs = 0.0;
    for (size_t i = 0; i < m->units; i++) {
        cost += ft_unit_cost(&m->unit[i], m->variants.real, m->plan.precision[i]) -
                ft_unit_cost(&m->unit[i], m->variants.real, m->unit[i].initial);
        macs += m->unit[i].macs;
    }
    return cost / macs;
}

static void report_plan(ft_mixed_report *report, const mixing *m, double target)
{
    *report = (ft_mixed_report){
        .kind = m->reference.kind,
        .samples = m->reference.samples,
        .units = m->units,
        .per_token = ft_mixed_plan_count(&m->plan, FT_PRECISION_PER_TOKEN),
        .per_group = ft_mixed_plan_count(&m->plan, FT_PRECISION_PER_GROUP),
        .in_float = ft_mixed_plan_count(&m->plan, FT_PRECISION_FLOAT),
        .target = target,
        .initial_loss = m->plan.initial_loss,
        .loss = m->plan.loss,
        .cost = relative_cost(m),
    };
    if (m->times.unit != NULL)
        report->ms = ft_ms_of_ns(ft_unit_times_of_plan(&m->times, m->plan.precision));
}

/* ---- Choosing ------------------------------------------------------------------------------ */

static size_t samples_to_compare(const ft_model *model, const ft_dataset *data)
{
    size_t tokens = data->target_cols > 0 ? data->target_cols : data->cols;
    if (!ft_model_generates(model) || tokens == 0)
        return SAMPLES;
    size_t samples = TOKENS / tokens;
    return samples < FEWEST_SAMPLES ? FEWEST_SAMPLES : ft_min_size(samples, SAMPLES);
}

/* What the float model computes from `samples` rows of `data`, replacing an earlier reference. */
static ft_status make_reference(mixing *m, const ft_calibration_job *j, const ft_dataset *data,
                                size_t samples, ft_error *err)
{
    ft_model *real;
    FT_TRY(ft_variant_open_float(&real, &m->variants, err));
    ft_reference_fini(&m->reference);
    ft_status status =
        ft_reference_init(&m->reference, real, data, samples, j->options->threads, err);
    ft_model_close(real);
    m->reference.kind = ft_accuracy_target_measure(&j->options->target, j->model);
    return status;
}

/*
 * Rows of the data that will not verify the plan: where --samples leaves some, those behind the
 * evaluation samples, which are new to the ranges, too.
 */
static ft_dataset choosing_samples(const ft_calibration_job *j)
{
    const ft_calibration_options *o = j->options;
    bool held_out;
    const ft_dataset *data = &j->data;
    const ft_dataset verifying = ft_calibration_eval_data(j, &held_out);
    if (o->eval != NULL || !held_out)
        return *data;
    size_t unused = (size_t) ft_calibration_last(j) + verifying.rows;
    return o->last > 0 && o->last < data->rows && unused + SAMPLES <= data->rows
               ? ft_dataset_slice(data, unused, data->rows - unused)
               : ft_calibration_observed_data(j);
}

/* Factors that the operations which quantize activations multiply by. */
static ft_status find_factors(mixing *m, ft_calibration_job *j, ft_error *err)
{
    ft_smooth_options options = ft_calibration_smooth_options(j);
    if (j->options->smooth == FT_SMOOTH_NONE || j->options->n_merge > 0)
        return FT_OK;
    options.keeps = true;
    options.is_folded = j->rewritten != NULL;
    FT_TRY(ft_smoothquant_init(&j->kept, &options, err));
    j->smoothing = ft_calloc(j->kept.n_kept + 1, sizeof *j->smoothing);
    if (j->smoothing == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu factors", j->kept.n_kept);
    return ft_variants_smooth(&m->variants, j->kept.kept, j->kept.n_kept, err);
}

/* Whether groups of the recipe's size divide the rows of a matrix. */
static bool has_groups(const ft_recipe *recipe, const ft_quantized_weight *matrix)
{
    size_t group = (size_t) recipe->group;
    return group > 0 && (matrix->weights.cols % group == 0 || recipe->group_pad);
}

/* What the recipe decides: matrices of w8a8-dynamic make the scales of their input per token. */
static void apply_recipe(ft_calibration_job *j, ft_unit *unit)
{
    for (int i = 0; i < j->model->graph.nop; i++) {
        const ft_quantized_weight *matrix = int8_matrix(j, unit, &j->model->graph.op[i]);
        if (matrix == NULL)
            continue;
        unit->has_groups = has_groups(j->recipe, matrix);
        if (matrix->scheme == FT_SCHEME_W8A8_DYNAMIC)
            unit->initial = FT_PRECISION_PER_TOKEN;
    }
}

static ft_status find_units(mixing *m, ft_calibration_job *j, const ft_quant_config *quant,
                            ft_error *err)
{
    FT_TRY(ft_units_find(&m->unit, &m->units, j->model, quant->is_int8, quant->user, err));
    for (size_t i = 0; i < m->units; i++)
        apply_recipe(j, &m->unit[i]);
    if (j->times.path == NULL)
        return FT_OK;
    FT_TRY(ft_unit_times_init(&m->times, &j->times, j->model, m->unit, m->units, quant->is_int8,
                              quant->user, err));
    return j->options->budget.ms <= 0.0
               ? FT_OK
               : ft_time_budget_check(ft_unit_times_least(&m->times, m->unit),
                                      j->options->budget.ms, j->options->input, j->times.path, err);
}

/* What a change adds to the measured time: at least a nanosecond, as it may even save some. */
static double measured_cost(const void *times, size_t unit, ft_precision from, ft_precision to)
{
    const ft_unit_times *t = times;
    return fmax(1.0, (double) (t->unit[unit][to] - t->unit[unit][from]));
}

/* Who asks for w8a8-dynamic and for no target gets small artifacts: no matrix becomes float. */
static ft_precision finest_precision(const ft_calibration_job *j)
{
    bool is_default = j->options->target.kind == FT_TARGET_DEFAULT;
    return is_default && j->recipe->scheme == FT_SCHEME_W8A8_DYNAMIC ? FT_PRECISION_PER_GROUP
                                                                     : FT_PRECISION_FLOAT;
}

static ft_status mix(mixing *m, ft_calibration_job *j, double target, ft_error *err)
{
    const ft_quant_config quant = ft_calibration_quant_config(j, FT_MODE_INT8);
    FT_TRY(find_units(m, j, &quant, err));
    const ft_variant_options options = {
        .path = j->input,
        .quant = &quant,
        .groupwise = ft_recipe_groupwise_options(j->recipe, FT_SCHEME_W8A8_BLOCK),
        .unit = m->unit,
        .units = m->units,
        .device = j->options->device,
        .threads = j->options->threads,
    };
    FT_TRY(ft_variants_init(&m->variants, &options, err));
    const ft_dataset choosing = choosing_samples(j);
    FT_TRY(make_reference(m, j, &choosing, samples_to_compare(j->model, &choosing), err));
    const ft_mixed_problem problem = { .variants = &m->variants,
                                       .reference = &m->reference,
                                       .target = FT_TARGET_MARGIN * target,
                                       .finest = finest_precision(j),
                                       .cost = m->times.unit != NULL ? measured_cost : NULL,
                                       .cost_user = &m->times,
                                       .progress = j->callbacks.progress,
                                       .user = j->callbacks.user };
    FT_TRY(ft_mixed_plan_init(&m->plan, &problem, err));
    const double ms = j->options->budget.ms;
    if (ms <= 0.0 && m->plan.meets_target)
        return j->options->report != NULL ? ft_mixed_plan_measure_units(&m->plan, &problem, err)
                                          : FT_OK;
    FT_TRY(find_factors(m, j, err));
    if (ms > 0.0)
        return ft_time_plan_choose(&m->plan, &problem, &m->times, ms, err);
    return ft_mixed_plan_lower_loss(&m->plan, &problem, err);
}

/* Measures the chosen plan on evaluation samples. */
static ft_status verify(mixing *m, ft_calibration_job *j, ft_error *err)
{
    ft_mixed_report *report = &j->report->mixed;
    ft_model *model;
    const ft_dataset data = ft_calibration_eval_data(j, &j->report->held_out);
    FT_TRY(make_reference(m, j, &data, FT_TARGET_SAMPLES, err));
    FT_TRY(ft_variant_open(&model, &m->variants, m->plan.precision, err));
    ft_status status = ft_loss_measure(&report->verified_loss, &m->reference, model, err);
    ft_model_close(model);
    report->verified = m->reference.samples;
    return status;
}

static ft_status check_verified(const ft_calibration_job *j, ft_error *err)
{
    const ft_mixed_report *report = &j->report->mixed;
    char found[FT_TARGET_TEXT], expected[FT_TARGET_TEXT];
    if (!ft_accuracy_target_is_set(&j->options->target) || j->options->best_effort ||
        report->verified_loss <= report->target)
        return FT_OK;
    return ft_fail(
        err, FT_EUNSUPPORTED,
        "%s: the int8 model reaches %s on %zu samples that were not used, but --target "
        "is %s; --best-effort accepts that",
        j->options->input, ft_accuracy_target_describe(found, report->kind, report->verified_loss),
        report->verified, ft_accuracy_target_describe(expected, report->kind, report->target));
}

/* The loss that the plan may have; a budget of time sets none. */
static ft_status find_target(double *loss, const ft_calibration_job *j, ft_error *err)
{
    *loss = 0.0;
    return j->options->budget.ms > 0.0 ? FT_OK
                                       : ft_accuracy_target_loss(loss, &j->options->target,
                                                                 j->model, j->recipe->scheme, err);
}

static bool mixes(const ft_calibration_job *j)
{
    const ft_calibration_options *o = j->options;
    return (o->target.kind != FT_TARGET_NONE || o->budget.ms > 0.0) &&
           !ft_calibration_plans_weights(j) && ft_calibration_can_mix(j);
}

ft_status ft_calibration_check_times(ft_calibration_job *j, ft_error *err)
{
    if (j->times.path == NULL || !mixes(j))
        return FT_OK;
    mixing m = { .unit = NULL };
    const ft_quant_config quant = ft_calibration_quant_config(j, FT_MODE_INT8);
    ft_status status = find_units(&m, j, &quant, err);
    mixing_fini(&m);
    return status;
}

ft_status ft_calibration_mix_precision(ft_calibration_job *j, ft_error *err)
{
    double target;
    if (!mixes(j))
        return FT_OK;
    FT_TRY(find_target(&target, j, err));
    ft_calibration_begin_stage(j, "mixing", "plans");
    mixing m = { .unit = NULL };
    ft_status status = mix(&m, j, target, err);
    if (status == FT_OK) {
        apply_plan(j, &m);
        report_plan(&j->report->mixed, &m, target);
        j->report->mixed.budget_ms = j->options->budget.ms;
        status = report_sensitivities(j->report, &m, err);
    }
    if (status == FT_OK)
        status = verify(&m, j, err);
    mixing_fini(&m);
    FT_TRY(status);
    return check_verified(j, err);
}
