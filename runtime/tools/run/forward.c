/*
 * forward.c - single forward passes: collect outputs, print predictions and embeddings.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/dataset.h"
#include "runtime/base/clock.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/container/safetensors.h"
#include "runtime/cli/class_scores_text.h"
#include "runtime/tools/run/results.h"
#include "runtime/tools/run/run.h"
#include "runtime/tools/run/images.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Running ------------------------------------------------------------------------------ */

typedef struct job {
    const ft_run *run;
    const ft_model *model;
    ft_session_options options; /* of the session */
    ft_session *session;
    ft_examples texts;
    const char **titles;          /* of the texts; owned */
    const char *const *row_title; /* label of each row: a text or an image path; NULL: -d */
    ft_dataset dataset;
    char *names;               /* a copy of --outputs, split at commas */
    const char **output_names; /* distinct names of outputs */
    size_t num_outputs;
    ft_results results;
    ft_metric_accumulator metrics; /* metrics, if the rows have labels */
    ft_json_stream json;           /* open after the first batch */
    double seconds;
    ft_progress_line line;
} job;

static ft_status list_titles(job *j, ft_error *err)
{
    j->titles = ft_calloc(j->texts.count, sizeof *j->titles);
    if (j->titles == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu texts", j->texts.count);
    for (size_t i = 0; i < j->texts.count; i++)
        j->titles[i] = j->texts.example[i].text;
    j->row_title = j->titles;
    return FT_OK;
}

static ft_status read_texts(job *j, ft_error *err)
{
    const ft_run *r = j->run;
    ft_tokenizer *tokenizer;
    if (ft_config_is_vision(&j->model->config))
        return ft_fail(err, FT_EUNSUPPORTED, "%s: is a vision model: use --image", j->model->path);
    FT_TRY(ft_run_texts(&j->texts, r, err));
    FT_TRY(list_titles(j, err));
    FT_TRY(ft_tokenizer_open_model(&tokenizer, j->model, err));
    ft_status status = ft_dataset_encode(&j->dataset, tokenizer, j->model, j->row_title,
                                         j->texts.count, r->truncate, err);
    ft_tokenizer_close(tokenizer);
    return status;
}

static ft_status read_inputs(job *j, ft_error *err)
{
    if (j->run->data != NULL)
        return ft_dataset_read(&j->dataset, j->run->data, j->model, err);
    if (j->run->num_images == 0)
        return read_texts(j, err);
    j->row_title = j->run->image;
    return ft_images_read(&j->dataset, j->model, j->run->image, j->run->num_images, err);
}

/* A batch must hold the longest sequence, and the KV cache a full batch. */
static void set_session_limits(job *j)
{
    ft_session_options *o = &j->options;
    int64_t total = (int64_t) ft_dataset_tokens(&j->dataset),
            cols = (int64_t) ft_dataset_max_length(&j->dataset);
    if (o->max_tokens == 0)
        o->max_tokens = total < 4096 ? total : 4096;
    if (o->max_tokens < cols)
        o->max_tokens = cols;
    o->max_sequences = (int64_t) ft_min_size(j->dataset.rows, 512);
    if (!j->model->has_cache)
        return;
    if (o->context == 0)
        o->context = (int64_t) ft_dataset_max_context(&j->dataset);
    o->cache_tokens = o->source_tokens =
        o->max_tokens + o->max_sequences * FT_PAGE_TOKENS; /* one partial page per sequence */
}

/* Collect each value once, even if it is named several times. */
static void add_output(job *j, const char *name)
{
    for (size_t i = 0; i < j->num_outputs; i++)
        if (strcmp(j->output_names[i], name) == 0)
            return;
    j->output_names[j->num_outputs++] = name;
}

/* The outputs collected by default. */
static bool is_default_output(const char *name, bool writes)
{
    return writes || strcmp(name, "logits") == 0 || strcmp(name, "embedding") == 0;
}

/* The outputs in --outputs, or the defaults; and the kept values. */
static ft_status choose_outputs(job *j, bool writes, ft_error *err)
{
    const ft_plan *plan = &j->model->plan;
    const char *listed = j->run->outputs;
    size_t capacity = listed != NULL ? strlen(listed) + 1 : (size_t) plan->noutput;
    j->names = ft_strdup(listed != NULL ? listed : "");
    j->output_names = ft_calloc(capacity + j->run->num_keep, sizeof *j->output_names);
    if (j->names == NULL || j->output_names == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the names of outputs");
    char *rest = listed != NULL ? j->names : NULL;
    for (char *name; (name = strsep(&rest, ",")) != NULL;)
        add_output(j, name);
    for (int i = 0; listed == NULL && i < plan->noutput; i++)
        if (is_default_output(plan->output[i].name, writes))
            add_output(j, plan->output[i].name);
    for (size_t i = 0; i < j->run->num_keep; i++)
        add_output(j, j->run->keep[i]);
    return FT_OK;
}

static void job_fini(job *j)
{
    ft_results_fini(&j->results);
    ft_metric_accumulator_fini(&j->metrics);
    ft_session_close(j->session);
    ft_dataset_fini(&j->dataset);
    ft_examples_fini(&j->texts);
    free(j->titles);
    free(j->names);
    free(j->output_names);
}

/* ---- Output ------------------------------------------------------------------------------- */

/* Logits of a classifier; NULL for decoders, whose logits are over the vocabulary. */
static const ft_tensor *class_logits(const job *j)
{
    return j->model->has_cache ? NULL : ft_results_find(&j->results, "logits");
}

static const float *row_at(const ft_tensor *tensor, size_t row)
{
    return (const float *) tensor->data + row * (size_t) tensor->dim[1];
}

static void print_embedding(const float *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%.7g%c", (double) x[i], i + 1 < count ? ' ' : '\n');
}

/* Text output: one line per text or image; for -d only a summary. */
static void print_rows(const job *j, size_t first, size_t count)
{
    const ft_tensor *logits = class_logits(j);
    const ft_tensor *embedding = ft_results_find(&j->results, "embedding");
    bool embeds = logits == NULL && embedding != NULL && j->run->output == NULL;
    for (size_t i = 0; j->row_title != NULL && i < count; i++) {
        if (logits != NULL)
            ft_print_predictions(j->model, row_at(logits, i), j->row_title[first + i]);
        else if (embeds)
            print_embedding(row_at(embedding, i), (size_t) embedding->dim[1]);
    }
}

/* Open the JSON object before the first row. */
static void begin_json(job *j)
{
    ft_json_stream *json = &j->json;
    *json = (ft_json_stream){ .file = stdout, .digits = 9 };
    ft_json_stream_begin(json, NULL, '{');
    ft_json_stream_int(json, "sequences", (int64_t) j->dataset.rows);
    ft_json_stream_int(json, "tokens", (int64_t) ft_dataset_tokens(&j->dataset));
    if (class_logits(j) != NULL)
        ft_json_stream_string(json, "problem_type", ft_problem_name(j->model->config.problem_type));
    ft_json_stream_begin(json, "results", '[');
}

static void write_rows_json(job *j, size_t count)
{
    const ft_tensor *logits = class_logits(j);
    const ft_tensor *embedding = ft_results_find(&j->results, "embedding");
    if (j->json.file == NULL)
        begin_json(j);
    for (size_t i = 0; i < count; i++) {
        ft_json_stream_begin(&j->json, NULL, '{');
        if (logits != NULL)
            ft_predictions_to_json(&j->json, j->model, row_at(logits, i));
        if (embedding != NULL)
            ft_json_stream_floats(&j->json, "embedding", row_at(embedding, i),
                                  (size_t) embedding->dim[1]);
        ft_json_stream_end(&j->json, '{');
    }
}

/* Print the rows of the last batch. */
static void report_rows(job *j, size_t first, size_t count)
{
    const ft_tensor *logits = class_logits(j);
    for (size_t i = 0; logits != NULL && ft_dataset_has_labels(&j->dataset) && i < count; i++)
        ft_metric_accumulator_add_row(&j->metrics, row_at(logits, i), &j->dataset, first + i);
    if (j->run->json)
        write_rows_json(j, count);
    else
        print_rows(j, first, count);
}

/* Print the summary after the last row. */
static void report_summary(job *j)
{
    ft_metric metric[FT_MAX_METRICS];
    size_t metrics = ft_metric_accumulator_compute(&j->metrics, metric);
    if (j->run->json) {
        ft_json_stream_end(&j->json, '[');
        ft_json_stream_double(&j->json, "seconds", j->seconds);
        ft_metrics_to_json(&j->json, metric, metrics, "");
        ft_json_stream_end(&j->json, '{');
        return;
    }
    if (j->run->data == NULL && !j->model->has_cache)
        return;
    printf("%zu sequences, %zu tokens, %.3f s\n", j->dataset.rows, ft_dataset_tokens(&j->dataset),
           j->seconds);
    ft_print_metrics(metric, metrics, "");
}

/* ---- All ---------------------------------------------------------------------------------- */

static ft_status run_batches(job *j, ft_atomic_file *output, ft_error *err)
{
    size_t tokens = (size_t) j->options.max_tokens;
    double before = ft_monotonic_seconds();
    ft_run_begin_progress(&j->line, j->run, "sequences", j->run->json);
    for (size_t first = 0, count; first < j->dataset.rows; first += count) {
        count =
            ft_dataset_batch_rows(&j->dataset, first, tokens, (size_t) j->options.max_sequences);
        FT_TRY(ft_dataset_set_inputs(&j->dataset, first, count, j->session, err));
        FT_TRY(ft_session_run(j->session, err));
        if (first == 0)
            FT_TRY(ft_results_init(&j->results, j->session, &j->dataset, j->output_names,
                                   j->num_outputs, output, err));
        FT_TRY(ft_results_collect(&j->results, j->session, first, err));
        report_rows(j, first, count);
        ft_progress_update(&j->line, first + count, j->dataset.rows);
    }
    j->seconds = ft_monotonic_seconds() - before;
    return ft_results_end(&j->results, err);
}

static ft_status work(job *j, ft_atomic_file *output, ft_error *err)
{
    FT_TRY(read_inputs(j, err));
    set_session_limits(j);
    FT_TRY(choose_outputs(j, output != NULL, err));
    FT_TRY(ft_metric_accumulator_init(&j->metrics, &j->model->config, err));
    FT_TRY(ft_session_open(&j->session, j->model, &j->options, err));
    FT_TRY(ft_run_explain(j->run, j->session, err));
    ft_status status = run_batches(j, output, err);
    ft_progress_end(&j->line);
    FT_TRY(status);
    report_summary(j);
    return FT_OK;
}

ft_status ft_run_forward(const ft_run *run, const ft_model *model, ft_atomic_file *output,
                         ft_error *err)
{
    job j = { .run = run, .model = model, .options = run->session };
    ft_status status = work(&j, output, err);
    job_fini(&j);
    return status;
}
