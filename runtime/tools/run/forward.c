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
#include "runtime/tools/run/text_lines.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Running ------------------------------------------------------------------------------ */

typedef struct job {
    const ft_run *run;
    const ft_model *model;
    ft_session_options options; /* of the session */
    ft_session *session;
    ft_texts texts;
    const char *const *title; /* label of each row: a text or an image path; NULL: -d */
    ft_dataset dataset;
    char *names;         /* a copy of --outputs, split at commas */
    const char **wanted; /* distinct names of outputs */
    size_t nwanted;
    ft_results results;
    ft_tally tally;      /* metrics, if the rows have labels */
    ft_json_stream json; /* open after the first batch */
    double seconds;
    ft_progress_line line;
} job;

static ft_status read_texts(job *j, ft_error *err)
{
    const ft_run *r = j->run;
    ft_tokenizer *tokenizer;
    if (ft_config_sees(&j->model->config))
        return ft_fail(err, FT_EUNSUPPORTED, "%s: is a vision model: use --image", j->model->path);
    FT_TRY(ft_run_texts(&j->texts, r, err));
    j->title = (const char *const *) j->texts.line;
    FT_TRY(ft_tokenizer_open_model(&tokenizer, j->model, err));
    ft_status status =
        ft_dataset_encode(&j->dataset, tokenizer, j->model, (const char *const *) j->texts.line,
                          j->texts.count, r->truncate, err);
    ft_tokenizer_close(tokenizer);
    return status;
}

static ft_status read_inputs(job *j, ft_error *err)
{
    if (j->run->data != NULL)
        return ft_dataset_read(&j->dataset, j->run->data, j->model, err);
    if (j->run->nimage == 0)
        return read_texts(j, err);
    j->title = j->run->image;
    return ft_images_read(&j->dataset, j->model, j->run->image, j->run->nimage, err);
}

/* A batch must hold the longest sequence, and the KV cache a full batch. */
static void fit_session(job *j)
{
    ft_session_options *o = &j->options;
    int64_t total = (int64_t) ft_dataset_tokens(&j->dataset),
            cols = (int64_t) ft_dataset_longest(&j->dataset);
    if (o->max_tokens == 0)
        o->max_tokens = total < 4096 ? total : 4096;
    if (o->max_tokens < cols)
        o->max_tokens = cols;
    o->max_sequences = (int64_t) ft_min_size(j->dataset.rows, 512);
    if (!j->model->has_cache)
        return;
    if (o->context == 0)
        o->context = (int64_t) ft_dataset_context(&j->dataset);
    o->cache_tokens = o->source_tokens =
        o->max_tokens + o->max_sequences * FT_PAGE; /* one partial page per sequence */
}

/* Collect each value once, even if it is named several times. */
static void want(job *j, const char *name)
{
    for (size_t i = 0; i < j->nwanted; i++)
        if (strcmp(j->wanted[i], name) == 0)
            return;
    j->wanted[j->nwanted++] = name;
}

/* The outputs collected by default. */
static bool is_told(const char *name, bool writes)
{
    return writes || strcmp(name, "logits") == 0 || strcmp(name, "embedding") == 0;
}

