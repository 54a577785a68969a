/*
 * folded.h - the factors that calibration folded into a model.
 *
 * SmoothQuant and AWQ divide the columns of a value by factors and multiply those of the matrices
 * that read it (runtime/graph/scale_fold.h).  The forward pass needs nothing else, but a reader
 * that compares values, ranges or weights with those of the float model must undo it.  An artifact
 * therefore stores the factors of such a value: a vector of role "folded", named after it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_FOLDED_H
#define FT_RUNTIME_MODEL_FOLDED_H

#include "runtime/model/model.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

#define FT_FOLDED_ROLE "folded"
#define FT_FOLDED_SUFFIX ".folded"

/* Number of values whose factors an artifact stores. */
size_t ft_folded_count(const ft_artifact *artifact);

/*
 * Check the factors of the artifact, once the graph exists.  FT_EFORMAT: a vector is no F32 vector
 * of factors from FT_SMOOTHING_MIN to its inverse, belongs to no value of its length that can be
 * scaled, or has different factors for columns that come from one row.
 */
FT_MUST_USE ft_status ft_folded_check(const ft_model *model, ft_error *err);

/* By what calibration divided the columns of the values of a graph. */
typedef struct ft_folded {
    float *
        *divisor; /* [nvalue of the graph], [cols] each; NULL: the value was not divided.  Owned */
    int nvalue;
} ft_folded;

/*
 * The divisors of a model's graph.  Of a value that a linear writes, they also divide the rows of
 * its matrix and its bias; of one that a norm writes, its weights; and the columns of all matrices
 * that read a value were multiplied by them.  Free with ft_folded_fini(), also after a failure.
 * FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_folded_read(ft_folded *out, const ft_model *model, ft_error *err);
void ft_folded_fini(ft_folded *folded);

#pragma GCC visibility pop

#endif
