/*
 * inspect_plan.c - the operations that a run of an artifact executes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/tools/inspect.h"

ft_status ft_inspect_plan(ft_inspection *what, ft_error *err)
{
    ft_model *model;
    if (what->json)
        return ft_fail(err, FT_EARG, "--plan: a plan has no JSON form");
    FT_TRY(ft_model_open(&model, what->path[0], NULL, err));
    ft_status status = ft_model_write_plan(model, stdout, err);
    ft_model_close(model);
    return status;
}
