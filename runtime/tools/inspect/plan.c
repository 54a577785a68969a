/*
 * plan.c - print the plan of an artifact, and the kernels that a device selects for its int8 GEMMs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/tools/inspect/inspect.h"

/* Kernel selection depends on the session's limits, so a session must fit on the device. */
static ft_status write_gemms(const ft_inspection *inspection, const ft_model *model, ft_error *err)
{
    ft_batch runs[FT_INSPECT_RUNS];
    ft_session_options options = { .threads = 1 };
    ft_session *session;
    size_t count = inspection->ntokens;
    if (count > 0) /* like most sessions, larger than its batches */
        options.max_tokens =
            (int64_t) (inspection->tokens[count - 1] > 4096 ? inspection->tokens[count - 1] : 4096);
    FT_TRY(ft_session_open(&session, model, &options, err));
    for (size_t i = 0; i < count; i++)
        runs[i] = ft_gemm_report_batch(session, inspection->tokens[i]);
    if (count == 0)
        count = ft_gemm_report_default_batches(session, runs);
    ft_status status = ft_gemm_report_write(session, runs, count, stdout, err);
    ft_session_close(session);
    return status;
}

ft_status ft_inspect_plan(ft_inspection *inspection, ft_error *err)
{
    ft_model *model;
    if (inspection->json)
        return ft_fail(err, FT_EARG, "--plan does not support --json");
    FT_TRY(ft_model_open(&model, inspection->path[0],
                         &(ft_model_options){ .device = inspection->device }, err));
    ft_status status = ft_model_write_plan(model, stdout, err);
    if (status == FT_OK)
        status = write_gemms(inspection, model, err);
    ft_model_close(model);
    return status;
}
