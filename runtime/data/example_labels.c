/*
 * example_labels.c - names and indices of labels, as the model's problem_type expects them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/example_labels.h"

#include "runtime/base/json_reader.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/model.h"

#include <math.h>
#include <string.h>

/* An example and where it is. */
typedef struct {
    const ft_examples *examples;
    size_t index;
    const ft_model *model;
    ft_error *err;
} source;

static const json_t *find_labels(const ft_example *example)
{
    static const char *const names[] = { "labels", "label", "score" };
    const json_t *found = NULL;
    for (size_t i = 0; found == NULL && i < FT_COUNT(names); i++)
        found = json_object_get(example->json, names[i]);
    return found;
}

/* A label by name or by index. */
static ft_status read_label(const source *from, const json_t *value, int32_t *label)
{
    char found[FT_JSON_SNIPPET_SIZE];
    const ft_config *config = &from->model->config;
    int64_t index = -1;
    if (json_is_string(value))
        index = ft_model_find_label(from->model, json_string_value(value), 0);
    else if (json_is_integer(value))
        index = json_integer_value(value);
    *label = (int32_t) index;
    if (index >= 0 && index < config->labels)
        return FT_OK;
    const char *first = ft_model_label(from->model, 0);
    return ft_examples_fail(from->examples, from->index, from->err,
                            "found the label %s, expected a name of the model's id2label (the "
                            "first is \"%s\") or an index below %d",
                            ft_json_snippet(found, value), first == NULL ? "" : first,
                            config->labels);
}

static ft_status fail_list(const source *from, const json_t *value, const char *expected)
{
    char found[FT_JSON_SNIPPET_SIZE];
    return ft_examples_fail(from->examples, from->index, from->err,
                            "found the labels %s, expected %s", ft_json_snippet(found, value),
                            expected);
}

/* Whether a list has a number for every label, 0 or 1 if it is of a multi-label model. */
static bool is_vector(const json_t *list, const ft_config *config)
{
    size_t i;
    json_t *value;
    if (ft_json_list_size(list) != (size_t) config->labels)
        return false;
    for (i = 0; i < (size_t) config->labels; i++) {
        value = ft_json_list_at(list, i);
        double number = json_number_value(value);
        bool is_binary = number == 0.0 || number == 1.0;
        if (!json_is_number(value) || (config->problem_type == FT_PROBLEM_MULTI && !is_binary))
            return false;
    }
    return true;
}

static void copy_vector(const json_t *list, size_t count, float *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (float) json_number_value(ft_json_list_at(list, i));
}

static ft_status read_numbers(const source *from, const json_t *value, float *out)
{
    const ft_config *config = &from->model->config;
    if (!is_vector(value, config))
        return fail_list(from, value, "one number per label");
    copy_vector(value, (size_t) config->labels, out);
    return FT_OK;
}

static ft_status read_label_set(const source *from, const json_t *value, float *out)
{
    const ft_config *config = &from->model->config;
    if (is_vector(value, config)) {
        copy_vector(value, (size_t) config->labels, out);
        return FT_OK;
    }
    for (size_t i = 0; i < ft_json_list_size(value); i++) {
        int32_t label;
        FT_TRY(read_label(from, ft_json_list_at(value, i), &label));
        out[label] = 1.0f;
    }
    return FT_OK;
}

static ft_status read_row(ft_dataset *out, const source *from, const json_t *value)
{
    const ft_config *config = &from->model->config;
    float *row = out->float_labels + from->index * out->float_label_cols;
    switch (config->problem_type) {
    case FT_PROBLEM_SINGLE:
        return read_label(from, value, &out->labels[from->index]);
    case FT_PROBLEM_MULTI:
        return read_label_set(from, value, row);
    case FT_PROBLEM_REGRESSION:
        break;
    }
    return read_numbers(from, value, row);
}

static ft_status allocate(ft_dataset *out, const ft_config *config, ft_error *err)
{
    bool is_single = config->problem_type == FT_PROBLEM_SINGLE;
    size_t cols = (size_t) config->labels;
    if (is_single)
        out->labels = ft_calloc(out->rows, sizeof *out->labels);
    else
        out->float_labels = ft_calloc(out->rows, cols * sizeof *out->float_labels);
    out->float_label_cols = is_single ? 0 : cols;
    if (out->labels != NULL || out->float_labels != NULL)
        return FT_OK;
    return ft_fail(err, FT_ENOMEM, "no memory for the labels of %zu texts", out->rows);
}

ft_status ft_dataset_label_examples(ft_dataset *out, const ft_examples *examples,
                                    const ft_model *model, ft_error *err)
{
    if (model->config.labels == 0 || find_labels(&examples->example[0]) == NULL)
        return FT_OK;
    FT_TRY(allocate(out, &model->config, err));
    for (size_t i = 0; i < examples->count; i++) {
        const source from = { examples, i, model, err };
        const json_t *value = find_labels(&examples->example[i]);
        if (value == NULL)
            return ft_examples_fail(examples, i, err,
                                    "found no label, expected one as in the lines before");
        FT_TRY(read_row(out, &from, value));
    }
    return FT_OK;
}
