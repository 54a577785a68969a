/*
 * ft-eval.c - evaluate a model: perplexity or accuracy, and divergence from a baseline.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/clock.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/session.h"
#include "runtime/cli/class_scores_text.h"
#include "runtime/tools/eval/eval.h"
#include "runtime/cli/options.h"

#include <math.h>
#include <unistd.h>

enum { AGAINST = FT_LONG_ONLY, JSON, DEVICE, VERIFY, CTX, CHUNK, KV };

static const ft_option options[] = {
    { 'i', "input", "FILE", "the artifact" },
    { 'd', "data", "FILE",
      "safetensors with input_ids [N, S], and optionally\n"
      "attention_mask or lengths [N]; for classifiers\n"
      "labels [N], for encoder-decoders labels [N, T]" },
    { AGAINST, "against", "FILE", "baseline artifact, usually the float one" },
    { JSON, "json", NULL, "print one JSON object" },
    { 't', "threads", "N", "threads; default all processors" },
    { DEVICE, "device", "NAME", "cpu (default) or cuda[:N]" },
    { VERIFY, "verify", "LEVEL", "structure (default), crc or sha256" },
    { CTX, "ctx", "N", "split rows into texts of N tokens" },
    { CHUNK, "chunk", "N", "tokens per forward pass; default 512" },
    { KV, "kv", "auto|f16|int8", "dtype of the KV cache" },
    { 0, NULL, NULL, NULL },
};

static const ft_tool tool = {
    .name = "ft-eval",
    .usage = "-i FILE -d FILE [--against FILE] [OPTION]...",
    .about = "Measure the perplexity of a decoder or encoder-decoder, or the accuracy of a\n"
             "classifier, and optionally the KL divergence from a baseline artifact.",
    .option = options,
};

/* ---- Command line ------------------------------------------------------------------------- */

static void take_option(ft_eval *e, int option, const char *value)
{
    switch (option) {
    case 'i':
        e->input = value;
        break;
    case 'd':
        e->data = value;
        break;
    case AGAINST:
        e->against = value;
        break;
    case JSON:
        e->json = true;
        break;
    case 't':
        e->threads = ft_tool_threads(&tool, option, value);
        break;
    case DEVICE:
        e->model.device = ft_tool_device(&tool, option, value);
        break;
    case VERIFY:
        e->model.verify = ft_tool_verify(&tool, option, value);
        break;
    case CTX:
        e->context = ft_tool_whole(&tool, option, value, 1);
        break;
    case CHUNK:
        e->chunk = ft_tool_whole(&tool, option, value, 1);
        break;
    case KV:
        e->model.kv = ft_tool_kv(&tool, option, value);
        break;
    }
}

static void parse(ft_eval *e, int argc, char **argv)
{
    const char *value;
    for (int option; (option = ft_options_next(&tool, argc, argv, &value)) != -1;)
        take_option(e, option, value);
    if (optind < argc)
        ft_tool_usage(&tool, "unexpected argument \"%s\"", argv[optind]);
    if (e->input == NULL)
        ft_tool_usage(&tool, "no artifact given: use -i FILE");
    if (e->data == NULL)
        ft_tool_usage(&tool, "no data given: use -d FILE");
}

/* ---- Printing ----------------------------------------------------------------------------- */

/* Regression models are compared with the baseline by the same metrics as with labels. */
static bool compares_numbers(const ft_judgement *j)
{
    return j->classifies && j->against.problem == FT_PROBLEM_REGRESSION;
}

/* Agreement on the top-1 class, or multi-label on the set of predicted labels. */
static const char *agreement_name(const ft_judgement *j)
{
    bool several = j->classifies && j->against.problem == FT_PROBLEM_MULTI;
    return several ? "agreement" : "top1_agreement";
}

static void print_text(ft_judgement *j)
{
    ft_metric metric[FT_METRICS];
    printf("%zu rows, %zu tokens, %zu predictions, %.3f s\n", j->rows, j->tokens, j->count,
           j->seconds);
    if (!j->classifies)
        printf("perplexity %.5f\n", ft_judgement_perplexity(j));
    if (j->known > 0)
        printf("accuracy %.4f\n", (double) j->right / (double) j->known);
    ft_print_metrics(metric, ft_tally_metrics(&j->tally, metric), "");
    ft_print_metrics(metric, ft_tally_metrics(&j->against, metric), "_against");
    if (!j->compares || compares_numbers(j))
        return;
    printf("kl_mean %.6g\n", ft_judgement_mean_kl(j));
    printf("kl_999 %.6g\n", ft_judgement_most_kl(j, 0.999));
    printf("%s %.4f\n", agreement_name(j), (double) j->agreed / (double) j->count);
}

