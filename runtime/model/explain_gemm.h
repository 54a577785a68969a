/*
 * explain_gemm.h - which way a device computes the int8 products of a plan, in words.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_EXPLAIN_GEMM_H
#define FT_RUNTIME_MODEL_EXPLAIN_GEMM_H

#include "runtime/model/session.h"

/*
 * Write a line for each shape of int8 product in the session's plan: rows x columns x depth, what
 * becomes of it, how often the plan has it, and the ways by which these runs, each within the
 * session's limits, compute it.  Of the runs only their sizes are read.  Nothing is written where
 * the plan has no int8 product.
 */
FT_MUST_USE ft_status ft_products_write(const ft_session *session, const ft_batch *runs,
                                        size_t count, FILE *file, ft_error *err);

/* A run of so many tokens, its sequences as long as the model allows. */
ft_batch ft_products_run(const ft_session *session, size_t tokens);

enum { FT_USUAL_RUNS = 6 };

/* Runs to ask about where nobody has named any, up to what the session allows; how many. */
size_t ft_products_usual(const ft_session *session, ft_batch runs[FT_USUAL_RUNS]);

#endif
