/*
 * results.h - the outputs of many runs: each run's at a time, and all of them in a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_RESULTS_H
#define FT_RUNTIME_TOOLS_RUN_RESULTS_H

#include "runtime/data/dataset.h"
#include "runtime/model/model.h"
#include "runtime/container/safetensors.h"

typedef struct ft_results {
    const char *const *name; /* [count]; borrowed */
    ft_tensor *part;         /* [count] F32: what the last run made; data owned */
    size_t *room;            /* [count] bytes of these */
    size_t count;
    ft_safetensors_stream *file; /* NULL: nobody keeps them */
} ft_results;

/*
 * The named outputs and kept values of all rows of `dataset`, into `output`, which may be NULL.  The
 * session tells shapes, so it must have run once.
 */
FT_MUST_USE ft_status ft_results_init(ft_results *out, const ft_session *session,
                                      const ft_dataset *dataset, const char *const *names,
                                      size_t count, ft_output *output, ft_error *err);
void ft_results_fini(ft_results *results);

/* Take what the session's last run computed of the rows from `first` on. */
FT_MUST_USE ft_status ft_results_take(ft_results *results, const ft_session *session, size_t first,
                                      ft_error *err);

/* All rows have been taken: give the file its name. */
FT_MUST_USE ft_status ft_results_end(ft_results *results, ft_error *err);

/* Of the last run; NULL when it was not asked for. */
const ft_tensor *ft_results_find(const ft_results *results, const char *name);

#endif
