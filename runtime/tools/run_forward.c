/*
 * run_forward.c - run sequences once: gather outputs, tell classes and embeddings.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/dataset.h"
#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/safetensors.h"
#include "runtime/tools/classes_text.h"
#include "runtime/tools/results.h"
#include "runtime/tools/run.h"
#include "runtime/tools/run_images.h"
#include "runtime/tools/texts.h"

#include <jansson.h>
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
    const char *const *title; /* of each row: a text, or an image's path; NULL: of data */
    ft_dataset dataset;
    char *names;         /* a copy of --outputs, cut at its commas */
    const char **wanted; /* distinct names */
    size_t nwanted;
    ft_results results;
    double seconds;
} job;

static ft_status read_texts(job *j, ft_error *err)
{
    const ft_run *r = j->run;
    ft_tokenizer *tokenizer;
    if (ft_config_sees(&j->model->config))
        return ft_fail(err, FT_EUNSUPPORTED, "%s: reads images, not texts: use --image",
                       j->model->path);
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

/* A run must be able to take the longest sequence, and a cache all that are in a run. */
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
        o->max_tokens + o->max_sequences * FT_PAGE; /* one page begun for each */
}

/* Gathering a value once is enough, however often it is named. */
static void want(job *j, const char *name)
{
    for (size_t i = 0; i < j->nwanted; i++)
        if (strcmp(j->wanted[i], name) == 0)
            return;
    j->wanted[j->nwanted++] = name;
}

/* Everything the model promises, or what --outputs names; and the kept values. */
static ft_status choose_outputs(job *j, ft_error *err)
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
        want(j, plan->output[i].name);
    for (size_t i = 0; i < j->run->nkeep; i++)
        want(j, j->run->keep[i]);
    return FT_OK;
}

static ft_status run_batches(job *j, ft_error *err)
{
    size_t tokens = (size_t) j->options.max_tokens;
    double before = ft_seconds();
    for (size_t first = 0, count; first < j->dataset.rows; first += count) {
        count = ft_dataset_batch(&j->dataset, first, tokens, (size_t) j->options.max_sequences);
        FT_TRY(ft_dataset_bind(&j->dataset, first, count, j->session, err));
        FT_TRY(ft_session_run(j->session, err));
        if (first == 0)
            FT_TRY(
                ft_results_init(&j->results, j->session, &j->dataset, j->wanted, j->nwanted, err));
        FT_TRY(ft_results_append(&j->results, j->session, first, err));
    }
    j->seconds = ft_seconds() - before;
    return FT_OK;
}

static void job_fini(job *j)
{
    ft_results_fini(&j->results);
    ft_session_close(j->session);
    ft_dataset_fini(&j->dataset);
    ft_texts_fini(&j->texts);
    free(j->names);
    free(j->wanted);
}

/* ---- Reporting ---------------------------------------------------------------------------- */

/* Logits of classes; those of a decoder are of words. */
static const ft_tensor *class_logits(const job *j)
{
    return j->model->has_cache ? NULL : ft_results_find(&j->results, "logits");
}

static const float *row_at(const ft_tensor *tensor, size_t row)
{
    return (const float *) tensor->data + row * (size_t) tensor->dim[1];
}

/* What the labels of data say of the logits: that many figures. */
static ft_status measure(const job *j, const ft_tensor *logits, ft_metric metric[FT_METRICS],
                         size_t *metrics, ft_error *err)
{
    ft_tally tally;
    *metrics = 0;
    if (logits == NULL || !ft_dataset_has_labels(&j->dataset))
        return FT_OK;
    FT_TRY(ft_tally_init(&tally, &j->model->config, err));
    for (size_t row = 0; row < j->dataset.rows; row++)
        ft_tally_add(&tally, row_at(logits, row), &j->dataset, row);
    *metrics = ft_tally_metrics(&tally, metric);
    ft_tally_fini(&tally);
    return FT_OK;
}

static void print_embeddings(const ft_tensor *embedding)
{
    const float *x = embedding->data;
    for (int64_t row = 0; row < embedding->dim[0]; row++)
        for (int64_t col = 0; col < embedding->dim[1]; col++)
            printf("%.7g%c", (double) *x++, col + 1 < embedding->dim[1] ? ' ' : '\n');
}

/* What a person wants to see: results of texts and images, a summary of data. */
static ft_status print_text(const job *j, ft_error *err)
{
    const ft_tensor *logits = class_logits(j);
    const ft_tensor *embedding = ft_results_find(&j->results, "embedding");
    for (size_t row = 0; j->title != NULL && logits != NULL && row < j->dataset.rows; row++)
        ft_print_classes(j->model, row_at(logits, row), j->title[row]);
    if (j->title != NULL && logits == NULL && embedding != NULL && j->run->output == NULL)
        print_embeddings(embedding);
    if (j->run->data == NULL && !j->model->has_cache)
        return FT_OK;
    ft_metric metric[FT_METRICS];
    size_t metrics;
    FT_TRY(measure(j, logits, metric, &metrics, err));
    printf("%zu sequences, %zu tokens, %.3f s\n", j->dataset.rows, ft_dataset_tokens(&j->dataset),
           j->seconds);
    ft_print_metrics(metric, metrics, "");
    return FT_OK;
}

static json_t *json_of_row(const job *j, size_t row)
{
    const ft_tensor *logits = class_logits(j);
    const ft_tensor *embedding = ft_results_find(&j->results, "embedding");
    json_t *object = json_object();
    if (logits != NULL)
        ft_classes_to_json(object, j->model, row_at(logits, row));
    if (embedding != NULL)
        json_object_set_new(
            object, "embedding",
            ft_numbers_to_json(row_at(embedding, row), (size_t) embedding->dim[1]));
    return object;
}

static ft_status print_json(const job *j, ft_error *err)
{
    const ft_tensor *logits = class_logits(j);
    ft_metric metric[FT_METRICS];
    size_t metrics;
    FT_TRY(measure(j, logits, metric, &metrics, err));
    json_t *root = json_object(), *rows = json_array();
    json_object_set_new(root, "sequences", json_integer((json_int_t) j->dataset.rows));
    json_object_set_new(root, "tokens", json_integer((json_int_t) ft_dataset_tokens(&j->dataset)));
    json_object_set_new(root, "seconds", json_real(j->seconds));
    if (logits != NULL)
        json_object_set_new(root, "problem_type",
                            json_string(ft_problem_name(j->model->config.problem)));
    ft_metrics_to_json(root, metric, metrics, "");
    for (size_t row = 0; row < j->dataset.rows; row++)
        json_array_append_new(rows, json_of_row(j, row));
    json_object_set_new(root, "results", rows);
    json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(root);
    return FT_OK;
}

/* ------------------------------------------------------------------------------------------- */

static ft_status work(job *j, ft_output *output, ft_error *err)
{
    FT_TRY(read_inputs(j, err));
    fit_session(j);
    FT_TRY(choose_outputs(j, err));
    FT_TRY(ft_session_open(&j->session, j->model, &j->options, err));
    FT_TRY(ft_run_explain(j->run, j->session, err));
    FT_TRY(run_batches(j, err));
    if (output != NULL)
        FT_TRY(ft_safetensors_write_to(output, j->results.tensor, j->results.count, err));
    return j->run->json ? print_json(j, err) : print_text(j, err);
}

ft_status ft_run_forward(const ft_run *run, const ft_model *model, ft_output *output, ft_error *err)
{
    job j = { .run = run, .model = model, .options = run->session };
    ft_status status = work(&j, output, err);
    job_fini(&j);
    return status;
}
