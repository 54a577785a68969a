/*
 * ft-run.c - run an artifact on token ids or on text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/dataset.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/products.h"
#include "runtime/safetensors.h"
#include "runtime/tools/options.h"
#include "runtime/tools/results.h"
#include "runtime/tools/texts.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { KEEP = FT_LONG_ONLY, TEXT, TRUNCATE, DEVICE, VERIFY, FAKE, NO_FUSE, JSON, OUTPUTS, TOKENS };

static const ft_option options[] = {
    { 'i', "input", "FILE", "the artifact" },
    { 'd', "data", "FILE",
      "safetensors with input_ids [N, S], and optionally\n"
      "attention_mask, token_type_ids, labels [N]" },
    { TEXT, "text", "FILE", "one text a line; - is standard input" },
    { TRUNCATE, "truncate", NULL, "cut texts that are longer than the model's positions" },
    { 'o', "output", "FILE", "write all outputs to this safetensors file" },
    { 'f', "force", NULL, "replace the output file" },
    { OUTPUTS, "outputs", "NAMES", "gather only these outputs, separated by commas" },
    { KEEP, "keep", "NAME", "gather this value of the plan too; may be repeated" },
    { JSON, "json", NULL, "print one JSON object" },
    { 't', "threads", "N", "threads; default all processors" },
    { TOKENS, "max-tokens", "N", "tokens of one run; default 4096" },
    { DEVICE, "device", "NAME", "cpu (default) or cuda[:N]" },
    { VERIFY, "verify", "LEVEL", "structure (default), crc or sha256" },
    { FAKE, "fake", NULL, "hold the codes of an int8 artifact in float" },
    { NO_FUSE, "no-fuse", NULL, "run every operation of the graph alone" },
    { 'v', "verbose", NULL, "print the plan to standard error" },
    { 0, NULL, NULL, NULL },
};

static const ft_tool tool = {
    .name = "ft-run",
    .usage = "-i FILE -d FILE [-o FILE] [OPTION]...\n"
             "-i FILE --text FILE [OPTION]...\n"
             "-i FILE [OPTION]... TEXT...",
    .about = "Run an artifact: classify or embed sequences of token ids, or texts.",
    .option = options,
};

typedef struct request {
    const char *input, *data, *text, *output, *outputs;
    const char **keep; /* NULL-terminated; room for as many as there are arguments */
    size_t nkeep;
    char *const *operand;
    size_t noperand;
    bool force, json, truncate, verbose;
    ft_model_options model;
    ft_session_options session;
} request;

/* ---- Command line ------------------------------------------------------------------------- */

static int positive(const char *option, const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < 1 || number > 1 << 24)
        ft_tool_usage(&tool, "--%s: \"%s\" is not a positive number", option, text);
    return (int) number;
}

static ft_verify verify_level(const char *text)
{
    static const char *const levels[] = { "structure", "crc", "sha256" };
    for (size_t i = 0; i < FT_COUNT(levels); i++)
        if (strcmp(levels[i], text) == 0)
            return (ft_verify) i;
    ft_tool_usage(&tool, "--verify: \"%s\" is neither structure, crc nor sha256", text);
}

static void take_option(request *r, int option, const char *value)
{
    switch (option) {
    case 'i':
        r->input = value;
        break;
    case 'd':
        r->data = value;
        break;
    case 'o':
        r->output = value;
        break;
    case 'f':
        r->force = true;
        break;
    case 't':
        r->session.threads = positive("threads", value);
        break;
    case TOKENS:
        r->session.max_tokens = positive("max-tokens", value);
        break;
    case TEXT:
        r->text = value;
        break;
    case TRUNCATE:
        r->truncate = true;
        break;
    case OUTPUTS:
        r->outputs = value;
        break;
    case KEEP:
        r->keep[r->nkeep++] = value;
        break;
    case JSON:
        r->json = true;
        break;
    case DEVICE:
        r->model.device = value;
        break;
    case VERIFY:
        r->model.verify = verify_level(value);
        break;
    case FAKE:
        r->model.fake = true;
        break;
    case NO_FUSE:
        r->model.no_fuse = true;
        break;
    case 'v':
        r->verbose = true;
        break;
    }
}

static void parse(request *r, int argc, char **argv)
{
    const char *value;
    for (int option; (option = ft_options_next(&tool, argc, argv, &value)) != -1;)
        take_option(r, option, value);
    r->operand = argv + optind;
    r->noperand = (size_t) (argc - optind);
    if (r->input == NULL)
        ft_tool_usage(&tool, "no artifact given: use -i FILE");
    if ((r->data != NULL) + (r->text != NULL) + (r->noperand > 0) != 1)
        ft_tool_usage(&tool, "give either -d FILE, --text FILE or texts");
    r->session.keep = r->keep;
}

/* ---- Running ------------------------------------------------------------------------------ */

typedef struct job {
    request *request;
    ft_output *output;
    ft_model *model;
    ft_session *session;
    ft_texts texts;
    ft_dataset dataset;
    char *names;         /* a copy of --outputs, cut at its commas */
    const char **wanted; /* distinct names */
    size_t nwanted;
    ft_results results;
    double seconds;
} job;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static ft_status read_texts(job *j, ft_error *err)
{
    const request *r = j->request;
    ft_tokenizer *tokenizer;
    if (r->text != NULL)
        FT_TRY(ft_texts_read(&j->texts, r->text, err));
    else
        FT_TRY(ft_texts_copy(&j->texts, r->operand, r->noperand, err));
    FT_TRY(ft_tokenizer_open_model(&tokenizer, j->model, err));
    ft_status status =
        ft_dataset_encode(&j->dataset, tokenizer, j->model, (const char *const *) j->texts.line,
                          j->texts.count, r->truncate, err);
    ft_tokenizer_close(tokenizer);
    return status;
}

