/*
 * plan_weights.c - chooses the precision of each group-wise matrix, for a budget or a target.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/plan_weights.h"

#include "calibrate/budget/weight_plan.h"
#include "calibrate/check_budget.h"
#include "calibrate/times/op_times.h"
#include "calibrate/times/time_plan.h"
#include "calibrate/times/weight_times.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>

/*
 * Samples on which plans are compared: texts with a loss for every token, or outputs that have one
 * for all of it.
 */
enum { TEXTS = 16, OUTPUTS = 64 };

/* ---- Choosing ------------------------------------------------------------------------------ */

/* What the choice works with. */
typedef struct planning {
    ft_weight_units units;
    ft_weight_times times; /* of the target machine; unit NULL: unknown */
    ft_weight_variants variants;
    ft_dataset data; /* a view of the observed samples */
    ft_reference reference;
    ft_weight_plan plan;
} planning;

static void planning_fini(planning *p)
{
    ft_weight_plan_fini(&p->plan);
    ft_reference_fini(&p->reference);
    ft_weight_variants_fini(&p->variants);
    ft_weight_times_fini(&p->times);
    ft_weight_units_fini(&p->units);
}

/* Rules stay above the plan, and so does a head that no rule quantizes. */
static bool is_free(const void *recipe, const ft_quantized_weight *matrix)
{
    return matrix->scheme == FT_SCHEME_W4A16 &&
           ft_recipe_rule(recipe, matrix->weights.name) == NULL;
}

static ft_status open_variants(planning *p, const ft_calibration_job *j, ft_error *err)
{
    const ft_activation_stats_options stats = ft_calibration_stats_options(j);
    const ft_weight_variants_options options = {
        .path = j->input,
        .quantized_head = ft_recipe_scheme(j->recipe, FT_HEAD_WEIGHT) != FT_SCHEME_FLOAT,
        .recipe = j->recipe,
        .quantized = j->quantized,
        .count = j->n_quantized,
        .stats = &stats,
        .device = j->options->device,
        .threads = j->options->threads,
    };
    return ft_weight_variants_init(&p->variants, &options, err);
}

/* What the float model computes from the samples on which plans are compared. */
static ft_status observe_float(planning *p, const ft_calibration_job *j, ft_error *err)
{
    const size_t samples = ft_model_generates(j->model) ? TEXTS : OUTPUTS;
    p->data = ft_calibration_observed_data(j);
    ft_calibration_begin_stage(j, "weighing", "plans");
    return ft_reference_init(&p->reference, p->variants.real, &p->data, samples,
                             j->options->threads, err);
}

static ft_status choose_for_time(planning *p, const ft_calibration_job *j,
                                 const ft_weight_problem *problem, ft_error *err)
{
    const int64_t left = ft_ns_of_ms(j->options->budget.ms) - p->times.rest;
    ft_status status =
        ft_weight_plan_for_cost(&p->plan, problem, p->times.unit, (uint64_t) left, err);
    return status != FT_EARG ? status
                             : ft_fail(err, FT_EARG,
                                       "%s: no plan with a quantized matrix takes at most %g ms "
                                       "with the times of %s",
                                       j->options->input, j->options->budget.ms, j->times.path);
}

static ft_status choose(planning *p, const ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    const ft_weight_problem problem = { .variants = &p->variants,
                                        .units = &p->units,
                                        .reference = &p->reference,
                                        .progress = j->callbacks.progress,
                                        .user = j->callbacks.user };
    double loss;
    if (o->budget.bits > 0.0)
        FT_TRY(ft_weight_plan_check_bits(&problem, o->budget.bits, err));
    FT_TRY(observe_float(p, j, err));
    FT_TRY(ft_weight_plan_init(&p->plan, &problem, err));
    if (o->budget.bits > 0.0)
        return ft_weight_plan_for_bits(&p->plan, &problem, o->budget.bits, err);
    if (o->budget.ms > 0.0)
        return choose_for_time(p, j, &problem, err);
    FT_TRY(ft_accuracy_target_loss(&loss, &o->target, j->model, j->recipe->scheme, err));
    return ft_weight_plan_for_loss(&p->plan, &problem, FT_TARGET_MARGIN * loss, err);
}

