/*
 * run.c - a call from its values to its jobs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/serving/serving.h"

static ft_status start(ft_serving_call *call, ft_error *err)
{
    const ft_serving_signature *model = &call->instance->shared->signature;
    FT_TRY(ft_serving_set(&call->settings, ft_serving_members_of(model), call->values, err));
    return model->generates ? ft_serving_generate(call, err) : ft_serving_encode(call, err);
}

void ft_serving_run(ft_serving_call *call, ft_status status, ft_error *err)
{
    call->running = 1;
    if (status == FT_OK)
        status = start(call, err);
    ft_serving_call_leave(call, status, err);
}
