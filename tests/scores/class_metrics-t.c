/*
 * class_metrics-t.c - the metrics of classifiers and regression models are those of scikit-learn
 * and scipy.
 *
 * tests/golden/metrics.json has random logits and labels, and what the published implementations
 * say of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/scores/class_metrics.h"
#include "tests/lib/golden.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Both sides compute in double from equal counts; the order of sums differs. */
static const double tolerance = 1e-12;

static const json_t *at(const json_t *list, size_t row, size_t col)
{
    return json_array_get(json_array_get(list, row), col);
}

/* The numbers of a matrix, which the caller frees. */
static float *floats(const json_t *list, size_t rows, size_t cols)
{
    float *out = ft_calloc(rows * cols, sizeof *out);
    for (size_t i = 0; out != NULL && i < rows * cols; i++)
        out[i] = (float) json_number_value(at(list, i / cols, i % cols));
    return out;
}

static int32_t *integers(const json_t *list, size_t rows)
{
    int32_t *out = ft_calloc(rows, sizeof *out);
    for (size_t i = 0; out != NULL && i < rows; i++)
        out[i] = (int32_t) json_integer_value(json_array_get(list, i));
    return out;
}

/* Compare every metric with the golden value of its name; there are no others. */
static void compare(const ft_metric_accumulator *metrics, const json_t *test, const char *what,
                    size_t number_of)
{
    ft_metric metric[FT_MAX_METRICS];
    size_t count = ft_metric_accumulator_compute(metrics, metric), expected = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *) (uintptr_t) test, key, value)
    {
        expected += json_is_real(value);
    }
    for (size_t i = 0; i < count; i++)
        near(metric[i].value, json_number_value(json_object_get(test, metric[i].name)), tolerance,
             "%s of %s %zu is that of the published implementation", metric[i].name, what,
             number_of);
    is_int((long long) count, (long long) expected, "%s %zu have these metrics alone", what,
           number_of);
}

static void test_rows(const json_t *test, const ft_config *config, const char *what,
                      size_t number_of)
{
    const json_t *logits = json_object_get(test, "logits"),
                 *labels = json_object_get(test, "labels");
    size_t rows = json_array_size(logits), cols = (size_t) config->labels;
    bool is_single = config->problem_type == FT_PROBLEM_SINGLE;
    float *found = floats(logits, rows, cols);
    ft_dataset data = { .rows = rows,
                        .labels = is_single ? integers(labels, rows) : NULL,
                        .float_labels = is_single ? NULL : floats(labels, rows, cols) };
    ft_metric_accumulator metrics;
    ft_error err;
    if (found == NULL || !ft_dataset_has_labels(&data) ||
        ft_metric_accumulator_init(&metrics, config, rows, &err) != FT_OK)
        bail_out("no memory");
    for (size_t row = 0; row < rows; row++)
        ft_metric_accumulator_add_row(&metrics, found + row * cols, &data, row);
    if (ft_metric_accumulator_finish(&metrics, &err) != FT_OK)
        bail_out("%s", err.text);
    compare(&metrics, test, what, number_of);
    ft_metric_accumulator_fini(&metrics);
    ft_dataset_fini(&data);
    free(found);
}

static void test_all(const json_t *golden, const char *key, ft_problem problem, const char *what)
{
    const json_t *list = json_object_get(golden, key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *test = json_array_get(list, i);
        const json_t *row = json_array_get(json_object_get(test, "logits"), 0);
        const ft_config config = { .labels = (int32_t) json_array_size(row),
                                   .problem_type = problem,
                                   .kind = FT_KIND_VISION }; /* top-5 accuracy */
        test_rows(test, &config, what, i + 1);
    }
}

/* What the published implementations do not define, or warn about. */
static void test_edges(void)
{
    const ft_config regression = { .labels = 1, .problem_type = FT_PROBLEM_REGRESSION };
    const ft_config texts = { .labels = 9 };
    const float equal[2] = { 1.0f, 1.0f }, rising[2] = { 1.0f, 2.0f };
    ft_metric_accumulator metrics;
    ft_metric metric[FT_MAX_METRICS];
    ft_error err;
    if (ft_metric_accumulator_init(&metrics, &regression, 2, &err) != FT_OK)
        bail_out("no memory");
    is_int((long long) ft_metric_accumulator_compute(&metrics, metric), 0,
           "without rows there is no metric");
    for (size_t i = 0; i < 2; i++)
        ft_metric_accumulator_add_targets(&metrics, &equal[i], &rising[i]);
    ok(ft_metric_accumulator_finish(&metrics, &err) == FT_OK &&
           ft_metric_accumulator_compute(&metrics, metric) == 1 &&
           strcmp(metric[0].name, "mse") == 0,
       "equal predictions have a squared error and no correlation");
    ft_metric_accumulator_fini(&metrics);
    if (ft_metric_accumulator_init(&metrics, &texts, 1, &err) != FT_OK)
        bail_out("no memory");
    ok(!metrics.has_top5, "texts have no top-5 accuracy");
    ft_metric_accumulator_fini(&metrics);
}

int main(void)
{
    json_t *golden = golden_json("metrics.json");
    test_all(golden, "classes", FT_PROBLEM_SINGLE, "classes");
    test_all(golden, "label_sets", FT_PROBLEM_MULTI, "label sets");
    test_all(golden, "regressions", FT_PROBLEM_REGRESSION, "regressions");
    test_edges();
    json_decref(golden);
    return done_testing();
}
