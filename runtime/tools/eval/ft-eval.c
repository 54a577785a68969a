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
#include "runtime/cli/image_options.h"
#include "runtime/cli/text_options.h"

#include <math.h>

enum { AGAINST = FT_LONG_ONLY, CTX, CHUNK, GENERATE, MAX_NEW, BEAMS, BATCH };

static const ft_option options[] = {
    { 'i', "input", "FILE", "the artifact" },
    { 'd', "data", "FILE",
      "safetensors with input_ids [N, S], and optionally\n"
      "attention_mask or lengths [N]; for classifiers\n"
      "labels [N], for encoder-decoders labels [N, T]" },
    FT_TEXT_OPTIONS,
    FT_IMAGE_OPTION,
    { AGAINST, "against", "FILE", "baseline artifact, usually the float one" },
    FT_JSON_OPTION,
    FT_THREADS_OPTION,
    FT_DEVICE_OPTION,
    FT_VERIFY_OPTION,
    { CTX, "ctx", "N", "split rows into texts of N tokens" },
    { CHUNK, "chunk", "N", "tokens per forward pass; default 512" },
    FT_KV_OPTION,
    FT_TUNING_OPTION,
    { GENERATE, "generate", NULL,
      "generate a text from the first of each pair, and\n"
      "compare it with the second: exact match, BLEU, chrF" },
    { MAX_NEW, "max-new-tokens", "N", "limit of generated tokens; default the context" },
    { BEAMS, "beams", "K", "beam search with K beams, at most 64" },
    { BATCH, "batch", "N", "texts that are generated concurrently; default 64" },
    { 0, NULL, NULL, NULL },
};

static const ft_tool tool = {
    .name = "ft-eval",
    .usage = "-i FILE -d FILE [--against FILE] [OPTION]...\n"
             "-i FILE --text FILE [--against FILE] [OPTION]...\n"
             "-i FILE [--against FILE] [OPTION]... --image FILE...",
    .about = "Measure the perplexity of a decoder or encoder-decoder or the BLEU of what it\n"
             "generates, the accuracy of a classifier, the F1 of entities or answers, and\n"
             "optionally the KL divergence from a baseline artifact.",
    .option = options,
};

/* ---- Command line ------------------------------------------------------------------------- */

static bool set_generation_option(ft_eval *e, int option, const char *value)
{
    switch (option) {
    case MAX_NEW:
        e->max_new_tokens = ft_tool_int(&tool, option, value, 1);
        return true;
    case BEAMS:
        e->beams = ft_tool_int(&tool, option, value, 1);
        return true;
    case BATCH:
        e->batch = ft_tool_int(&tool, option, value, 1);
        return true;
    default:
        return false;
    }
}

static void set_option(ft_eval *e, int option, const char *value)
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
    case FT_OPTION_JSON:
        e->json = true;
        break;
    case 't':
        e->threads = ft_tool_threads(&tool, option, value);
        break;
    case CTX:
        e->context = ft_tool_int(&tool, option, value, 1);
        break;
    case CHUNK:
        e->chunk = ft_tool_int(&tool, option, value, 1);
        break;
    case GENERATE:
        e->generate = true;
        break;
    default:
        if (set_generation_option(e, option, value))
            e->generation_option = ft_tool_option_name(&tool, option);
        else if (!ft_tool_text_option(&tool, &e->texts, option, value))
            ft_tool_model_option(&tool, &e->model, option, value);
    }
}

/* Samples are either tensors, texts or images. */
static void check_samples(ft_eval *e)
{
    bool has_texts = e->texts.path != NULL, has_images = e->images.count > 0;
    int forms = (e->data != NULL) + has_texts + has_images;
    ft_tool_check_text_options(&tool, &e->texts);
    if (forms == 0)
        ft_tool_usage_error(&tool, "no data given: use -d FILE, --text FILE or --image FILE");
    if (forms > 1)
        ft_tool_usage_error(&tool, "give either -d FILE, --text FILE or --image FILE");
    if (e->context > 0 && has_texts)
        ft_tool_usage_error(&tool, "--ctx splits the rows of -d: texts have --max-length");
    if (e->context > 0 && has_images)
        ft_tool_usage_error(&tool, "--ctx splits the rows of -d: images have one length");
    if (e->generate && !has_texts)
        ft_tool_usage_error(&tool, "--generate compares texts: use --text FILE");
    if (e->generation_option != NULL && !e->generate)
        ft_tool_usage_error(&tool, "--%s requires --generate", e->generation_option);
    if (has_texts)
        e->data = e->texts.path;
    if (has_images)
        e->data = e->images.path[0];
}

