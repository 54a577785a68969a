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
#include "runtime/tools/results.h"
#include "runtime/tools/run.h"
#include "runtime/tools/run_images.h"
#include "runtime/tools/texts.h"

#include <jansson.h>
#include <math.h>
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
        FT_TRY(ft_results_append(&j->results, j->session, err));
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

typedef struct prediction {
    int index;
    double probability;
} prediction;

static prediction predict(const ft_tensor *logits, size_t row)
{
    size_t labels = (size_t) logits->dim[1];
    const float *x = (const float *) logits->data + row * labels;
    size_t best = 0;
    double sum = 0.0;
    for (size_t i = 1; i < labels; i++)
        best = x[i] > x[best] ? i : best;
    for (size_t i = 0; i < labels; i++)
        sum += exp((double) x[i] - (double) x[best]);
    return (prediction){ (int) best, 1.0 / sum };
}

/* Logits of classes; those of a decoder are of words. */
static const ft_tensor *class_logits(const job *j)
{
    return j->model->has_cache ? NULL : ft_results_find(&j->results, "logits");
}

/* The fraction of rows whose prediction is their label, or NaN without labels. */
static double accuracy(const job *j, const ft_tensor *logits)
{
    size_t right = 0;
    if (logits == NULL || j->dataset.labels == NULL)
        return (double) NAN;
    for (size_t row = 0; row < j->dataset.rows; row++)
        right += predict(logits, row).index == j->dataset.labels[row];
    return (double) right / (double) j->dataset.rows;
}

static void print_predictions(const job *j, const ft_tensor *logits)
{
    for (size_t row = 0; row < j->dataset.rows; row++) {
        prediction p = predict(logits, row);
        const char *label = ft_model_label(j->model, p.index);
        if (label != NULL)
            ft_tool_print(label, 12);
        else
            printf("%-12d", p.index);
        printf("  %6.4f", p.probability);
        if (j->title != NULL)
            printf("  %s", j->title[row]);
        putchar('\n');
    }
}

static void print_embeddings(const ft_tensor *embedding)
{
    const float *x = embedding->data;
    for (int64_t row = 0; row < embedding->dim[0]; row++)
        for (int64_t col = 0; col < embedding->dim[1]; col++)
            printf("%.7g%c", (double) *x++, col + 1 < embedding->dim[1] ? ' ' : '\n');
}

/* What a person wants to see: results of texts and images, a summary of data. */
static void print_text(const job *j)
{
    const ft_tensor *logits = class_logits(j);
    const ft_tensor *embedding = ft_results_find(&j->results, "embedding");
    double right = accuracy(j, logits);
    if (j->title != NULL && logits != NULL)
        print_predictions(j, logits);
    else if (j->title != NULL && embedding != NULL && j->run->output == NULL)
        print_embeddings(embedding);
    if (j->run->data == NULL && !j->model->has_cache)
        return;
    printf("%zu sequences, %zu tokens, %.3f s\n", j->dataset.rows, ft_dataset_tokens(&j->dataset),
           j->seconds);
    if (!isnan(right))
        printf("accuracy %.4f\n", right);
}

static json_t *row_of(const ft_tensor *tensor, size_t row)
{
    json_t *array = json_array();
    const float *x = (const float *) tensor->data + row * (size_t) tensor->dim[1];
    for (int64_t col = 0; col < tensor->dim[1]; col++)
        json_array_append_new(array, json_real((double) x[col]));
    return array;
}

static json_t *json_of_row(const job *j, size_t row)
{
    const ft_tensor *logits = class_logits(j);
    const ft_tensor *embedding = ft_results_find(&j->results, "embedding");
    json_t *object = json_object();
    if (logits != NULL) {
        prediction p = predict(logits, row);
        const char *label = ft_model_label(j->model, p.index);
        json_object_set_new(object, "index", json_integer(p.index));
        if (label != NULL)
            json_object_set_new(object, "label", json_string(label));
        json_object_set_new(object, "probability", json_real(p.probability));
        json_object_set_new(object, "logits", row_of(logits, row));
    }
    if (embedding != NULL)
        json_object_set_new(object, "embedding", row_of(embedding, row));
    return object;
}

static void print_json(const job *j)
{
    json_t *root = json_object(), *rows = json_array();
    double right = accuracy(j, class_logits(j));
    json_object_set_new(root, "sequences", json_integer((json_int_t) j->dataset.rows));
    json_object_set_new(root, "tokens", json_integer((json_int_t) ft_dataset_tokens(&j->dataset)));
    json_object_set_new(root, "seconds", json_real(j->seconds));
    if (!isnan(right))
        json_object_set_new(root, "accuracy", json_real(right));
    for (size_t row = 0; row < j->dataset.rows; row++)
        json_array_append_new(rows, json_of_row(j, row));
    json_object_set_new(root, "results", rows);
    json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(root);
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
    if (j->run->json)
        print_json(j);
    else
        print_text(j);
    return FT_OK;
}

ft_status ft_run_forward(const ft_run *run, const ft_model *model, ft_output *output, ft_error *err)
{
    job j = { .run = run, .model = model, .options = run->session };
    ft_status status = work(&j, output, err);
    job_fini(&j);
    return status;
}
