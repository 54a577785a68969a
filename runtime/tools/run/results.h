/*
 * results.h - outputs of many forward passes: the last one in memory, all of them in a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_RESULTS_H
#define FT_RUNTIME_TOOLS_RUN_RESULTS_H

#include "runtime/data/dataset.h"
#include "runtime/model/model.h"
#include "runtime/container/safetensors.h"

/* Matryoshka embeddings: what is kept of the output "embedding". */
typedef struct ft_embedding_cut {
    size_t size;    /* the first values of each row; 0: all */
    bool normalize; /* then each row is scaled to unit L2 norm again */
} ft_embedding_cut;

typedef struct ft_results {
    const char *const *name; /* [count]; borrowed */
    ft_tensor *part;         /* [count] F32: outputs of the last pass; data owned */
    size_t *capacity;        /* [count]: allocated bytes of `part` */
    size_t count;
    ft_embedding_cut cut;
    ft_safetensors_stream *file; /* NULL: no file is written */
} ft_results;

/*
 * Collect the named outputs and kept values for all rows of `dataset` and write them to `output`,
 * if not NULL.  Shapes are read from the session, so it must have run once.
 */
FT_MUST_USE ft_status ft_results_init(ft_results *out, const ft_session *session,
                                      const ft_dataset *dataset, const char *const *names,
                                      size_t count, const ft_embedding_cut *cut,
                                      ft_atomic_file *output, ft_error *err);
void ft_results_fini(ft_results *results);

/* Collect the outputs of the session's last pass, whose first row is `first`. */
FT_MUST_USE ft_status ft_results_collect(ft_results *results, const ft_session *session,
                                         size_t first, ft_error *err);

/* All rows have been collected: finish the file. */
FT_MUST_USE ft_status ft_results_end(ft_results *results, ft_error *err);

/* The output of the last pass; NULL if it was not requested. */
const ft_tensor *ft_results_find(const ft_results *results, const char *name);

#endif
