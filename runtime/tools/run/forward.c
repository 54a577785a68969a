/*
 * forward.c - single forward passes: collect outputs, print predictions and embeddings.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/context_windows.h"
#include "runtime/data/dataset.h"
#include "runtime/data/image_files/image_dataset.h"
#include "runtime/base/clock.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/container/safetensors.h"
#include "runtime/cli/class_scores_text.h"
#include "runtime/tools/run/results.h"
#include "runtime/tools/run/run.h"

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
    ft_encoded_examples encoded; /* rows of the texts */
    ft_tokenizer *tokenizer;     /* of the texts */
    ft_embedding_prompts prompts; /* of a model that embeds texts */
    const ft_task *task;         /* what the rows are read as; NULL: classes or embeddings */
    ft_task_rows rows;
    char **titles;                /* [texts.count]: owned */
    const char *const *row_title; /* label of each row: a text or an image path; NULL: -d */
    ft_image_list images;
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

/* A text, or both texts of a pair with a tab between. */
static char *make_title(const ft_example *example)
{
    char *title;
    if (example->pair == NULL)
        return ft_strdup(example->text);
    return asprintf(&title, "%s\t%s", example->text, example->pair) < 0 ? NULL : title;
}

static ft_status list_titles(job *j, ft_error *err)
{
    j->titles = ft_calloc(j->texts.count, sizeof *j->titles);
    for (size_t i = 0; j->titles != NULL && i < j->texts.count; i++) {
        j->titles[i] = make_title(&j->texts.example[i]);
        if (j->titles[i] == NULL)
            return ft_fail(err, FT_ENOMEM, "no memory for %zu texts", j->texts.count);
    }
    j->row_title = (const char *const *) j->titles;
    return j->titles != NULL ? FT_OK
                             : ft_fail(err, FT_ENOMEM, "no memory for %zu texts", j->texts.count);
}

/* Questions need contexts. */
static ft_status check_pairs(const job *j, ft_error *err)
{
    for (size_t i = 0; i < j->texts.count; i++)
        if (j->model->config.head == FT_HEAD_SPAN && j->texts.example[i].pair == NULL)
            return ft_fail(
                err, FT_EARG,
                "%s: text %zu has no context: give pairs of question and context, parted "
                "by a tab (--pairs), or JSON Lines with question and context",
                j->model->path, i + 1);
    return FT_OK;
}

static ft_status encode_texts(job *j, ft_error *err)
{
    const char *prompt;
    FT_TRY(
        ft_embedding_prompts_open_model(&j->prompts, &prompt, j->model, j->run->prompt_name, err));
    const ft_example_encoding_options options = {
        .truncate = j->run->truncate,
        .max_length = j->run->max_length,
        .offsets = j->task != NULL,
        .prompt = prompt,
        .windows = j->task != NULL && j->task->windows,
        .stride = FT_CONTEXT_STRIDE,
    };
    FT_TRY(ft_tokenizer_open_model(&j->tokenizer, j->model, err));
    FT_TRY(ft_examples_encode(&j->encoded, &j->texts, j->tokenizer, j->model, &options, err));
    j->rows = (ft_task_rows){ .model = j->model,
                              .tokenizer = j->tokenizer,
                              .examples = &j->texts,
                              .encoded = &j->encoded,
                              .options = j->run->task };
    return ft_dataset_from_encodings(&j->dataset, &j->encoded, j->model, err);
}

static ft_status read_texts(job *j, ft_error *err)
{
    if (ft_config_is_vision(&j->model->config))
        return ft_fail(err, FT_EUNSUPPORTED, "%s: is a vision model: use --image", j->model->path);
    FT_TRY(ft_run_texts(&j->texts, j->run, err));
    FT_TRY(check_pairs(j, err));
    FT_TRY(list_titles(j, err));
    return encode_texts(j, err);
}