/* The outputs in --outputs, or the defaults; and the kept values. */
static ft_status choose_outputs(job *j, bool writes, ft_error *err)
{
    const ft_plan *plan = &j->model->plan;
    const char *listed = j->run->outputs;
    size_t room = listed != NULL ? strlen(listed) + 1 : (size_t) plan->noutput;
    j->names = ft_strdup(listed != NULL ? listed : "");
    j->wanted = ft_array(room + j->run->nkeep, sizeof *j->wanted);
    if (j->names == NULL || j->wanted == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the names of outputs");
    char *rest = listed != NULL ? j->names : NULL;
    for (char *name; (name = strsep(&rest, ",")) != NULL;)
        want(j, name);
    for (int i = 0; listed == NULL && i < plan->noutput; i++)
        if (is_told(plan->output[i].name, writes))
            want(j, plan->output[i].name);
    for (size_t i = 0; i < j->run->nkeep; i++)
        want(j, j->run->keep[i]);
    return FT_OK;
}

static void job_fini(job *j)
{
    ft_results_fini(&j->results);
    ft_tally_fini(&j->tally);
    ft_session_close(j->session);
    ft_dataset_fini(&j->dataset);
    ft_texts_fini(&j->texts);
    free(j->names);
    free(j->wanted);
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
    for (size_t i = 0; j->title != NULL && i < count; i++) {
        if (logits != NULL)
            ft_print_classes(j->model, row_at(logits, i), j->title[first + i]);
        else if (embeds)
            print_embedding(row_at(embedding, i), (size_t) embedding->dim[1]);
    }
}

/* Open the JSON object before the first row. */
static void begin_json(job *j)
{
    ft_json_stream *json = &j->json;
    *json = (ft_json_stream){ .file = stdout, .digits = 9 };
    ft_json_open(json, NULL, '{');
    ft_json_whole(json, "sequences", (int64_t) j->dataset.rows);
    ft_json_whole(json, "tokens", (int64_t) ft_dataset_tokens(&j->dataset));
    if (class_logits(j) != NULL)
        ft_json_word(json, "problem_type", ft_problem_name(j->model->config.problem));
    ft_json_open(json, "results", '[');
}

static void put_rows(job *j, size_t count)
{
    const ft_tensor *logits = class_logits(j);
    const ft_tensor *embedding = ft_results_find(&j->results, "embedding");
    if (j->json.file == NULL)
        begin_json(j);
    for (size_t i = 0; i < count; i++) {
        ft_json_open(&j->json, NULL, '{');
        if (logits != NULL)
            ft_classes_to_json(&j->json, j->model, row_at(logits, i));
        if (embedding != NULL)
            ft_json_reals(&j->json, "embedding", row_at(embedding, i), (size_t) embedding->dim[1]);
        ft_json_close(&j->json, '{');
    }
}

/* Print the rows of the last batch. */
static void tell_rows(job *j, size_t first, size_t count)
{
    const ft_tensor *logits = class_logits(j);
    for (size_t i = 0; logits != NULL && ft_dataset_has_labels(&j->dataset) && i < count; i++)
        ft_tally_add(&j->tally, row_at(logits, i), &j->dataset, first + i);
    if (j->run->json)
        put_rows(j, count);
    else
        print_rows(j, first, count);
}

/* Print the summary after the last row. */
static void tell_summary(job *j)
{
    ft_metric metric[FT_METRICS];
    size_t metrics = ft_tally_metrics(&j->tally, metric);
    if (j->run->json) {
        ft_json_close(&j->json, '[');
        ft_json_real(&j->json, "seconds", j->seconds);
        ft_metrics_to_json(&j->json, metric, metrics, "");
        ft_json_close(&j->json, '{');
        return;
    }
    if (j->run->data == NULL && !j->model->has_cache)
        return;
    printf("%zu sequences, %zu tokens, %.3f s\n", j->dataset.rows, ft_dataset_tokens(&j->dataset),
           j->seconds);
    ft_print_metrics(metric, metrics, "");
}

/* ---- All ---------------------------------------------------------------------------------- */

static ft_status run_batches(job *j, ft_output *output, ft_error *err)
{
    size_t tokens = (size_t) j->options.max_tokens;
    double before = ft_seconds();
    ft_run_begin_progress(&j->line, j->run, "sequences", j->run->json);
    for (size_t first = 0, count; first < j->dataset.rows; first += count) {
        count = ft_dataset_batch(&j->dataset, first, tokens, (size_t) j->options.max_sequences);
        FT_TRY(ft_dataset_bind(&j->dataset, first, count, j->session, err));
        FT_TRY(ft_session_run(j->session, err));
        if (first == 0)
            FT_TRY(ft_results_init(&j->results, j->session, &j->dataset, j->wanted, j->nwanted,
                                   output, err));
        FT_TRY(ft_results_take(&j->results, j->session, first, err));
        tell_rows(j, first, count);
        ft_progress_step(&j->line, first + count, j->dataset.rows);
    }
    j->seconds = ft_seconds() - before;
    return ft_results_end(&j->results, err);
}

static ft_status work(job *j, ft_output *output, ft_error *err)
{
    FT_TRY(read_inputs(j, err));
    fit_session(j);
    FT_TRY(choose_outputs(j, output != NULL, err));
    FT_TRY(ft_tally_init(&j->tally, &j->model->config, err));
    FT_TRY(ft_session_open(&j->session, j->model, &j->options, err));
    FT_TRY(ft_run_explain(j->run, j->session, err));
    ft_status status = run_batches(j, output, err);
    ft_progress_end(&j->line);
    FT_TRY(status);
    tell_summary(j);
    return FT_OK;
}

ft_status ft_run_forward(const ft_run *run, const ft_model *model, ft_output *output, ft_error *err)
{
    job j = { .run = run, .model = model, .options = run->session };
    ft_status status = work(&j, output, err);
    job_fini(&j);
    return status;
}
