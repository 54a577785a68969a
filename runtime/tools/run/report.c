/*
 * report.c - output of generated texts: as text, as JSON and as a safetensors file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/generate/requests.h"
#include "runtime/container/safetensors.h"
#include "runtime/tools/run/generation.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Text --------------------------------------------------------------------------------- */

void ft_print_piece(const char *text, size_t bytes)
{
    bool terminal = isatty(STDOUT_FILENO);
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char) text[i];
        bool obeyed = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
        putchar(terminal && obeyed ? '?' : c);
    }
    fflush(stdout);
}

static double rate(size_t tokens, double seconds)
{
    return seconds > 0.0 ? (double) tokens / seconds : 0.0;
}

void ft_print_speed(FILE *file, size_t sequences, size_t made, const ft_generate_stats *stats)
{
    fprintf(file, "%zu sequence%s, %zu prompt tokens, %zu new tokens; ", sequences,
            sequences == 1 ? "" : "s", stats->prompt_tokens, made);
    fprintf(file, "prefill %.1f tokens/s, decode %.1f tokens/s\n",
            rate(stats->prompt_tokens, stats->prompt_seconds),
            rate(stats->step_tokens, stats->step_seconds));
}

void ft_warn_of_context(const ft_run *run, size_t longest, size_t context)
{
    size_t asked = (size_t) run->how.max_new_tokens;
    if (asked == 0 || longest >= context || asked <= context - longest)
        return;
    fprintf(stderr,
            "%s: warning: --max-new-tokens %zu: a context of %zu tokens leaves %zu after a prompt "
            "of %zu; generation stops there\n",
            ft_run_tool.name, asked, context, context - longest, longest);
}

/* Free what has been reported, unless it is also written to a file. */
static void forget(ft_growth *grown, bool writes)
{
    free(grown->text);
    grown->text = NULL;
    grown->bytes = grown->room = 0;
    if (writes)
        return;
    free(grown->id);
    free(grown->logprob);
    grown->id = NULL;
    grown->logprob = NULL;
}

/* Print ids, without a tokenizer. */
static void print_ids(const ft_growth *grown)
{
    for (size_t i = 0; i < grown->tokens; i++)
        printf("%s%d", i > 0 ? " " : "", grown->id[i]);
}

/* End a printed text with a newline. */
static void end_text(const ft_growth *grown)
{
    if (grown->bytes == 0 || grown->text[grown->bytes - 1] != '\n')
        putchar('\n');
    fflush(stdout);
}

/* Several texts: each under its number when it is finished. */
static void print_next(const ft_generation *g, const ft_growth *grown)
{
    printf("%s==> %zu <==\n", g->told > 0 ? "\n" : "", g->told + 1);
    if (g->tokenizer == NULL)
        print_ids(grown);
    ft_print_piece(grown->text, grown->bytes);
    end_text(grown);
}

