/*
 * results.h - the outputs of many runs, gathered into whole tensors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RESULTS_H
#define FT_RUNTIME_TOOLS_RESULTS_H

#include "runtime/dataset.h"
#include "runtime/model.h"
#include "runtime/safetensors.h"

typedef struct ft_results {
    ft_named_tensor *tensor; /* [count] F32; data owned, filled from the front */
    size_t *filled;          /* [count] elements */
    size_t count;
} ft_results;

/*
 * Room for the named outputs and kept values of all rows of `dataset`; the session tells shapes,
 * so it must have run once.  Names are borrowed.
 */
FT_MUST_USE ft_status ft_results_init(ft_results *out, const ft_session *session,
                                      const ft_dataset *dataset, const char *const *names,
                                      size_t count, ft_error *err);
void ft_results_fini(ft_results *results);

/* Append what the session's last run computed of the rows from `first` on. */
FT_MUST_USE ft_status ft_results_append(ft_results *results, const ft_session *session,
                                        size_t first, ft_error *err);

/* NULL when it was not asked for. */
const ft_tensor *ft_results_find(const ft_results *results, const char *name);

#endif