static ft_status list_images(job *j, ft_error *err)
{
    const char *output = j->run->output;
    FT_TRY(ft_image_list_read(&j->images, j->run->images.path, j->run->images.count, err));
    for (size_t i = 0; output != NULL && i < j->images.count; i++)
        FT_TRY(ft_path_check_not_input(output, j->images.path[i], err));
    j->row_title = (const char *const *) j->images.path;
    return ft_dataset_from_images(&j->dataset, &j->images, j->model, err);
}

static ft_status read_inputs(job *j, ft_error *err)
{
    if (j->run->data != NULL)
        return ft_dataset_read(&j->dataset, j->run->data, j->model, err);
    return j->run->images.count > 0 ? list_images(j, err) : read_texts(j, err);
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
static bool is_default_output(const job *j, const char *name, bool writes)
{
    for (size_t i = 0; j->task != NULL && j->task->output[i] != NULL; i++)
        if (strcmp(name, j->task->output[i]) == 0)
            return true;
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
        if (is_default_output(j, plan->output[i].name, writes))
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
    ft_image_list_fini(&j->images);
    for (size_t i = 0; j->titles != NULL && i < j->texts.count; i++)
        free(j->titles[i]);
    free(j->titles);
    ft_encoded_examples_fini(&j->encoded);
    ft_tokenizer_close(j->tokenizer);
    ft_embedding_prompts_fini(&j->prompts);
    ft_examples_fini(&j->texts);
    free(j->names);
    free(j->output_names);
}

/* ---- Output ------------------------------------------------------------------------------- */

/* Logits of a classifier; NULL for decoders, whose logits are over the vocabulary. */
static const ft_tensor *class_logits(const job *j)
{
    bool classifies = ft_head_is_classifier(j->model->config.head);
    return classifies ? ft_results_find(&j->results, "logits") : NULL;
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

/* The object of one result: an element of the list, or a line of its own with the number of its
 * input. */
static void begin_row_json(job *j, size_t index)
{
    if (j->run->jsonl)
        j->json = (ft_json_stream){ .file = stdout, .digits = 9, .compact = true };
    else if (j->json.file == NULL)
        begin_json(j);
    ft_json_stream_begin(&j->json, NULL, '{');
    if (j->run->jsonl)
        ft_json_stream_int(&j->json, "input", (int64_t) index);
}

static void write_rows_json(job *j, size_t first, size_t count)
{
    const ft_tensor *logits = class_logits(j);
    const ft_tensor *embedding = ft_results_find(&j->results, "embedding");
    for (size_t i = 0; i < count; i++) {
        begin_row_json(j, first + i);
        if (logits != NULL)
            ft_predictions_to_json(&j->json, j->model, row_at(logits, i));
        if (embedding != NULL)
            ft_json_stream_floats(&j->json, "embedding", row_at(embedding, i),
                                  (size_t) embedding->dim[1]);
        ft_json_stream_end(&j->json, '{');
    }
}

/* Whether a row is the last one of its example. */
static bool ends_example(const job *j, size_t row)
{
    const ft_encoded_examples *e = &j->encoded;
    return row + 1 == e->count || e->example[row + 1] != e->example[row];
}

/* Report a row of the last batch as the task of the head. */
static void report_task_row(job *j, const ft_tensor *const output[2], size_t first, size_t i)
{
    const float *logits[2] = { NULL, NULL };
    bool opens = (j->run->json || j->run->jsonl) && ends_example(j, first + i);
    for (int k = 0; k < 2 && output[k] != NULL; k++) {
        size_t each = ft_tensor_numel(output[k]) / (size_t) output[k]->dim[0];
        logits[k] = (const float *) output[k]->data + i * each;
    }
    if (opens)
        begin_row_json(j, j->encoded.example[first + i]);
    j->task->report(&j->rows, first + i, logits, opens ? &j->json : NULL);
    if (opens)
        ft_json_stream_end(&j->json, '{');
}

static void report_task(job *j, size_t first, size_t count)
{
    const char *second = j->task->output[1];
    const ft_tensor *output[2] = { ft_results_find(&j->results, j->task->output[0]),
                                   second == NULL ? NULL : ft_results_find(&j->results, second) };
    for (size_t i = 0; i < count; i++)
        report_task_row(j, output, first, i);
}

/* Print the rows of the last batch. */
static void report_rows(job *j, size_t first, size_t count)
{
    const ft_tensor *logits = class_logits(j);
    for (size_t i = 0; logits != NULL && ft_dataset_has_labels(&j->dataset) && i < count; i++)
        ft_metric_accumulator_add_row(&j->metrics, row_at(logits, i), &j->dataset, first + i);
    if (j->task != NULL)
        report_task(j, first, count);
    else if (j->run->json || j->run->jsonl)
        write_rows_json(j, first, count);
    else
        print_rows(j, first, count);
}

/* Print the summary after the last row. */
static void report_summary(job *j)
{
    ft_metric metric[FT_MAX_METRICS];
    size_t metrics = ft_metric_accumulator_compute(&j->metrics, metric);
    if (j->run->jsonl)
        return;
    if (j->run->json) {
        ft_json_stream_end(&j->json, '[');
        ft_json_stream_double(&j->json, "seconds", j->seconds);
        ft_metrics_to_json(&j->json, metric, metrics, "");
        ft_json_stream_end(&j->json, '{');
        return;
    }
    if (j->run->data == NULL && !ft_model_generates(j->model))
        return;
    printf("%zu sequences, %zu tokens, %.3f s\n", j->dataset.rows, ft_dataset_tokens(&j->dataset),
           j->seconds);
    ft_print_metrics(metric, metrics, "");
}

/* ---- All ---------------------------------------------------------------------------------- */

static ft_status run_batches(job *j, ft_atomic_file *output, ft_error *err)
{
    size_t tokens = (size_t) j->options.max_tokens;
    const ft_embedding_cut cut = { j->run->dim, j->model->config.normalize };
    double before = ft_monotonic_seconds();
    ft_run_begin_progress(&j->line, j->run, "sequences", j->run->json);
    for (size_t first = 0, count; first < j->dataset.rows; first += count) {
        count =
            ft_dataset_batch_rows(&j->dataset, first, tokens, (size_t) j->options.max_sequences);
        FT_TRY(ft_dataset_set_inputs(&j->dataset, first, count, j->session, err));
        FT_TRY(ft_session_run(j->session, err));
        if (first == 0)
            FT_TRY(ft_results_init(&j->results, j->session, &j->dataset, j->output_names,
                                   j->num_outputs, &cut, output, err));
        FT_TRY(ft_results_collect(&j->results, j->session, first, err));
        report_rows(j, first, count);
        ft_progress_update(&j->line, first + count, j->dataset.rows);
    }
    j->seconds = ft_monotonic_seconds() - before;
    return ft_results_end(&j->results, err);
}

static ft_status work(job *j, ft_atomic_file *output, ft_error *err)
{
    bool reads_texts = j->run->data == NULL && j->run->images.count == 0;
    bool reports = output == NULL && j->run->outputs == NULL && j->run->num_keep == 0;
    j->task = reads_texts && reports ? ft_task_of(j->model->config.head) : NULL;
    FT_TRY(read_inputs(j, err));
    set_session_limits(j);
    FT_TRY(choose_outputs(j, output != NULL, err));
    FT_TRY(ft_metric_accumulator_init(&j->metrics, &j->model->config, j->dataset.rows, err));
    FT_TRY(ft_session_open(&j->session, j->model, &j->options, err));
    FT_TRY(ft_run_explain(j->run, j->session, err));
    ft_status status = run_batches(j, output, err);
    ft_progress_end(&j->line);
    FT_TRY(status);
    FT_TRY(ft_metric_accumulator_finish(&j->metrics, err));
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
