/*
 * output_paths.c - outputs must not replace inputs, nor each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/output_paths.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/base/atomic_file.h"

ft_status ft_calibration_check_input(const ft_calibration_options *o, const char *input,
                                     ft_error *err)
{
    const char *output[] = { o->dry_run ? NULL : o->output, o->save, o->save_stats, o->report };
    for (size_t i = 0; i < FT_COUNT(output); i++)
        if (output[i] != NULL)
            FT_TRY(ft_path_check_not_input(output[i], input, err));
    return FT_OK;
}

ft_status ft_calibration_check_paths(const ft_calibration_options *o, ft_error *err)
{
    const char *input[] = { o->input, o->data, o->eval, o->amax };
    const char *output[] = { o->dry_run ? NULL : o->output, o->save, o->save_stats, o->report };
    for (size_t k = 0; k < FT_COUNT(input); k++)
        if (input[k] != NULL)
            FT_TRY(ft_calibration_check_input(o, input[k], err));
    for (size_t k = 0; k < o->images.count; k++)
        FT_TRY(ft_calibration_check_input(o, o->images.path[k], err));
    for (size_t k = 0; k < o->n_merge; k++)
        FT_TRY(ft_calibration_check_input(o, o->merge[k], err));
    for (size_t k = 0; k < o->n_stats; k++)
        FT_TRY(ft_calibration_check_input(o, o->stats[k], err));
    for (size_t i = 0; i < FT_COUNT(output); i++)
        for (size_t k = 0; output[i] != NULL && k < i; k++)
            if (output[k] != NULL && ft_paths_same_file(output[i], output[k]))
                return ft_fail(err, FT_EARG, "%s: given for two different outputs", output[i]);
    return FT_OK;
}