/* A single text: streamed. */
static void print_more(ft_generation *g)
{
    const ft_growth *grown = &g->grown[0];
    if (grown->bytes > g->told) /* the buffer may still be NULL before that */
        ft_print_piece(grown->text + g->told, grown->bytes - g->told);
    g->told = grown->bytes;
    if (grown->reason == FT_REASON_NONE)
        return;
    if (g->tokenizer == NULL)
        print_ids(grown);
    end_text(grown);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void begin_json(ft_generation *g)
{
    g->json = (ft_json_stream){ .file = stdout, .digits = 9 };
    ft_json_open(&g->json, NULL, '{');
    ft_json_whole(&g->json, "sequences", (int64_t) g->prompts.count);
    ft_json_open(&g->json, "results", '[');
}

static void put_next(ft_generation *g, const ft_growth *grown)
{
    ft_json_stream *json = &g->json;
    if (json->file == NULL)
        begin_json(g);
    ft_json_open(json, NULL, '{');
    ft_json_whole(json, "prompt_tokens", (int64_t) g->request[g->told].prompt_tokens);
    if (g->tokenizer != NULL)
        ft_json_stream_text(json, "text", grown->bytes > 0 ? grown->text : "", grown->bytes);
    ft_json_wholes(json, "ids", grown->id, grown->tokens);
    ft_json_reals(json, "logprobs", grown->logprob, grown->tokens);
    ft_json_word(json, "finish_reason", ft_reason_name(grown->reason));
    ft_json_close(json, '{');
    fflush(stdout);
}

static void put_speed(ft_json_stream *json, const ft_generation *g)
{
    const ft_generate_stats *s = &g->stats;
    ft_json_close(json, '[');
    ft_json_whole(json, "prompt_tokens", (int64_t) s->prompt_tokens);
    ft_json_whole(json, "new_tokens", (int64_t) g->tokens);
    ft_json_real(json, "prefill_seconds", s->prompt_seconds);
    ft_json_real(json, "decode_seconds", s->step_seconds);
    ft_json_real(json, "prefill_tokens_per_second", rate(s->prompt_tokens, s->prompt_seconds));
    ft_json_real(json, "decode_tokens_per_second", rate(s->step_tokens, s->step_seconds));
    ft_json_close(json, '{');
}

/* ---- Both --------------------------------------------------------------------------------- */

void ft_generation_tell(ft_generation *g)
{
    if (!g->tells)
        return;
    if (g->prompts.count == 1 && !g->run->json) {
        print_more(g);
        return;
    }
    for (; g->told < g->prompts.count && g->grown[g->told].reason != FT_REASON_NONE; g->told++) {
        ft_growth *grown = &g->grown[g->told];
        if (g->run->json)
            put_next(g, grown);
        else
            print_next(g, grown);
        forget(grown, g->writes);
    }
}

void ft_generation_tell_end(ft_generation *g)
{
    if (g->run->json)
        put_speed(&g->json, g);
    else /* The first new token of a text belongs to its prefill. */
        ft_print_speed(g->tells ? stderr : stdout, g->prompts.count, g->tokens, &g->stats);
}

/* ---- File --------------------------------------------------------------------------------- */

/* Columns for new tokens: --max-new-tokens limited by the context, or the longest text. */
static size_t new_columns(const ft_generation *g)
{
    size_t most = 0;
    bool asked = g->run->how.max_new_tokens > 0;
    for (size_t i = 0; i < g->prompts.count; i++) {
        size_t new = asked ? ft_request_room(&g->request[i], g->context) : g->grown[i].tokens;
        most = new > most ? new : most;
    }
    return most;
}

/* Padding after the end of a text: pad_token_id of encoder-decoders, else a stop id. */
static int32_t padding_of(const ft_generation *g)
{
    if (g->begins > 0)
        return g->model->config.pad_id;
    return g->stops > 0 ? g->stop_id[0] : 0;
}

/* Prompt, new tokens, then padding. */
static void fill_row(const ft_generation *g, size_t i, int32_t *row, size_t cols)
{
    const ft_request *r = &g->request[i];
    size_t made = g->grown[i].tokens, used = r->prompt_tokens + made;
    memcpy(row, r->prompt, r->prompt_tokens * sizeof *row);
    if (made > 0)
        memcpy(row + r->prompt_tokens, g->grown[i].id, made * sizeof *row);
    for (size_t col = used; col < cols; col++)
        row[col] = padding_of(g);
}

enum { IDS, LENGTHS, LOGPROBS };

/* Write one row of each tensor; `ids` and `logprobs` are buffers for a row. */
static ft_status put_row(ft_safetensors_stream *file, const ft_generation *g, size_t i,
                         int32_t *ids, size_t cols, float *logprobs, size_t fresh, ft_error *err)
{
    const ft_growth *grown = &g->grown[i];
    int32_t length = (int32_t) (g->request[i].prompt_tokens + grown->tokens);
    fill_row(g, i, ids, cols);
    FT_TRY(ft_safetensors_put(file, IDS, ids, cols * sizeof *ids, err));
    FT_TRY(ft_safetensors_put(file, LENGTHS, &length, sizeof length, err));
    if (!g->run->logprobs)
        return FT_OK;
    memset(logprobs, 0, fresh * sizeof *logprobs);
    if (grown->tokens > 0)
        memcpy(logprobs, grown->logprob, grown->tokens * sizeof *logprobs);
    return ft_safetensors_put(file, LOGPROBS, logprobs, fresh * sizeof *logprobs, err);
}

ft_status ft_generation_write(const ft_generation *g, ft_output *output, ft_error *err)
{
    size_t fresh = new_columns(g), cols = (g->begins > 0 ? g->begins : g->prompts.cols) + fresh;
    int64_t rows = (int64_t) g->prompts.count;
    const ft_named_tensor tensors[] = {
        [IDS] = { "output_ids", { FT_I32, FT_ROW, 2, { rows, (int64_t) cols }, NULL } },
        [LENGTHS] = { "lengths", { FT_I32, FT_ROW, 1, { rows }, NULL } },
        [LOGPROBS] = { "logprobs", { FT_F32, FT_ROW, 2, { rows, (int64_t) fresh }, NULL } },
    };
    ft_safetensors_stream *file = NULL;
    int32_t *ids = ft_array(cols, sizeof *ids);
    float *logprobs = ft_array(fresh, sizeof *logprobs);
    ft_status status = FT_OK;
    if (ids == NULL || logprobs == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for a text of %zu tokens", cols);
    if (status == FT_OK)
        status = ft_safetensors_begin(&file, output, tensors, g->run->logprobs ? 3 : 2, err);
    for (size_t i = 0; i < g->prompts.count && status == FT_OK; i++)
        status = put_row(file, g, i, ids, cols, logprobs, fresh, err);
    if (status == FT_OK)
        status = ft_safetensors_end(file, err);
    ft_safetensors_stream_free(file);
    free(ids);
    free(logprobs);
    return status;
}
