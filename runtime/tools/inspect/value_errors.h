/*
 * value_errors.h - runs two models on the same samples and compares every value that both have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_INSPECT_VALUE_ERRORS_H
#define FT_RUNTIME_TOOLS_INSPECT_VALUE_ERRORS_H

#include "kernels/op.h"
#include "runtime/data/dataset.h"
#include "runtime/model/model.h"

/* A value of two plans.  Where a plan has NAME and NAME.float, NAME is the quantized one.
 * Smoothed and folded values are compared as they were before. */
typedef struct ft_value_error {
    char name[2][FT_NAME]; /* in each plan */
    double signal, noise;  /* sums of squares: of the first, and of the difference */
} ft_value_error;

typedef struct ft_value_errors {
    ft_value_error *value; /* [count], in the order of the first plan; owned */
    size_t count;
} ft_value_errors;

/* In dB; infinite if both are equal. */
double ft_value_sqnr_db(const ft_value_error *value);

/* The first value whose SQNR is below `db`, or NULL; and the first one with the lowest SQNR. */
const ft_value_error *ft_value_errors_first_below(const ft_value_errors *errors, double db);
const ft_value_error *ft_value_errors_worst(const ft_value_errors *errors);

/*
 * Run both models on rows 0 .. samples - 1, each alone.  The results do not depend on `threads`.
 * Free with ft_value_errors_fini(), also after a failure.
 */
FT_MUST_USE ft_status ft_value_errors_measure(ft_value_errors *out, const ft_model *const model[2],
                                              const ft_dataset *data, size_t samples, int threads,
                                              ft_error *err);
void ft_value_errors_fini(ft_value_errors *errors);

#endif
