/*
 * activation_stats.h - what linears multiply, over sample data: the sums by which codes are chosen.
 *
 * Linears that read the same value share its sums.  Each sample is a run of its own on one thread,
 * and what it adds is added in the order of the samples: neither the number of threads nor that of
 * passes changes a bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_ACTIVATION_STATS_H
#define FT_CALIBRATE_WEIGHTS_ACTIVATION_STATS_H

#include "runtime/container/artifact.h"
#include "runtime/data/dataset.h"
#include "runtime/model/model.h"

/* The input of one or more linears, x, a row for each token. */
typedef struct ft_sums {
    const char *name; /* of the value; borrowed from the model */
    int value;        /* in the model's plan */
    size_t cols;
    uint64_t rows;     /* that were summed up; 0: none yet */
    double *magnitude; /* [cols] sums of |x| */
    double *square;    /* [cols] sums of x * x */
    double *moments;   /* [cols, cols], symmetric: sums of x[i] * x[j]; NULL: not in memory now */

    /* [cols], or NULL.  All sums are those of x / factor: the linears' columns are multiplied by
     * it. */
    float *factor;
} ft_sums;

typedef struct ft_inputs {
    ft_sums *input; /* [count], in the order of the plan */
    size_t count;
    int *by_weight; /* [nweight of the model]: the input it multiplies, or -1 */

    /* The rest is for activation_stats.c. */
    const struct ft_inputs_of *of;
    size_t longest; /* tokens of a run */
} ft_inputs;

/* Borrowed as long as there are inputs. */
typedef struct ft_inputs_of {
    const ft_model *model; /* opened to observe */
    const ft_dataset *data;
    uint64_t first, last; /* samples first .. last - 1 */
    int threads;          /* sessions at once; of a device 1 */
    size_t memory;        /* bytes that sums and what they are made of may take; 0: any */
    bool moments;         /* are wanted: not squares and magnitudes alone */
    void (*stage)(void *user, const char *what, const char *unit);
    ft_progress progress; /* may be NULL, as may be `stage` */
    void *user;
} ft_inputs_of;

/* Find the inputs of the matrices of a model for which `wanted` is true: [nweight]. */
FT_MUST_USE ft_status ft_inputs_init(ft_inputs *inputs, const ft_inputs_of *of, const bool *wanted,
                                     ft_error *err);
void ft_inputs_fini(ft_inputs *inputs); /* takes a zeroed or failed one too */

/*
 * Have the sums of an input in memory.  Where they are not, samples are run and as many inputs from
 * this one on are summed up as fit into memory; moments of the others are given up.  So inputs had
 * best be needed in their order.
 *
 * Errors: FT_ENOMEM; FT_EFORMAT where an input is NaN or infinite; those of runs.
 */
FT_MUST_USE ft_status ft_inputs_need(ft_inputs *inputs, ft_sums *input, ft_error *err);

/* Divide an input by a factor, [cols], all above 0, which becomes the input's own.  Once. */
void ft_inputs_divide(ft_sums *input, float *factor);

#endif
