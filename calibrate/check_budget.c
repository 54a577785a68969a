/*
 * check_budget.c - whether the precision of weights is chosen, and what that needs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/check_budget.h"

#include "runtime/error.h"

bool ft_calibration_plans_weights(const ft_calibration_job *j)
{
    return j->options->budget.bits > 0.0 ||
           (j->options->budget.ms > 0.0 && j->recipe->scheme == FT_SCHEME_W4A16) ||
           (ft_accuracy_target_is_set(&j->options->target) && !j->needs_ranges &&
            j->recipe->scheme == FT_SCHEME_W4A16);
}

ft_status ft_calibration_check_budget(const ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    const char *option = o->budget.bits > 0.0 || o->budget.ms > 0.0 ? "--budget" : "--target";
    if (j->recipe->scheme != FT_SCHEME_W4A16)
        return ft_fail(err, FT_EARG,
                       "%s: %s chooses between 4, 8 and more bits: use --scheme w4a16", o->input,
                       option);
    ft_loss_kind measure = ft_loss_kind_of(j->model);
    ft_loss_kind wanted = ft_accuracy_target_measure(&o->target, j->model);
    if (wanted != measure && ft_loss_kind_applies(wanted, j->model))
        return ft_fail(err, FT_EARG,
                       "%s: --target %s=... is for int8 activations; matrices are compared by %s",
                       o->input, ft_accuracy_target_name(&o->target), ft_loss_name(measure));
    for (size_t i = 0; i < j->n_quantized; i++)
        if (ft_scheme_is_int8(j->quantized[i].scheme))
            return ft_fail(err, FT_EARG, "%s: %s is for group-wise matrices, but %s is %s",
                           o->input, option, j->quantized[i].weights.name,
                           ft_scheme_name(j->quantized[i].scheme));
    if (o->data == NULL || o->n_merge > 0)
        return ft_fail(err, FT_EARG,
                       "%s: %s needs samples: use -d FILE, --text FILE or --image FILE", o->input,
                       option);
    return FT_OK;
}

ft_status ft_calibration_read_times(ft_calibration_job *j, ft_error *err)
{
    const char *path = j->options->times;
    if (path == NULL)
        return FT_OK;
    FT_TRY(ft_measured_times_read(&j->times, path, err));
    return j->times.group == j->recipe->group
               ? FT_OK
               : ft_fail(err, FT_EARG,
                         "%s: found groups of %lld, expected %d as in --group: measure them with "
                         "ft-bench --group %d",
                         path, (long long) j->times.group, (int) j->recipe->group,
                         (int) j->recipe->group);
}