/* Sum or mean per row; the mean of a row with one token, which has no prediction, is null. */
static void put_rows(ft_json_stream *json, const char *key, const ft_judgement *j, bool means)
{
    ft_json_open(json, key, '[');
    for (size_t row = 0; row < j->rows; row++)
        ft_json_real(json, NULL, means ? j->nll[row] / (double) j->predictions[row] : j->nll[row]);
    ft_json_close(json, '[');
}

static void put(ft_json_stream *json, const char *key, double value)
{
    if (isfinite(value))
        ft_json_real(json, key, value);
}

static void put_distance(ft_json_stream *json, ft_judgement *j)
{
    put(json, "kl_mean", ft_judgement_mean_kl(j));
    put(json, "kl_999", ft_judgement_most_kl(j, 0.999));
    put(json, agreement_name(j), (double) j->agreed / (double) j->count);
}

static void print_json(ft_judgement *j)
{
    ft_json_stream json = { .file = stdout, .digits = 12 };
    ft_metric metric[FT_METRICS];
    ft_json_open(&json, NULL, '{');
    ft_json_whole(&json, "rows", (int64_t) j->rows);
    ft_json_whole(&json, "tokens", (int64_t) j->tokens);
    ft_json_whole(&json, "predictions", (int64_t) j->count);
    put(&json, "seconds", j->seconds);
    if (!j->classifies) {
        put(&json, "perplexity", ft_judgement_perplexity(j));
        put_rows(&json, "nll", j, false);
        put_rows(&json, "nll_mean", j, true);
    }
    if (j->known > 0)
        put(&json, "accuracy", (double) j->right / (double) j->known);
    if (j->classifies)
        ft_json_word(&json, "problem_type", ft_problem_name(j->tally.problem));
    ft_metrics_to_json(&json, metric, ft_tally_metrics(&j->tally, metric), "");
    ft_metrics_to_json(&json, metric, ft_tally_metrics(&j->against, metric), "_against");
    if (j->compares && !compares_numbers(j))
        put_distance(&json, j);
    ft_json_close(&json, '{');
}

/* ---- Work --------------------------------------------------------------------------------- */

static bool same_kind(const ft_model *a, const ft_model *b)
{
    return a->has_cache == b->has_cache &&
           ft_config_has_source(&a->config) == ft_config_has_source(&b->config);
}

static ft_status judge(ft_judgement *out, const ft_eval *e, const ft_model *model,
                       const ft_model *other, ft_error *err)
{
    if (other != NULL && !same_kind(model, other))
        return ft_fail(err, FT_EARG, "%s: is of family %s, but %s of %s", other->path,
                       other->family->name, model->path, model->family->name);
    if (model->has_cache)
        return ft_eval_tokens(out, e, model, other, err);
    if (model->config.labels > 0)
        return ft_eval_classes(out, e, model, other, err);
    return ft_fail(err, FT_EUNSUPPORTED,
                   "%s: the model has neither a language model head nor labels", model->path);
}

static ft_status run(const ft_eval *e, ft_error *err)
{
    ft_model *model = NULL, *other = NULL;
    ft_judgement judgement = { 0 };
    ft_model_options plain = e->model; /* the baseline has the default KV cache dtype */
    plain.kv = FT_KV_AUTO;
    ft_status status = ft_model_open(&model, e->input, &e->model, err);
    if (status == FT_OK && e->against != NULL)
        status = ft_model_open(&other, e->against, &plain, err);
    double before = ft_seconds();
    if (status == FT_OK)
        status = judge(&judgement, e, model, other, err);
    judgement.seconds = ft_seconds() - before;
    if (status == FT_OK)
        (e->json ? print_json : print_text)(&judgement);
    ft_judgement_fini(&judgement);
    ft_model_close(other);
    ft_model_close(model);
    return status;
}

int main(int argc, char **argv)
{
    ft_eval e = { 0 };
    ft_error err;
    parse(&e, argc, argv);
    return ft_tool_end(&tool, run(&e, &err) == FT_OK ? 0 : ft_tool_fail(&tool, err.text));
}