static ft_status find_times(planning *p, const ft_calibration_job *j, ft_error *err)
{
    if (j->options->budget.ms <= 0.0)
        return FT_OK;
    FT_TRY(ft_weight_times_init(&p->times, &j->times, j->model, &p->units, j->quantized, err));
    return ft_time_budget_check(ft_weight_times_least(&p->times), j->options->budget.ms,
                                j->options->input, j->times.path, err);
}

static ft_status make_plan(planning *p, ft_calibration_job *j, ft_error *err)
{
    FT_TRY(ft_weight_units_init(&p->units, j->quantized, j->n_quantized, is_free, j->recipe, err));
    if (p->units.units == 0)
        return ft_fail(err, FT_EARG, "%s: rules decide about every matrix, so nothing is to choose",
                       j->options->input);
    FT_TRY(find_times(p, j, err));
    FT_TRY(open_variants(p, j, err));
    return choose(p, j, err);
}

/* ---- Reporting ----------------------------------------------------------------------------- */

static void apply_plan(ft_calibration_job *j, const ft_weight_plan *plan)
{
    for (size_t i = 0; i < j->n_quantized; i++) {
        ft_quantized_weight *q = &j->quantized[i];
        q->scheme = plan->scheme[i];
        if (ft_scheme_is_groupwise(q->scheme))
            q->options = ft_recipe_groupwise_options(j->recipe, q->scheme);
    }
}

static size_t count_scheme(const planning *p, ft_scheme scheme)
{
    size_t count = 0;
    for (size_t i = 0; i < p->plan.matrices; i++)
        count += p->units.of[i] != FT_NO_UNIT && p->plan.scheme[i] == scheme;
    return count;
}

static void report_plan(ft_weight_plan_report *out, const planning *p)
{
    *out = (ft_weight_plan_report){
        .kind = p->reference.kind,
        .samples = p->reference.samples,
        .passes = p->units.units + 3 + p->plan.tried_plans,
        .four_bits = count_scheme(p, FT_SCHEME_W4A16),
        .eight_bits = count_scheme(p, FT_SCHEME_W8A16),
        .in_float = count_scheme(p, FT_SCHEME_FLOAT),
        .bits = p->plan.bits,
        .loss = p->plan.loss,
        .uniform_bits = p->plan.uniform[0].bits,
        .uniform_loss = p->plan.uniform[0].loss,
    };
    if (p->times.unit != NULL)
        out->ms = ft_ms_of_ns(ft_weight_times_of_plan(&p->times, &p->units, p->plan.scheme));
}

