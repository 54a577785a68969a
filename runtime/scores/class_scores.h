/*
 * class_scores.h - what the logits of a classifier say, by what its labels are to each other.
 *
 * The functions that turn logits into probabilities are those that pipelines of transformers and
 * CrossEncoder of sentence-transformers apply.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_CLASS_SCORES_H
#define FT_RUNTIME_SCORES_CLASS_SCORES_H

#include "runtime/data/dataset.h"
#include "runtime/graph/model_config.h"

/* The largest of n > 0 numbers, the first among equals. */
size_t ft_largest(const float *x, size_t n);

/* 1 / (1 + e^-x) */
double ft_sigmoid(float x);

/* The probability of label i of n: by softmax, or by sigmoid.  Not for regressions. */
double ft_class_probability(ft_problem problem, const float *logits, size_t n, size_t i);

/* Whether a label that may hold beside others does: its probability is above a half. */
bool ft_class_holds(float logit);

/* Whether two rows of logits say the same: one class, or one set of labels.  Not for regressions. */
bool ft_classes_agree(ft_problem problem, const float *a, const float *b, size_t n);

/* ---- Beside what is right ----------------------------------------------------------------- */

/* What a correlation is computed from; sums of squares are of distances from the means. */
typedef struct ft_correlation {
    double mean[2], squares[2], products;
} ft_correlation;

/* How well logits tell what is right, over rows. */
typedef struct ft_tally {
    ft_problem problem;
    size_t labels, rows;
    size_t right;                /* rows, or labels of rows where several may hold */
    size_t exact;                /* rows all of whose labels are right */
    double squares;              /* of errors of a regression */
    ft_correlation *correlation; /* [labels] of a regression; owned */
} ft_tally;

FT_MUST_USE ft_status ft_tally_init(ft_tally *out, const ft_config *config, ft_error *err);
void ft_tally_fini(ft_tally *tally); /* takes one that is all zero */

/* Add the logits of a row of data that have labels, and of a row beside the numbers that it has. */
void ft_tally_add(ft_tally *tally, const float *logits, const ft_dataset *data, size_t row);
void ft_tally_add_numbers(ft_tally *tally, const float *logits, const float *numbers);

/* Whether data say what is right. */
bool ft_dataset_has_labels(const ft_dataset *dataset);

typedef struct ft_metric {
    const char *name;
    double value;
    bool part; /* of 1: for people four digits are enough */
} ft_metric;

enum { FT_METRICS = 2 };

/*
 * What the rows come to: "accuracy", of rows or of labels of rows; "exact_match", where several
 * labels may hold; of a regression "mse" and "pearson", the mean over its labels, which is left out
 * where a side does not vary.  Returns how many; 0 without rows.
 */
size_t ft_tally_metrics(const ft_tally *tally, ft_metric out[FT_METRICS]);

#endif
