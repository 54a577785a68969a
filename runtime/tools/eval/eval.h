/*
 * eval.h - quality of a model's predictions, and divergence from a baseline model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_EVAL_EVAL_H
#define FT_RUNTIME_TOOLS_EVAL_EVAL_H

#include "runtime/cli/image_options.h"
#include "runtime/data/image_files/image_list.h"
#include "runtime/data/model_texts.h"
#include "runtime/model/model.h"
#include "runtime/scores/class_metrics.h"
#include "runtime/scores/class_scores.h"

/* The command line. */
typedef struct ft_eval {
    const char *input, *against;
    const char *data;      /* the samples; in messages also texts, or the first image */
    ft_text_source texts;  /* path NULL: the samples are no texts */
    ft_image_paths images; /* files and folders that the samples are; none: they are no images */
    ft_model_options model;
    int threads;
    int64_t context, chunk; /* 0: not given */
    bool json;

    /* Metrics of generated texts. */
    bool generate;
    int32_t beams, max_new_tokens; /* 0: not given */
    int64_t batch;                 /* texts at the same time; 0: not given */
    const char *generation_option; /* the name of one that is given; NULL: none */
} ft_eval;

/* Scores of one prediction. */
typedef struct ft_prediction_score {
    double nll; /* negative log-likelihood of the label; NaN without a label */
    double
        kl; /* KL(baseline || model), the sum of p' log(p' / p); p' is the baseline's probability */
    bool right;  /* the top-1 prediction equals the label */
    bool agrees; /* the baseline has the same top-1 prediction; the first of equal logits */
} ft_prediction_score;

enum { FT_EVAL_TASK_METRICS = 7 };

/* Accumulated results. */
typedef struct ft_eval_result {
    bool compares;       /* there is a baseline */
    bool classifies;     /* one prediction per row instead of per token */
    size_t rows, tokens; /* of the dataset */
    size_t count;        /* predictions */
    size_t num_labeled;  /* predictions with a label; token models */
    size_t right, num_agreed;
    ft_metric_accumulator metrics; /* classifiers: metrics against the labels */
    ft_metric_accumulator against; /* regression: metrics against the baseline */
    double *nll;                   /* [rows]: sum of NLL */
    size_t *predictions;           /* [rows] */
    double *kl;                    /* [count]; NULL: no baseline */
    size_t capacity;               /* capacity of kl */
    double seconds;
    bool has_task; /* the metrics below take the place of the others */
    ft_metric task[FT_EVAL_TASK_METRICS];
    size_t num_task;
} ft_eval_result;

FT_MUST_USE ft_status ft_eval_result_init(ft_eval_result *out, size_t rows, bool compares,
                                          ft_error *err);
void ft_eval_result_fini(ft_eval_result *result);

/*
 * Score logits [n] against label `right` (-1: none) and the baseline's logits `other` [n] (or
 * NULL). Computed in double, in index order.
 */
ft_prediction_score ft_score_prediction(const float *logits, const float *other, size_t n,
                                        int32_t right);

/* Multi-label: the sum of the KL divergences of all labels; without NLL. */
ft_prediction_score ft_score_multi_label(const float *logits, const float *other, size_t n);

/* Add a prediction of a row.  FT_ENONFINITE: its logits are not finite. */
FT_MUST_USE ft_status ft_eval_result_add(ft_eval_result *result, size_t row, int32_t right,
                                         const ft_prediction_score *prediction, ft_error *err);

/* exp of the mean NLL; the mean KL divergence; a quantile of the KL divergences, which sorts them.
 */
double ft_eval_perplexity(const ft_eval_result *result);
double ft_eval_mean_kl(const ft_eval_result *result);
double ft_eval_kl_quantile(ft_eval_result *result, double quantile);

/* Samples, and the files of images, which the dataset reads when it needs them. */
typedef struct ft_eval_samples {
    ft_image_list images;
    ft_dataset data;
} ft_eval_samples;

/* Read the samples: tensors, texts or images. Free them also after a failure. */
FT_MUST_USE ft_status ft_eval_samples_read(ft_eval_samples *out, const ft_eval *eval,
                                           const ft_model *model, ft_error *err);
void ft_eval_samples_fini(ft_eval_samples *samples);

/* Evaluate all rows; `other` is the baseline or NULL. */
FT_MUST_USE ft_status ft_eval_tokens(ft_eval_result *out, const ft_eval *eval,
                                     const ft_model *model, const ft_model *other, ft_error *err);
FT_MUST_USE ft_status ft_eval_entities(ft_eval_result *out, const ft_eval *eval,
                                       const ft_model *model, ft_error *err);
FT_MUST_USE ft_status ft_eval_answers(ft_eval_result *out, const ft_eval *eval,
                                      const ft_model *model, ft_error *err);
FT_MUST_USE ft_status ft_eval_similarity(ft_eval_result *out, const ft_eval *eval,
                                         const ft_model *model, ft_error *err);
FT_MUST_USE ft_status ft_eval_generated(ft_eval_result *out, const ft_eval *eval,
                                        const ft_model *model, const ft_model *other,
                                        ft_error *err);
FT_MUST_USE ft_status ft_eval_classes(ft_eval_result *out, const ft_eval *eval,
                                      const ft_model *model, const ft_model *other, ft_error *err);

#endif
