/*
 * loss.h - how far the outputs of a quantized model are from those of the float model.
 *
 * Rows that are zero in the float output are padding and not counted.  Sums are in double, in the
 * order of rows and columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_MIXED_LOSS_H
#define FT_CALIBRATE_MIXED_LOSS_H

#include "calibrate/mixed/loss_kind.h"
#include "runtime/data/dataset.h"
#include "runtime/model/activation_checkpoint.h"

/* In sums: larger losses, and infinite ones, would hide all others. */
#define FT_WORST_LOSS 1e6

/* The samples that models are compared on, and what the float model computes from them. */
typedef struct ft_reference {
    ft_loss_kind kind;      /* by which ft_loss_measure() judges; may be changed */
    const ft_dataset *data; /* borrowed */
    size_t *row;            /* [samples]: rows of data */
    size_t samples;
    float **output;   /* [samples]: the outputs of one sample one after the other */
    double **log_sum; /* [samples]: of each of their rows, log(sum(exp)); NULL: not a softmax */
    int threads;
} ft_reference;

/*
 * Runs the float model on at most `samples` rows of `data`, evenly spaced; fewer if their outputs
 * would take more than 256 MB.  fini also accepts a zeroed or failed one.  FT_ENOMEM; errors of the
 * forward pass.
 */
FT_MUST_USE ft_status ft_reference_init(ft_reference *reference, const ft_model *model,
                                        const ft_dataset *data, size_t samples, int threads,
                                        ft_error *err);
void ft_reference_fini(ft_reference *reference);

/*
 * The loss of a model on these samples, of the kind of the reference; infinite if an output is not
 * finite.  Errors of the forward pass.
 */
FT_MUST_USE ft_status ft_loss_measure(double *loss, const ft_reference *reference,
                                      const ft_model *model, ft_error *err);

typedef struct ft_loss_sum {
    double sum; /* infinite: an output is not finite */
    size_t rows;
} ft_loss_sum;

/* Samples first, first + step, ... of a reference. */
typedef struct ft_loss_samples {
    size_t first, step, count;
} ft_loss_samples;

/*
 * The live values of a base model, so that models that differ from it in later operations resume
 * there.
 */
typedef struct ft_loss_base {
    const ft_model *model; /* borrowed */
    ft_loss_samples samples;
    ft_activation_checkpoint checkpoint;
} ft_loss_base;

/* FT_ENOMEM.  fini also accepts a zeroed or failed one. */
FT_MUST_USE ft_status ft_loss_base_init(ft_loss_base *base, const ft_model *model,
                                        const ft_loss_samples *samples, ft_error *err);
void ft_loss_base_fini(ft_loss_base *base);

/*
 * The loss, of the kind ft_loss_kind_of(), on each sample of the base, [samples.count], of a model
 * that differs from it from the operation on that writes `value`: equal to that of whole passes.
 * Values in the order of the graph are fastest: the base runs each operation once for all of them.
 * Errors of the forward pass.
 */
FT_MUST_USE ft_status ft_loss_measure_change(ft_loss_sum *loss, ft_loss_base *base,
                                             const ft_reference *reference, const ft_model *model,
                                             const char *value, ft_error *err);

#endif