static void parse(ft_eval *e, int argc, char **argv)
{
    const char *value;
    for (int option; (option = ft_options_next(&tool, argc, argv, &value)) != -1;)
        if (option == FT_OPTION_IMAGE)
            ft_tool_image_option(&tool, &e->images, value, argc);
        else
            set_option(e, option, value);
    ft_tool_image_operands(&tool, &e->images, argc, argv);
    ft_tool_check_no_operands(&tool, argc, argv);
    if (e->input == NULL)
        ft_tool_usage_error(&tool, "no artifact given: use -i FILE");
    check_samples(e);
}

/* ---- Printing ----------------------------------------------------------------------------- */

/* Regression models are compared with the baseline by the same metrics as with labels. */
static bool compares_numbers(const ft_eval_result *j)
{
    return j->classifies && j->against.problem_type == FT_PROBLEM_REGRESSION;
}

/* Agreement on the top-1 class, or multi-label on the set of predicted labels. */
static const char *agreement_name(const ft_eval_result *j)
{
    bool multi_label = j->classifies && j->against.problem_type == FT_PROBLEM_MULTI;
    return multi_label ? "agreement" : "top1_agreement";
}

static void print_text(ft_eval_result *j)
{
    ft_metric metric[FT_MAX_METRICS];
    printf("%zu rows, %zu tokens, %zu predictions, %.3f s\n", j->rows, j->tokens, j->count,
           j->seconds);
    ft_print_metrics(j->task, j->num_task, "");
    if (!j->classifies && !j->has_task)
        printf("perplexity %.5f\n", ft_eval_perplexity(j));
    if (j->num_labeled > 0)
        printf("accuracy %.4f\n", (double) j->right / (double) j->num_labeled);
    ft_print_metrics(metric, ft_metric_accumulator_compute(&j->metrics, metric), "");
    ft_print_metrics(metric, ft_metric_accumulator_compute(&j->against, metric), "_against");
    if (!j->compares || compares_numbers(j))
        return;
    printf("kl_mean %.6g\n", ft_eval_mean_kl(j));
    printf("kl_999 %.6g\n", ft_eval_kl_quantile(j, 0.999));
    printf("%s %.4f\n", agreement_name(j), (double) j->num_agreed / (double) j->count);
}

/* Sum or mean per row; the mean of a row with one token, which has no prediction, is null. */
static void put_rows(ft_json_stream *json, const char *key, const ft_eval_result *j, bool means)
{
    ft_json_stream_begin(json, key, '[');
    for (size_t row = 0; row < j->rows; row++)
        ft_json_stream_double(json, NULL,
                              means ? j->nll[row] / (double) j->predictions[row] : j->nll[row]);
    ft_json_stream_end(json, '[');
}

static void put(ft_json_stream *json, const char *key, double value)
{
    if (isfinite(value))
        ft_json_stream_double(json, key, value);
}

static void put_distance(ft_json_stream *json, ft_eval_result *j)
{
    put(json, "kl_mean", ft_eval_mean_kl(j));
    put(json, "kl_999", ft_eval_kl_quantile(j, 0.999));
    put(json, agreement_name(j), (double) j->num_agreed / (double) j->count);
}

static void print_json(ft_eval_result *j)
{
    ft_json_stream json = { .file = stdout, .digits = 12 };
    ft_metric metric[FT_MAX_METRICS];
    ft_json_stream_begin(&json, NULL, '{');
    ft_json_stream_int(&json, "rows", (int64_t) j->rows);
    ft_json_stream_int(&json, "tokens", (int64_t) j->tokens);
    ft_json_stream_int(&json, "predictions", (int64_t) j->count);
    put(&json, "seconds", j->seconds);
    ft_metrics_to_json(&json, j->task, j->num_task, "");
    if (!j->classifies && !j->has_task) {
        put(&json, "perplexity", ft_eval_perplexity(j));
        put_rows(&json, "nll", j, false);
        put_rows(&json, "nll_mean", j, true);
    }
    if (j->num_labeled > 0)
        put(&json, "accuracy", (double) j->right / (double) j->num_labeled);
    if (j->classifies)
        ft_json_stream_string(&json, "problem_type", ft_problem_name(j->metrics.problem_type));
    ft_metrics_to_json(&json, metric, ft_metric_accumulator_compute(&j->metrics, metric), "");
    ft_metrics_to_json(&json, metric, ft_metric_accumulator_compute(&j->against, metric),
                       "_against");
    if (j->compares && !compares_numbers(j))
        put_distance(&json, j);
    ft_json_stream_end(&json, '{');
}

