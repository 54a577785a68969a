/*
 * class_scores_text.c - print the predictions and metrics of a classifier.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/class_scores_text.h"

#include "runtime/cli/options.h"

#include <string.h>

/* ---- Text ----------------------------------------------------------------------------------- */

/* The name of a label, or its index. */
static void print_label(const ft_model *model, size_t index, int width)
{
    const char *label = ft_model_label(model, (int32_t) index);
    if (label != NULL)
        ft_tool_print_escaped(label, width);
    else
        printf("%-*zu", width, index);
}

/* Width of the label column: the longest label, not counting very long ones, which overflow. */
static int label_width(const ft_model *model)
{
    enum { MIN_WIDTH = 12, MAX_WIDTH = 40 };
    size_t widest = MIN_WIDTH;
    for (int i = 0; i < model->config.labels; i++) {
        const char *label = ft_model_label(model, (int32_t) i);
        size_t length = label != NULL ? strlen(label) : 0;
        widest = length > widest && length <= MAX_WIDTH ? length : widest;
    }
    return (int) widest;
}

/* A label and its score, in columns. */
static void print_single(const ft_model *model, const float *logits, size_t index)
{
    const ft_config *config = &model->config;
    print_label(model, index, label_width(model));
    if (config->problem_type == FT_PROBLEM_REGRESSION)
        printf("  %.6g", (double) logits[index]);
    else
        printf("  %6.4f",
               ft_class_probability(config->problem_type, logits, (size_t) config->labels, index));
}

/* Labels and their scores, as a list. */
static void print_multi(const ft_model *model, const float *logits)
{
    const ft_config *config = &model->config;
    size_t n_printed = 0;
    for (size_t i = 0; i < (size_t) config->labels; i++) {
        bool is_regression = config->problem_type == FT_PROBLEM_REGRESSION;
        if (!is_regression && !ft_label_is_positive(logits[i]))
            continue;
        fputs(n_printed++ > 0 ? ", " : "", stdout);
        print_label(model, i, 0);
        printf(is_regression ? " %.6g" : " %.4f",
               is_regression ? (double) logits[i] : ft_sigmoid(logits[i]));
    }
    if (n_printed == 0)
        fputs("none", stdout);
}

void ft_print_predictions(const ft_model *model, const float *logits, const char *title)
{
    size_t labels = (size_t) model->config.labels;
    if (model->config.problem_type == FT_PROBLEM_SINGLE || labels == 1)
        print_single(model, logits, ft_argmax(logits, labels));
    else
        print_multi(model, logits);
    printf("  %s\n", title);
}

void ft_print_metrics(const ft_metric *metric, size_t count, const char *suffix)
{
    for (size_t i = 0; i < count; i++) {
        printf("%s%s ", metric[i].name, suffix);
        printf(metric[i].is_fraction ? "%.4f\n" : "%.6g\n", metric[i].value);
    }
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void most_likely_to_json(ft_json_stream *json, const ft_model *model, const float *logits)
{
    size_t labels = (size_t) model->config.labels, best = ft_argmax(logits, labels);
    const char *label = ft_model_label(model, (int32_t) best);
    ft_json_stream_int(json, "index", (int64_t) best);
    if (label != NULL)
        ft_json_stream_string(json, "label", label);
    ft_json_stream_double(json, "probability",
                          ft_class_probability(model->config.problem_type, logits, labels, best));
}

void ft_predictions_to_json(ft_json_stream *json, const ft_model *model, const float *logits)
{
    size_t labels = (size_t) model->config.labels;
    if (model->config.problem_type != FT_PROBLEM_REGRESSION)
        most_likely_to_json(json, model, logits);
    if (model->config.problem_type == FT_PROBLEM_MULTI) {
        ft_json_stream_begin(json, "probabilities", '[');
        for (size_t i = 0; i < labels; i++)
            ft_json_stream_double(json, NULL, ft_sigmoid(logits[i]));
        ft_json_stream_end(json, '[');
    }
    ft_json_stream_floats(json, "logits", logits, labels);
}

void ft_metrics_to_json(ft_json_stream *json, const ft_metric *metric, size_t count,
                        const char *suffix)
{
    for (size_t i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s%s", metric[i].name, suffix);
        ft_json_stream_double(json, key, metric[i].value);
    }
}
