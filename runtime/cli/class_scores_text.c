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
        ft_tool_print(label, width);
    else
        printf("%-*zu", width, index);
}

/* Width of the label column: the longest label, not counting very long ones, which overflow. */
static int label_width(const ft_model *model)
{
    enum { LEAST = 12, MOST = 40 };
    size_t widest = LEAST;
    for (int i = 0; i < model->config.labels; i++) {
        const char *label = ft_model_label(model, (int32_t) i);
        size_t length = label != NULL ? strlen(label) : 0;
        widest = length > widest && length <= MOST ? length : widest;
    }
    return (int) widest;
}

/* A label and its score, in columns. */
static void print_one(const ft_model *model, const float *logits, size_t index)
{
    const ft_config *config = &model->config;
    print_label(model, index, label_width(model));
    if (config->problem == FT_PROBLEM_REGRESSION)
        printf("  %.6g", (double) logits[index]);
    else
        printf("  %6.4f",
               ft_class_probability(config->problem, logits, (size_t) config->labels, index));
}

/* Labels and their scores, as a list. */
static void print_several(const ft_model *model, const float *logits)
{
    const ft_config *config = &model->config;
    size_t told = 0;
    for (size_t i = 0; i < (size_t) config->labels; i++) {
        bool quantity = config->problem == FT_PROBLEM_REGRESSION;
        if (!quantity && !ft_class_holds(logits[i]))
            continue;
        fputs(told++ > 0 ? ", " : "", stdout);
        print_label(model, i, 0);
        printf(quantity ? " %.6g" : " %.4f", quantity ? (double) logits[i] : ft_sigmoid(logits[i]));
    }
    if (told == 0)
        fputs("none", stdout);
}

void ft_print_classes(const ft_model *model, const float *logits, const char *title)
{
    size_t labels = (size_t) model->config.labels;
    if (model->config.problem == FT_PROBLEM_SINGLE || labels == 1)
        print_one(model, logits, ft_largest(logits, labels));
    else
        print_several(model, logits);
    printf("  %s\n", title);
}

void ft_print_metrics(const ft_metric *metric, size_t count, const char *suffix)
{
    for (size_t i = 0; i < count; i++) {
        printf("%s%s ", metric[i].name, suffix);
        printf(metric[i].part ? "%.4f\n" : "%.6g\n", metric[i].value);
    }
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void likeliest_to_json(ft_json_stream *json, const ft_model *model, const float *logits)
{
    size_t labels = (size_t) model->config.labels, best = ft_largest(logits, labels);
    const char *label = ft_model_label(model, (int32_t) best);
    ft_json_whole(json, "index", (int64_t) best);
    if (label != NULL)
        ft_json_word(json, "label", label);
    ft_json_real(json, "probability",
                 ft_class_probability(model->config.problem, logits, labels, best));
}

void ft_classes_to_json(ft_json_stream *json, const ft_model *model, const float *logits)
{
    size_t labels = (size_t) model->config.labels;
    if (model->config.problem != FT_PROBLEM_REGRESSION)
        likeliest_to_json(json, model, logits);
    if (model->config.problem == FT_PROBLEM_MULTI) {
        ft_json_open(json, "probabilities", '[');
        for (size_t i = 0; i < labels; i++)
            ft_json_real(json, NULL, ft_sigmoid(logits[i]));
        ft_json_close(json, '[');
    }
    ft_json_reals(json, "logits", logits, labels);
}

void ft_metrics_to_json(ft_json_stream *json, const ft_metric *metric, size_t count,
                        const char *suffix)
{
    for (size_t i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s%s", metric[i].name, suffix);
        ft_json_real(json, key, metric[i].value);
    }
}
