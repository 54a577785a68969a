/*
 * beam_search.c - beam search: the n best hypotheses for each source.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/container/safetensors.h"
#include "runtime/generate/session_sizes.h"
#include "runtime/tools/run/generation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A hypothesis; without tokens if there is none. */
typedef struct text {
    int32_t *id; /* [tokens]; owned */
    size_t tokens;
    float score;
    ft_finish_reason reason;
} text;

typedef struct job {
    const ft_run *run;
    const ft_model *model;
    ft_translator translator;
    ft_tokenizer *tokenizer; /* of the new tokens, in the translator; NULL: only ids are printed */
    ft_prompts sources;
    ft_request *request; /* [sources.count] */
    int32_t *stop_id;
    text *text; /* [sources.count, best] */
    size_t n_best;
    size_t context; /* of the session */
    ft_generate_stats stats;
    size_t num_finished; /* searches */
    ft_progress_line line;
    bool no_memory;
} job;

static ft_status make_requests(job *j, ft_error *err)
{
    ft_request sampling;
    size_t count = j->sources.count;
    FT_TRY(ft_run_request(&sampling, &j->stop_id, j->run, j->model, err));
    j->n_best = j->run->search.n_best > 0 ? (size_t) j->run->search.n_best : 1;
    j->request = ft_calloc(count, sizeof *j->request);
    j->text = ft_calloc(count * j->n_best, sizeof *j->text);
    if (j->request == NULL || j->text == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu requests", count);
    for (size_t i = 0; i < count; i++) {
        j->request[i] = sampling;
        j->request[i].source = j->sources.ids + j->sources.start[i];
        j->request[i].source_tokens = ft_prompt_tokens(&j->sources, i);
    }
    return FT_OK;
}

/* ---- Searching ---------------------------------------------------------------------------- */

/* Capacity for some concurrent sources, with all beams at maximum length. */
static ft_status open_session(ft_session **out, job *j, ft_error *err)
{
    const ft_run *run = j->run;
    const ft_generation_limits limits = { .batch = run->batch, .chunk = run->chunk };
    ft_session_options options = run->session;
    ft_session_sizes_for_beam_search(&options, j->model, j->request, j->sources.count,
                                     (size_t) run->search.beams, &limits);
    j->context = (size_t) options.context;
    ft_warn_short_context(run, 1, j->context);
    FT_TRY(ft_session_open(out, j->model, &options, err));
    return ft_run_explain(run, *out, err);
}

static bool add_hypothesis(void *user, const ft_hypothesis *found)
{
    job *j = user;
    text *to = &j->text[found->request * j->n_best + found->rank];
    j->num_finished += found->rank == 0;
    ft_progress_update(&j->line, j->num_finished, j->sources.count);
    to->reason = found->reason;
    to->score = found->score;
    if (found->tokens == 0)
        return true;
    to->id = ft_calloc(found->tokens, sizeof *to->id);
    j->no_memory = to->id == NULL;
    if (j->no_memory)
        return false;
    memcpy(to->id, found->ids, found->tokens * sizeof *to->id);
    to->tokens = found->tokens;
    return true;
}

static ft_status search(job *j, ft_error *err)
{
    ft_beam_search_options options = j->run->search;
    ft_session *session = NULL;
    options.stats = &j->stats;
    int32_t forced_bos = ft_run_forced_bos(j->run, j->model, &j->translator);
    options.forced_bos = &forced_bos;
    ft_status status = open_session(&session, j, err);
    ft_run_begin_progress(&j->line, j->run, "sources", false);
    if (status == FT_OK)
        status =
            ft_beam_search(session, j->request, j->sources.count, &options, add_hypothesis, j, err);
    if (status == FT_OK && j->no_memory)
        status = ft_fail(err, FT_ENOMEM, "no memory for text");
    ft_progress_end(&j->line);
    ft_session_close(session);
    return status;
}

/* ---- Output ------------------------------------------------------------------------------- */

/* Decode a hypothesis; the caller frees *out. */
static ft_status decode(const job *j, const text *t, char **out, size_t *bytes, ft_error *err)
{
    *out = NULL;
    FT_TRY(ft_tokenizer_decode(j->tokenizer, t->id, t->tokens, true, NULL, 0, bytes, err));
    *out = ft_calloc(*bytes + 1, 1);
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for text");
    return ft_tokenizer_decode(j->tokenizer, t->id, t->tokens, true, *out, *bytes, bytes, err);
}

/* Print a hypothesis as text, or as ids without a tokenizer. */
static ft_status print_text(const job *j, const text *t, ft_error *err)
{
    char *decoded;
    size_t bytes;
    for (size_t i = 0; j->tokenizer == NULL && i < t->tokens; i++)
        printf("%s%d", i > 0 ? " " : "", t->id[i]);
    if (j->tokenizer == NULL)
        return FT_OK;
    ft_status status = decode(j, t, &decoded, &bytes, err);
    if (status == FT_OK)
        ft_print_piece(decoded, bytes);
    free(decoded);
    return status;
}

/* One line per hypothesis; with --n-best, source number and score first. */
static ft_status print_texts(const job *j, ft_error *err)
{
    for (size_t i = 0; i < j->sources.count * j->n_best; i++) {
        const text *t = &j->text[i];
        if (t->tokens == 0 && j->n_best > 1)
            continue;
        if (j->n_best > 1)
            printf("%zu\t%.6g\t", i / j->n_best + 1, (double) t->score);
        FT_TRY(print_text(j, t, err));
        putchar('\n');
    }
    return FT_OK;
}

static size_t tokens_of_best(const job *j)
{
    size_t tokens = 0;
    for (size_t i = 0; i < j->sources.count; i++)
        tokens += j->text[i * j->n_best].tokens;
    return tokens;
}

static void print_throughput(const job *j, FILE *file)
{
    double seconds = j->stats.prefill_seconds + j->stats.decode_seconds;
    size_t count = j->sources.count, new_tokens = tokens_of_best(j);
    fprintf(file, "%zu source%s, %zu tokens, %zu new tokens; %.1f tokens/s\n", count,
            count == 1 ? "" : "s", j->sources.start[count], new_tokens,
            seconds > 0.0 ? (double) new_tokens / seconds : 0.0);
}

static ft_status write_text_json(ft_json_stream *json, const job *j, const text *t, ft_error *err)
{
    char *decoded = NULL;
    size_t bytes = 0;
    if (j->tokenizer != NULL) {
        ft_status status = decode(j, t, &decoded, &bytes, err);
        if (status != FT_OK) {
            free(decoded);
            return status;
        }
    }
    ft_json_stream_begin(json, NULL, '{');
    ft_json_stream_ints(json, "ids", t->id, t->tokens);
    ft_json_stream_double(json, "score", (double) t->score);
    ft_json_stream_string(json, "finish_reason", ft_finish_reason_name(t->reason));
    if (j->tokenizer != NULL)
        ft_json_stream_string_n(json, "text", decoded, bytes);
    ft_json_stream_end(json, '{');
    free(decoded);
    return FT_OK;
}

static ft_status write_source_json(ft_json_stream *json, const job *j, size_t i, ft_error *err)
{
    const text *t = &j->text[i * j->n_best];
    ft_json_stream_begin(json, NULL, '{');
    ft_json_stream_int(json, "source_tokens", (int64_t) j->request[i].source_tokens);
    ft_json_stream_begin(json, "hypotheses", '[');
    for (size_t k = 0; k < j->n_best && t[k].tokens > 0; k++)
        FT_TRY(write_text_json(json, j, &t[k], err));
    ft_json_stream_end(json, '[');
    ft_json_stream_end(json, '{');
    return FT_OK;
}

static ft_status print_json(const job *j, ft_error *err)
{
    ft_json_stream json = { .file = stdout, .digits = 9 };
    ft_json_stream_begin(&json, NULL, '{');
    ft_json_stream_int(&json, "sources", (int64_t) j->sources.count);
    ft_json_stream_int(&json, "source_tokens", (int64_t) j->sources.start[j->sources.count]);
    ft_json_stream_int(&json, "new_tokens", (int64_t) tokens_of_best(j));
    ft_json_stream_double(&json, "prefill_seconds", j->stats.prefill_seconds);
    ft_json_stream_double(&json, "decode_seconds", j->stats.decode_seconds);
    ft_json_stream_begin(&json, "results", '[');
    for (size_t i = 0; i < j->sources.count; i++)
        FT_TRY(write_source_json(&json, j, i, err));
    ft_json_stream_end(&json, '[');
    ft_json_stream_end(&json, '{');
    return FT_OK;
}

/* Start token plus --max-new-tokens limited by the context, or the longest hypothesis. */
static size_t columns(const job *j)
{
    size_t max_sources = 0;
    for (size_t i = 0; i < j->sources.count * j->n_best; i++)
        max_sources = j->text[i].tokens > max_sources ? j->text[i].tokens : max_sources;
    if (j->run->sampling.max_new_tokens > 0)
        max_sources = ft_min_size((size_t) j->run->sampling.max_new_tokens, j->context - 1);
    return 1 + max_sources;
}

/* Start token, new tokens, padding; a missing hypothesis is all padding with score -inf. */
static ft_status write_texts(const job *j, ft_atomic_file *output, ft_error *err)
{
    const ft_config *config = &j->model->config;
    size_t rows = j->sources.count * j->n_best, cols = columns(j);
    int32_t *ids = ft_calloc(rows * cols, sizeof *ids);
    float *scores = ft_calloc(rows, sizeof *scores);
    ft_status status = FT_OK;
    if (ids == NULL || scores == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for %zu texts of %zu tokens", rows, cols);
    for (size_t i = 0; i < rows && status == FT_OK; i++) {
        const text *t = &j->text[i];
        int32_t *row = ids + i * cols;
        for (size_t k = 0; k < cols; k++)
            row[k] = t->tokens == 0 || k > t->tokens ? config->pad_id
                     : k == 0                        ? config->decoder_start_id
                                                     : t->id[k - 1];
        scores[i] = t->tokens == 0 ? -INFINITY : t->score;
    }
    const ft_named_tensor tensors[] = {
        { "output_ids", { FT_I32, FT_ROW, 2, { (int64_t) rows, (int64_t) cols }, ids } },
        { "scores", { FT_F32, FT_ROW, 1, { (int64_t) rows }, scores } },
    };
    if (status == FT_OK)
        status = ft_safetensors_write_to(output, tensors, FT_COUNT(tensors), err);
    free(ids);
    free(scores);
    return status;
}

static ft_status report(const job *j, ft_atomic_file *output, ft_error *err)
{
    if (output != NULL)
        FT_TRY(write_texts(j, output, err));
    if (j->run->json)
        return print_json(j, err);
    bool tells = j->run->data == NULL || output == NULL;
    if (tells)
        FT_TRY(print_texts(j, err));
    print_throughput(j, tells ? stderr : stdout);
    return FT_OK;
}

/* ---- All ---------------------------------------------------------------------------------- */

/* Whether all searches have finished, so that those that did not fail can be reported. */
static bool is_complete(const job *j)
{
    for (size_t i = 0; j->text != NULL && i < j->sources.count; i++)
        if (j->text[i * j->n_best].reason == FT_FINISH_NONE)
            return false;
    return j->text != NULL && !j->no_memory;
}

/* Failed sources have no hypothesis; the others are reported, then the error is returned. */
static ft_status work(job *j, ft_atomic_file *output, ft_error *err)
{
    if (j->run->chat || j->run->logprobs)
        return ft_fail(err, FT_EARG, "--%s: does not apply to beam search",
                       j->run->chat ? "chat" : "logprobs");
    FT_TRY(ft_run_tokenizers(&j->translator, j->run, j->model, err));
    j->tokenizer = j->translator.target;
    FT_TRY(ft_prompts_read(&j->sources, j->run, j->model, j->translator.source, err));
    FT_TRY(make_requests(j, err));
    ft_status status = search(j, err);
    if (status == FT_OK || is_complete(j)) {
        ft_status told = report(j, output, status == FT_OK ? err : NULL);
        status = status == FT_OK ? told : status;
    }
    return status;
}

ft_status ft_run_beam_search(const ft_run *run, const ft_model *model, ft_atomic_file *output,
                             ft_error *err)
{
    job j = { .run = run, .model = model };
    ft_status status = work(&j, output, err);
    for (size_t i = 0; j.text != NULL && i < j.sources.count * j.n_best; i++)
        free(j.text[i].id);
    free(j.text);
    free(j.request);
    free(j.stop_id);
    ft_prompts_fini(&j.sources);
    ft_translator_close(&j.translator);
    return status;
}
