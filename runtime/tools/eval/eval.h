/*
 * eval.h - how good a model's predictions are, and how far they are from another's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_EVAL_EVAL_H
#define FT_RUNTIME_TOOLS_EVAL_EVAL_H

#include "runtime/scores/class_scores.h"
#include "runtime/model/model.h"

/* The command line. */
typedef struct ft_eval {
    const char *input, *against, *data;
    ft_model_options model;
    int threads;
    int64_t context, chunk; /* 0: not given */
    bool json;
} ft_eval;

/* One prediction. */
typedef struct ft_verdict {
    double nll;  /* minus the log-probability of what is right; NaN where nobody knows that */
    double kl;   /* KL(other || this): the sum of p' log(p' / p) */
    bool right;  /* what is most likely is right */
    bool agrees; /* and is so for the other, too: the first among equals */
} ft_verdict;

/* All of them. */
typedef struct ft_judgement {
    bool compares;       /* with another model */
    bool classifies;     /* rows, instead of predicting their tokens */
    size_t rows, tokens; /* of the data */
    size_t count;        /* predictions */
    size_t known;        /* of them where it is known what is right; of tokens */
    size_t right, agreed;
    ft_tally tally;      /* of rows beside their labels */
    ft_tally against;    /* of a regression beside the other model's numbers */
    double *nll;         /* [rows]: sums */
    size_t *predictions; /* [rows] */
    double *kl;          /* [count]; NULL: compares with nothing */
    size_t room;         /* for kl */
    double seconds;
} ft_judgement;

FT_MUST_USE ft_status ft_judgement_init(ft_judgement *out, size_t rows, bool compares,
                                        ft_error *err);
void ft_judgement_fini(ft_judgement *judgement);

/*
 * Judge logits [n]; `other` is NULL or as many of another model; right < 0 where nobody knows.
 * Computed in double, in the order of the logits.
 */
ft_verdict ft_judge(const float *logits, const float *other, size_t n, int32_t right);

/* The distance alone, of labels that may each hold: the divergences of all of them together. */
ft_verdict ft_judge_labels(const float *logits, const float *other, size_t n);

/* Count a prediction of this row.  FT_ENUMBER: its logits are not finite. */
FT_MUST_USE ft_status ft_judgement_add(ft_judgement *judgement, size_t row, int32_t right,
                                       const ft_verdict *verdict, ft_error *err);

/* exp of the mean; the mean, and the value that so large a part of all does not exceed, for which
 * they are sorted. */
double ft_judgement_perplexity(const ft_judgement *judgement);
double ft_judgement_mean_kl(const ft_judgement *judgement);
double ft_judgement_most_kl(ft_judgement *judgement, double part);

/* Judge all rows; `other` may be NULL. */
FT_MUST_USE ft_status ft_eval_tokens(ft_judgement *out, const ft_eval *eval, const ft_model *model,
                                     const ft_model *other, ft_error *err);
FT_MUST_USE ft_status ft_eval_classes(ft_judgement *out, const ft_eval *eval, const ft_model *model,
                                      const ft_model *other, ft_error *err);

#endif
