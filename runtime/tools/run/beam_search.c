/*
 * beam_search.c - beam search: the n best hypotheses for each source.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/container/safetensors.h"
#include "runtime/tools/run/generation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A hypothesis; without tokens if there is none. */
typedef struct text {
    int32_t *id; /* [tokens]; owned */
    size_t tokens;
    float score;
    ft_reason reason;
} text;

typedef struct job {
    const ft_run *run;
    const ft_model *model;
    ft_tokenizer *tokenizer; /* NULL: only ids are printed */
    ft_prompts sources;
    ft_request *request; /* [sources.count] */
    int32_t *stop_id;
    text *text; /* [sources.count, best] */
    size_t best;
    size_t context; /* of the session */
    ft_generate_stats stats;
    size_t ended; /* searches */
    ft_progress_line line;
    bool no_memory;
} job;

static ft_status make_requests(job *j, ft_error *err)
{
    ft_request how;
    size_t count = j->sources.count;
    FT_TRY(ft_run_how(&how, &j->stop_id, j->run, j->model, err));
    j->best = j->run->search.n_best > 0 ? (size_t) j->run->search.n_best : 1;
    j->request = ft_array(count, sizeof *j->request);
    j->text = ft_array(count * j->best, sizeof *j->text);
    if (j->request == NULL || j->text == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu requests", count);
    for (size_t i = 0; i < count; i++) {
        j->request[i] = how;
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
    ft_session_options options = run->session;
    size_t beams = (size_t) run->search.beams, longest = ft_prompts_longest(&j->sources);
    size_t most = run->batch > 0 ? (size_t) run->batch : beams < 64 ? 64 / beams : 1;
    size_t groups = ft_min_size(j->sources.count, most), seats = groups * beams;
    size_t positions = (size_t) ft_model_get_info(j->model).max_positions;
    size_t tokens = run->chunk > 0 ? (size_t) run->chunk : 512;
    tokens = tokens > longest ? tokens : longest;
    if (options.context == 0)
        options.context =
            (int64_t) (run->how.max_new_tokens > 0
                           ? ft_min_size(positions, 1 + (size_t) run->how.max_new_tokens)
                           : positions);
    options.max_sequences = (int64_t) seats;
    options.max_tokens = (int64_t) (tokens > seats ? tokens : seats);
    options.source_tokens = (int64_t) (groups * ft_round_up(longest, FT_PAGE));
    options.cache_tokens = (int64_t) (seats * ft_round_up((size_t) options.context, FT_PAGE));
    j->context = (size_t) options.context;
    ft_warn_of_context(run, 1, j->context);
    FT_TRY(ft_session_open(out, j->model, &options, err));
    return ft_run_explain(run, *out, err);
}

static bool take_text(void *user, const ft_found *found)
{
    job *j = user;
    text *to = &j->text[found->request * j->best + found->rank];
    j->ended += found->rank == 0;
    ft_progress_step(&j->line, j->ended, j->sources.count);
    to->reason = found->reason;
    to->score = found->score;
    if (found->tokens == 0)
        return true;
    to->id = ft_array(found->tokens, sizeof *to->id);
    j->no_memory = to->id == NULL;
    if (j->no_memory)
        return false;
    memcpy(to->id, found->ids, found->tokens * sizeof *to->id);
    to->tokens = found->tokens;
    return true;
}

static ft_status search(job *j, ft_error *err)
{
    ft_search_options options = j->run->search;
    ft_session *session = NULL;
    options.stats = &j->stats;
    if (j->run->forces_bos)
        options.forced_bos = &j->run->forced_bos;
    ft_status status = open_session(&session, j, err);
    ft_run_begin_progress(&j->line, j->run, "sources", false);
    if (status == FT_OK)
        status = ft_search(session, j->request, j->sources.count, &options, take_text, j, err);
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
    *out = ft_array(*bytes + 1, 1);
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for text");
    return ft_tokenizer_decode(j->tokenizer, t->id, t->tokens, true, *out, *bytes, bytes, err);
}

/* Print a hypothesis as text, or as ids without a tokenizer. */
static ft_status print_text(const job *j, const text *t, ft_error *err)
{
    char *words;
    size_t bytes;
    for (size_t i = 0; j->tokenizer == NULL && i < t->tokens; i++)
        printf("%s%d", i > 0 ? " " : "", t->id[i]);
    if (j->tokenizer == NULL)
        return FT_OK;
    ft_status status = decode(j, t, &words, &bytes, err);
    if (status == FT_OK)
        ft_print_piece(words, bytes);
    free(words);
    return status;
}

/* One line per hypothesis; with --n-best, source number and score first. */
static ft_status print_texts(const job *j, ft_error *err)
{
    for (size_t i = 0; i < j->sources.count * j->best; i++) {
        const text *t = &j->text[i];
        if (t->tokens == 0 && j->best > 1)
            continue;
        if (j->best > 1)
            printf("%zu\t%.6g\t", i / j->best + 1, (double) t->score);
        FT_TRY(print_text(j, t, err));
        putchar('\n');
    }
    return FT_OK;
}

static size_t tokens_of_best(const job *j)
{
    size_t tokens = 0;
    for (size_t i = 0; i < j->sources.count; i++)
        tokens += j->text[i * j->best].tokens;
    return tokens;
}

static void print_speed(const job *j, FILE *file)
{
    double seconds = j->stats.prompt_seconds + j->stats.step_seconds;
    size_t count = j->sources.count, made = tokens_of_best(j);
    fprintf(file, "%zu source%s, %zu tokens, %zu new tokens; %.1f tokens/s\n", count,
            count == 1 ? "" : "s", j->sources.start[count], made,
            seconds > 0.0 ? (double) made / seconds : 0.0);
}

static ft_status put_text(ft_json_stream *json, const job *j, const text *t, ft_error *err)
{
    char *words = NULL;
    size_t bytes = 0;
    if (j->tokenizer != NULL) {
        ft_status status = decode(j, t, &words, &bytes, err);
        if (status != FT_OK) {
            free(words);
            return status;
        }
    }
    ft_json_open(json, NULL, '{');
    ft_json_wholes(json, "ids", t->id, t->tokens);
    ft_json_real(json, "score", (double) t->score);
    ft_json_word(json, "finish_reason", ft_reason_name(t->reason));
    if (j->tokenizer != NULL)
        ft_json_stream_text(json, "text", words, bytes);
    ft_json_close(json, '{');
    free(words);
    return FT_OK;
}

static ft_status put_source(ft_json_stream *json, const job *j, size_t i, ft_error *err)
{
    const text *t = &j->text[i * j->best];
    ft_json_open(json, NULL, '{');
    ft_json_whole(json, "source_tokens", (int64_t) j->request[i].source_tokens);
    ft_json_open(json, "hypotheses", '[');
    for (size_t k = 0; k < j->best && t[k].tokens > 0; k++)
        FT_TRY(put_text(json, j, &t[k], err));
    ft_json_close(json, '[');
    ft_json_close(json, '{');
    return FT_OK;
}

static ft_status print_json(const job *j, ft_error *err)
{
    ft_json_stream json = { .file = stdout, .digits = 9 };
    ft_json_open(&json, NULL, '{');
    ft_json_whole(&json, "sources", (int64_t) j->sources.count);
    ft_json_whole(&json, "source_tokens", (int64_t) j->sources.start[j->sources.count]);
    ft_json_whole(&json, "new_tokens", (int64_t) tokens_of_best(j));
    ft_json_real(&json, "prefill_seconds", j->stats.prompt_seconds);
    ft_json_real(&json, "decode_seconds", j->stats.step_seconds);
    ft_json_open(&json, "results", '[');
    for (size_t i = 0; i < j->sources.count; i++)
        FT_TRY(put_source(&json, j, i, err));
    ft_json_close(&json, '[');
    ft_json_close(&json, '{');
    return FT_OK;
}

/* Start token plus --max-new-tokens limited by the context, or the longest hypothesis. */
static size_t columns(const job *j)
{
    size_t most = 0;
    for (size_t i = 0; i < j->sources.count * j->best; i++)
        most = j->text[i].tokens > most ? j->text[i].tokens : most;
    if (j->run->how.max_new_tokens > 0)
        most = ft_min_size((size_t) j->run->how.max_new_tokens, j->context - 1);
    return 1 + most;
}

/* Start token, new tokens, padding; a missing hypothesis is all padding with score -inf. */
static ft_status write_texts(const job *j, ft_output *output, ft_error *err)
{
    const ft_config *config = &j->model->config;
    size_t rows = j->sources.count * j->best, cols = columns(j);
    int32_t *ids = ft_array(rows * cols, sizeof *ids);
    float *scores = ft_array(rows, sizeof *scores);
    ft_status status = FT_OK;
    if (ids == NULL || scores == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for %zu texts of %zu tokens", rows, cols);
    for (size_t i = 0; i < rows && status == FT_OK; i++) {
        const text *t = &j->text[i];
        int32_t *row = ids + i * cols;
        for (size_t k = 0; k < cols; k++)
            row[k] = t->tokens == 0 || k > t->tokens ? config->pad_id
                     : k == 0                        ? config->start_id
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

static ft_status tell(const job *j, ft_output *output, ft_error *err)
{
    if (output != NULL)
        FT_TRY(write_texts(j, output, err));
    if (j->run->json)
        return print_json(j, err);
    bool tells = j->run->data == NULL || output == NULL;
    if (tells)
        FT_TRY(print_texts(j, err));
    print_speed(j, tells ? stderr : stdout);
    return FT_OK;
}

/* ---- All ---------------------------------------------------------------------------------- */

/* Whether all searches have finished, so that those that did not fail can be reported. */
static bool is_complete(const job *j)
{
    for (size_t i = 0; j->text != NULL && i < j->sources.count; i++)
        if (j->text[i * j->best].reason == FT_REASON_NONE)
            return false;
    return j->text != NULL && !j->no_memory;
}

/* Failed sources have no hypothesis; the others are reported, then the error is returned. */
static ft_status work(job *j, ft_output *output, ft_error *err)
{
    if (j->run->chat || j->run->logprobs)
        return ft_fail(err, FT_EARG, "--%s: does not apply to beam search",
                       j->run->chat ? "chat" : "logprobs");
    FT_TRY(ft_run_tokenizer(&j->tokenizer, j->run, j->model, err));
    FT_TRY(ft_prompts_read(&j->sources, j->run, j->model, j->tokenizer, err));
    FT_TRY(make_requests(j, err));
    ft_status status = search(j, err);
    if (status == FT_OK || is_complete(j)) {
        ft_status told = tell(j, output, status == FT_OK ? err : NULL);
        status = status == FT_OK ? told : status;
    }
    return status;
}

ft_status ft_run_search(const ft_run *run, const ft_model *model, ft_output *output, ft_error *err)
{
    job j = { .run = run, .model = model };
    ft_status status = work(&j, output, err);
    for (size_t i = 0; j.text != NULL && i < j.sources.count * j.best; i++)
        free(j.text[i].id);
    free(j.text);
    free(j.request);
    free(j.stop_id);
    ft_prompts_fini(&j.sources);
    ft_tokenizer_close(j.tokenizer);
    return status;
}