/* ---- Work --------------------------------------------------------------------------------- */

static bool same_kind(const ft_model *a, const ft_model *b)
{
    return a->has_cache == b->has_cache &&
           ft_config_is_encoder_decoder(&a->config) == ft_config_is_encoder_decoder(&b->config);
}

typedef ft_status (*task_fn)(ft_eval_result *out, const ft_eval *eval, const ft_model *model,
                             ft_error *err);

/* How the predictions of a head are evaluated on texts; NULL: not at all. */
static task_fn find_task(ft_head head, const char **what)
{
    switch (head) {
    case FT_HEAD_TOKENS:
        *what = "entities";
        return ft_eval_entities;
    case FT_HEAD_SPAN:
        *what = "answers";
        return ft_eval_answers;
    case FT_HEAD_NONE:
        *what = "embeddings";
        return ft_eval_similarity;
    default:
        *what = "masked language models";
        return NULL;
    }
}

static ft_status score_task(ft_eval_result *out, const ft_eval *e, const ft_model *model,
                            const ft_model *other, ft_error *err)
{
    const char *what;
    task_fn evaluate = find_task(model->config.head, &what);
    if (ft_config_is_vision(&model->config))
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: has no classes, and embeddings of images are not evaluated",
                       model->path);
    if (evaluate == NULL)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: %s are not evaluated", model->path, what);
    if (other != NULL)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: --against compares perplexities and classes, not %s: evaluate both "
                       "models, and compare the results",
                       model->path, what);
    if (e->texts.path == NULL)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: %s are evaluated on texts: use --text FILE",
                       model->path, what);
    return evaluate(out, e, model, err);
}

static ft_status score_model(ft_eval_result *out, const ft_eval *e, const ft_model *model,
                             const ft_model *other, ft_error *err)
{
    if (other != NULL && !same_kind(model, other))
        return ft_fail(err, FT_EARG, "%s: is of family %s, but %s of %s", other->path,
                       other->family->name, model->path, model->family->name);
    if (other != NULL && ft_model_generates(other) != ft_model_generates(model))
        return ft_fail(err, FT_EARG, "%s: %s, but %s %s", other->path,
                       ft_model_generates(other) ? "generates text" : "embeds texts", model->path,
                       ft_model_generates(model) ? "generates text" : "embeds texts");
    if (e->generate)
        return ft_eval_generated(out, e, model, other, err);
    if (ft_model_generates(model))
        return ft_eval_tokens(out, e, model, other, err);
    if (ft_head_is_classifier(model->config.head))
        return ft_eval_classes(out, e, model, other, err);
    return score_task(out, e, model, other, err);
}

static ft_status run(const ft_eval *e, ft_error *err)
{
    ft_model *model = NULL, *other = NULL;
    ft_eval_result result = { 0 };
    ft_model_options baseline_options = e->model; /* the baseline has the default KV cache dtype */
    baseline_options.kv = FT_KV_DTYPE_AUTO;
    ft_status status = ft_model_open(&model, e->input, &e->model, err);
    if (status == FT_OK && e->against != NULL)
        status = ft_model_open(&other, e->against, &baseline_options, err);
    if (status == FT_OK)
        ft_tool_warn(&tool, model->tuning_note);
    double before = ft_monotonic_seconds();
    if (status == FT_OK)
        status = score_model(&result, e, model, other, err);
    result.seconds = ft_monotonic_seconds() - before;
    if (status == FT_OK)
        (e->json ? print_json : print_text)(&result);
    ft_eval_result_fini(&result);
    ft_model_close(other);
    ft_model_close(model);
    return status;
}

int main(int argc, char **argv)
{
    ft_eval e = { 0 };
    ft_error err;
    parse(&e, argc, argv);
    int status = run(&e, &err) == FT_OK ? 0 : ft_tool_error(&tool, err.text);
    ft_image_paths_free(&e.images);
    return ft_tool_exit_status(&tool, status);
}