static ft_status read_inputs(job *j, ft_error *err)
{
    if (j->request->data != NULL)
        return ft_dataset_read(&j->dataset, j->request->data, j->model, err);
    return read_texts(j, err);
}

/* A run must be able to take the longest sequence. */
static void fit_session(job *j)
{
    int64_t *tokens = &j->request->session.max_tokens;
    int64_t total = (int64_t) ft_dataset_tokens(&j->dataset);
    if (*tokens == 0)
        *tokens = total < 4096 ? total : 4096;
    if (*tokens < (int64_t) j->dataset.cols)
        *tokens = (int64_t) j->dataset.cols;
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
    const char *listed = j->request->outputs;
    size_t room = listed != NULL ? strlen(listed) + 1 : (size_t) plan->noutput;
    j->names = ft_strdup(listed != NULL ? listed : "");
    j->wanted = ft_array(room + j->request->nkeep, sizeof *j->wanted);
    if (j->names == NULL || j->wanted == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the names of outputs");
    char *rest = listed != NULL ? j->names : NULL;
    for (char *name; (name = strsep(&rest, ",")) != NULL;)
        want(j, name);
    for (int i = 0; listed == NULL && i < plan->noutput; i++)
        want(j, plan->output[i].name);
    for (size_t i = 0; i < j->request->nkeep; i++)
        want(j, j->request->keep[i]);
    return FT_OK;
}

/* The plan, and how its int8 products are computed in runs of up to the size of this session's. */
static ft_status print_plan(const job *j, ft_error *err)
{
    ft_batch runs[FT_USUAL_RUNS];
    if (!j->request->verbose)
        return FT_OK;
    FT_TRY(ft_model_write_plan(j->model, stderr, err));
    return ft_products_write(j->session, runs, ft_products_usual(j->session, runs), stderr, err);
}

static ft_status run_batches(job *j, ft_error *err)
{
    size_t tokens = (size_t) j->request->session.max_tokens;
    double before = now();
    for (size_t first = 0, count; first < j->dataset.rows; first += count) {
        count = ft_dataset_batch(&j->dataset, first, tokens, 512);
        FT_TRY(ft_dataset_bind(&j->dataset, first, count, j->session, err));
        FT_TRY(ft_session_run(j->session, err));
        if (first == 0)
            FT_TRY(
                ft_results_init(&j->results, j->session, &j->dataset, j->wanted, j->nwanted, err));
        FT_TRY(ft_results_append(&j->results, j->session, err));
    }
    j->seconds = now() - before;
    return FT_OK;
}

/* The output comes first: where it cannot be written, no work is started. */
static ft_status open_output(job *j, ft_error *err)
{
    const request *r = j->request;
    const char *input[] = { r->input, r->data, r->text };
    if (r->output == NULL)
        return FT_OK;
    for (size_t i = 0; i < FT_COUNT(input); i++)
        if (input[i] != NULL)
            FT_TRY(ft_output_spare_input(r->output, input[i], err));
    return ft_output_open(&j->output, r->output, r->force, err);
}

static ft_status run(job *j, ft_error *err)
{
    FT_TRY(open_output(j, err));
    FT_TRY(ft_model_open(&j->model, j->request->input, &j->request->model, err));
    FT_TRY(read_inputs(j, err));
    fit_session(j);
    FT_TRY(choose_outputs(j, err));
    FT_TRY(ft_session_open(&j->session, j->model, &j->request->session, err));
    FT_TRY(print_plan(j, err));
    FT_TRY(run_batches(j, err));
    if (j->output == NULL)
        return FT_OK;
    return ft_safetensors_write_to(j->output, j->results.tensor, j->results.count, err);
}

static void job_fini(job *j)
{
    ft_results_fini(&j->results);
    ft_session_close(j->session);
    ft_dataset_fini(&j->dataset);
    ft_texts_fini(&j->texts);
    ft_model_close(j->model);
    ft_output_close(j->output);
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
        if (j->texts.count > 0)
            printf("  %s", j->texts.line[row]);
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

/* What a person wants to see: results of texts, a summary of data. */
static void print_text(const job *j)
{
    const ft_tensor *logits = ft_results_find(&j->results, "logits");
    const ft_tensor *embedding = ft_results_find(&j->results, "embedding");
    double right = accuracy(j, logits);
    if (j->texts.count > 0 && logits != NULL)
        print_predictions(j, logits);
    else if (j->texts.count > 0 && embedding != NULL && j->request->output == NULL)
        print_embeddings(embedding);
    if (j->request->data == NULL)
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
    const ft_tensor *logits = ft_results_find(&j->results, "logits");
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
    double right = accuracy(j, ft_results_find(&j->results, "logits"));
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

int main(int argc, char **argv)
{
    request r = { .keep = ft_array((size_t) argc, sizeof *r.keep) };
    if (r.keep == NULL)
        return ft_tool_fail(&tool, "no memory");
    parse(&r, argc, argv);
    job j = { .request = &r };
    ft_error err;
    int status = run(&j, &err) == FT_OK ? 0 : ft_tool_fail(&tool, err.text);
    if (status == 0 && r.json)
        print_json(&j);
    else if (status == 0)
        print_text(&j);
    job_fini(&j);
    free(r.keep);
    return ft_tool_end(&tool, status);
}
