/*
 * explain_gemm.h - report which kernels a device selects for the int8 GEMMs of a plan.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_EXPLAIN_GEMM_H
#define FT_RUNTIME_MODEL_EXPLAIN_GEMM_H

#include "runtime/model/session.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * Write one line per int8 GEMM shape in the session's plan: M x N x K, the output dtype and
 * activation, how often the plan contains it, and the kernel selected for each of the batches.
 * Only the sizes of the batches are read, and they must be within the session's limits.  Writes
 * nothing if the plan has no int8 GEMM.
 */
FT_MUST_USE ft_status ft_gemm_report_write(const ft_session *session, const ft_batch *runs,
                                           size_t count, FILE *file, ft_error *err);

/* A batch of `tokens` tokens with sequences as long as the model allows. */
ft_batch ft_gemm_report_batch(const ft_session *session, size_t tokens);

enum { FT_GEMM_REPORT_BATCHES = 6 };

/* The default batch sizes, up to the session's limit; returns their number. */
size_t ft_gemm_report_default_batches(const ft_session *session,
                                      ft_batch runs[FT_GEMM_REPORT_BATCHES]);

#pragma GCC visibility pop

#endif