static ft_status report_sensitivities(ft_report *report, const planning *p, ft_error *err)
{
    report->loss_name = ft_loss_name(p->reference.kind);
    report->sensitivity = ft_calloc(p->units.units, sizeof *report->sensitivity);
    if (report->sensitivity == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu sensitivities", p->units.units);
    for (size_t i = 0; i < p->units.units; i++) {
        const ft_weight_matrix *first = &p->variants.quantized[p->units.first[i]].weights;
        ft_sensitivity *out = &report->sensitivity[report->sensitivities++];
        *out = (ft_sensitivity){
            .scheme = FT_SCHEME_W4A16,
            .loss = p->plan.sensitivity[i],
            .bytes = (size_t) ft_scheme_bytes(&p->variants.recipe, first, FT_SCHEME_W4A16) *
                     ft_weight_unit_size(&p->units, i),
        };
        snprintf(out->name, sizeof out->name, "%s", first->name);
    }
    return FT_OK;
}

static int by_bits(const void *a, const void *b)
{
    const ft_pareto_point *x = a, *y = b;
    return (x->bits > y->bits) - (x->bits < y->bits);
}

/* All plans that were measured; the chart shows which of them no other beats. */
static ft_status report_plans(ft_report *report, const ft_weight_plan *plan, ft_error *err)
{
    report->pareto = ft_calloc(plan->tried_plans + 2, sizeof *report->pareto);
    if (report->pareto == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu plans", plan->tried_plans);
    ft_pareto_point *out = report->pareto;
    for (size_t i = 0; i < plan->tried_plans + 2; i++) {
        const ft_measured_plan *from = i < 2 ? &plan->uniform[i] : &plan->tried[i - 2];
        *out++ = (ft_pareto_point){ from->bits, from->loss, from->bits == plan->bits };
    }
    report->pareto_points = plan->tried_plans + 2;
    qsort(report->pareto, report->pareto_points, sizeof *report->pareto, by_bits);
    return FT_OK;
}

ft_status ft_calibration_plan_weights(ft_calibration_job *j, ft_error *err)
{
    if (!ft_calibration_plans_weights(j))
        return FT_OK;
    planning p = { .units = { .of = NULL } };
    ft_status status = make_plan(&p, j, err);
    if (status == FT_OK) {
        apply_plan(j, &p.plan);
        report_plan(&j->report->weight_plan, &p);
        j->report->weight_plan.budget = j->options->budget.bits;
        j->report->weight_plan.budget_ms = j->options->budget.ms;
        status = report_sensitivities(j->report, &p, err);
    }
    if (status == FT_OK)
        status = report_plans(j->report, &p.plan, err);
    planning_fini(&p);
    return status;
}

/* ---- Verifying ----------------------------------------------------------------------------- */

static ft_status measure_artifact(ft_weight_plan_report *report, const ft_calibration_job *j,
                                  const char *path, ft_error *err)
{
    const ft_quant_config in_float = { .mode = FT_MODE_FLOAT };
    const ft_model_options where = { .device = j->options->device };
    ft_reference reference = { .samples = 0 };
    ft_model *model = NULL;
    const ft_dataset data = ft_calibration_eval_data(j, &report->held_out);
    FT_TRY(ft_model_open_with_config(&model, j->input, &where, &in_float, err));
    ft_status status =
        ft_reference_init(&reference, model, &data, FT_TARGET_SAMPLES, j->options->threads, err);
    ft_model_close(model);
    model = NULL;
    if (status == FT_OK)
        status = ft_model_open_with_config(&model, path, &where, NULL, err);
    if (status == FT_OK)
        status = ft_loss_measure(&report->verified_loss, &reference, model, err);
    report->verified = reference.samples;
    ft_model_close(model);
    ft_reference_fini(&reference);
    return status;
}

static ft_status check_verified(const ft_calibration_job *j, ft_error *err)
{
    const ft_weight_plan_report *report = &j->report->weight_plan;
    char found[FT_TARGET_TEXT], expected[FT_TARGET_TEXT];
    double target;
    if (!ft_accuracy_target_is_set(&j->options->target))
        return FT_OK;
    FT_TRY(ft_accuracy_target_loss(&target, &j->options->target, j->model, j->recipe->scheme, err));
    ft_accuracy_target_describe_exactly(found, report->kind, report->verified_loss);
    ft_accuracy_target_describe_exactly(expected, report->kind, target);
    if (report->verified_loss <= target)
        return FT_OK;
    if (j->options->best_effort) {
        (void) ft_messages_add(&j->report->notes, FT_EUNSUPPORTED,
                               "the model with %.2f bits a weight reaches %s on %zu samples that "
                               "were not used, and misses --target %s",
                               report->bits, found, report->verified, expected);
        return FT_OK;
    }
    return ft_fail(err, FT_EUNSUPPORTED,
                   "%s: the model with %.2f bits a weight reaches %s on %zu samples that were not "
                   "used, but --target is %s; --best-effort accepts that",
                   j->options->input, report->bits, found, report->verified, expected);
}

ft_status ft_calibration_verify_weights(ft_calibration_job *j, ft_error *err)
{
    if (!ft_calibration_plans_weights(j) || j->draft == NULL)
        return FT_OK;
    char *path = ft_artifact_temp_path(j->draft);
    if (path == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a path");
    ft_status status = measure_artifact(&j->report->weight_plan, j, path, err);
    free(path);
    FT_TRY(status);
    return check_verified(j, err);
}
