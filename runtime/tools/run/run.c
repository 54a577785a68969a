/*
 * run.c - what forward passes, generation and beam search share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/run/run.h"

#include "runtime/error.h"
#include "runtime/model/explain_gemm.h"

#include <unistd.h>

ft_status ft_run_texts(ft_examples *out, const ft_run *run, ft_error *err)
{
    if (run->text == NULL)
        return ft_examples_copy(out, run->operand, run->num_operands, run->texts.pairs, err);
    return ft_examples_read(out, run->text, &run->texts, err);
}

void ft_run_begin_progress(ft_progress_line *line, const ft_run *run, const char *unit,
                           bool prints_results)
{
    bool mixes = prints_results && isatty(STDOUT_FILENO);
    ft_progress_begin(line, "running", unit, run->data == NULL || mixes);
}

/* The plan, and the int8 GEMM kernels for batch sizes up to the session's limit. */
ft_status ft_run_explain(const ft_run *run, ft_session *session, ft_error *err)
{
    ft_batch runs[FT_GEMM_REPORT_BATCHES];
    if (!run->verbose)
        return FT_OK;
    FT_TRY(ft_model_write_plan(session->model, stderr, err));
    return ft_gemm_report_write(session, runs, ft_gemm_report_default_batches(session, runs),
                                stderr, err);
}
