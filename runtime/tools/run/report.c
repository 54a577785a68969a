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
        bool is_control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
        putchar(terminal && is_control ? '?' : c);
    }
    fflush(stdout);
}

static double rate(size_t tokens, double seconds)
{
    return seconds > 0.0 ? (double) tokens / seconds : 0.0;
}

void ft_print_speed(FILE *file, size_t sequences, size_t new_tokens, const ft_generate_stats *stats)
{
    fprintf(file, "%zu sequence%s, %zu prompt tokens, %zu new tokens; ", sequences,
            sequences == 1 ? "" : "s", stats->prompt_tokens, new_tokens);
    fprintf(file, "prefill %.1f tokens/s, decode %.1f tokens/s\n",
            rate(stats->prompt_tokens, stats->prefill_seconds),
            rate(stats->decode_tokens, stats->decode_seconds));
}

void ft_warn_short_context(const ft_run *run, size_t longest, size_t context)
{
    size_t requested = (size_t) run->sampling.max_new_tokens;
    if (requested == 0 || longest >= context || requested <= context - longest)
        return;
    fprintf(stderr,
            "%s: warning: --max-new-tokens %zu: a context of %zu tokens leaves %zu after a prompt "
            "of %zu; generation stops there\n",
            ft_run_tool.name, requested, context, context - longest, longest);
}

/* Free what has been reported, unless it is also written to a file. */
static void free_reported(ft_generated_text *generated, bool writes_file)
{
    free(generated->text);
    generated->text = NULL;
    generated->bytes = generated->capacity = 0;
    if (writes_file)
        return;
    free(generated->id);
    free(generated->logprob);
    generated->id = NULL;
    generated->logprob = NULL;
}

/* Print ids, without a tokenizer. */
static void print_ids(const ft_generated_text *generated)
{
    for (size_t i = 0; i < generated->tokens; i++)
        printf("%s%d", i > 0 ? " " : "", generated->id[i]);
}

/* End a printed text with a newline. */
static void end_text(const ft_generated_text *generated)
{
    if (generated->bytes == 0 || generated->text[generated->bytes - 1] != '\n')
        putchar('\n');
    fflush(stdout);
}

/* Several texts: each under its number when it is finished. */
static void print_next(const ft_generation *g, const ft_generated_text *generated)
{
    printf("%s==> %zu <==\n", g->num_reported > 0 ? "\n" : "", g->num_reported + 1);
    if (g->tokenizer == NULL)
        print_ids(generated);
    ft_print_piece(generated->text, generated->bytes);
    end_text(generated);
}

/* A single text: streamed. */
static void print_stream(ft_generation *g)
{
    const ft_generated_text *generated = &g->generated[0];
    if (generated->bytes > g->num_reported) /* the buffer may still be NULL before that */
        ft_print_piece(generated->text + g->num_reported, generated->bytes - g->num_reported);
    g->num_reported = generated->bytes;
    if (generated->reason == FT_FINISH_NONE)
        return;
    if (g->tokenizer == NULL)
        print_ids(generated);
    end_text(generated);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void begin_json(ft_generation *g)
{
    g->json = (ft_json_stream){ .file = stdout, .digits = 9 };
    ft_json_stream_begin(&g->json, NULL, '{');
    ft_json_stream_int(&g->json, "sequences", (int64_t) g->prompts.count);
    ft_json_stream_begin(&g->json, "results", '[');
}

static void write_next_json(ft_generation *g, const ft_generated_text *generated)
{
    ft_json_stream *json = &g->json;
    if (json->file == NULL)
        begin_json(g);
    ft_json_stream_begin(json, NULL, '{');
    ft_json_stream_int(json, "prompt_tokens", (int64_t) g->request[g->num_reported].prompt_tokens);
    if (g->tokenizer != NULL)
        ft_json_stream_string_n(json, "text", generated->bytes > 0 ? generated->text : "",
                                generated->bytes);
    ft_json_stream_ints(json, "ids", generated->id, generated->tokens);
    ft_json_stream_floats(json, "logprobs", generated->logprob, generated->tokens);
    ft_json_stream_string(json, "finish_reason", ft_finish_reason_name(generated->reason));
    ft_json_stream_end(json, '{');
    fflush(stdout);
}

static void write_summary_json(ft_json_stream *json, const ft_generation *g)
{
    const ft_generate_stats *s = &g->stats;
    ft_json_stream_end(json, '[');
    ft_json_stream_int(json, "prompt_tokens", (int64_t) s->prompt_tokens);
    ft_json_stream_int(json, "new_tokens", (int64_t) g->tokens);
    ft_json_stream_double(json, "prefill_seconds", s->prefill_seconds);
    ft_json_stream_double(json, "decode_seconds", s->decode_seconds);
    ft_json_stream_double(json, "prefill_tokens_per_second",
                          rate(s->prompt_tokens, s->prefill_seconds));
    ft_json_stream_double(json, "decode_tokens_per_second",
                          rate(s->decode_tokens, s->decode_seconds));
    ft_json_stream_end(json, '{');
}

/* ---- Both --------------------------------------------------------------------------------- */

void ft_generation_report(ft_generation *g)
{
    if (!g->reports)
        return;
    if (g->prompts.count == 1 && !g->run->json) {
        print_stream(g);
        return;
    }
    for (; g->num_reported < g->prompts.count &&
           g->generated[g->num_reported].reason != FT_FINISH_NONE;
         g->num_reported++) {
        ft_generated_text *generated = &g->generated[g->num_reported];
        if (g->run->json)
            write_next_json(g, generated);
        else
            print_next(g, generated);
        free_reported(generated, g->writes_file);
    }
}

void ft_generation_report_summary(ft_generation *g)
{
    if (g->run->json)
        write_summary_json(&g->json, g);
    else /* The first new token of a text belongs to its prefill. */
        ft_print_speed(g->reports ? stderr : stdout, g->prompts.count, g->tokens, &g->stats);
}

/* ---- File --------------------------------------------------------------------------------- */

/* Columns for new tokens: --max-new-tokens limited by the context, or the longest text. */
static size_t new_columns(const ft_generation *g)
{
    size_t max_tokens = 0;
    bool requested = g->run->sampling.max_new_tokens > 0;
    for (size_t i = 0; i < g->prompts.count; i++) {
        size_t new = requested ? ft_request_max_new_tokens(&g->request[i], g->context)
                               : g->generated[i].tokens;
        max_tokens = new > max_tokens ? new : max_tokens;
    }
    return max_tokens;
}

/* Padding after the end of a text: pad_token_id of encoder-decoders, else a stop id. */
static int32_t pad_id(const ft_generation *g)
{
    if (g->num_start_ids > 0)
        return g->model->config.pad_id;
    return g->stops > 0 ? g->stop_id[0] : 0;
}

/* Prompt, new tokens, then padding. */
static void fill_row(const ft_generation *g, size_t i, int32_t *row, size_t cols)
{
    const ft_request *r = &g->request[i];
    size_t new_tokens = g->generated[i].tokens, used = r->prompt_tokens + new_tokens;
    memcpy(row, r->prompt, r->prompt_tokens * sizeof *row);
    if (new_tokens > 0)
        memcpy(row + r->prompt_tokens, g->generated[i].id, new_tokens * sizeof *row);
    for (size_t col = used; col < cols; col++)
        row[col] = pad_id(g);
}

enum { IDS, LENGTHS, LOGPROBS };

/* Write one row of each tensor; `ids` and `logprobs` are buffers for a row. */
static ft_status put_row(ft_safetensors_stream *file, const ft_generation *g, size_t i,
                         int32_t *ids, size_t cols, float *logprobs, size_t new_columns_count,
                         ft_error *err)
{
    const ft_generated_text *generated = &g->generated[i];
    int32_t length = (int32_t) (g->request[i].prompt_tokens + generated->tokens);
    fill_row(g, i, ids, cols);
    FT_TRY(ft_safetensors_stream_write(file, IDS, ids, cols * sizeof *ids, err));
    FT_TRY(ft_safetensors_stream_write(file, LENGTHS, &length, sizeof length, err));
    if (!g->run->logprobs)
        return FT_OK;
    memset(logprobs, 0, new_columns_count * sizeof *logprobs);
    if (generated->tokens > 0)
        memcpy(logprobs, generated->logprob, generated->tokens * sizeof *logprobs);
    return ft_safetensors_stream_write(file, LOGPROBS, logprobs,
                                       new_columns_count * sizeof *logprobs, err);
}

ft_status ft_generation_write(const ft_generation *g, ft_atomic_file *output, ft_error *err)
{
    size_t new_columns_count = new_columns(g),
           cols = (g->num_start_ids > 0 ? g->num_start_ids : g->prompts.cols) + new_columns_count;
    int64_t rows = (int64_t) g->prompts.count;
    const ft_named_tensor tensors[] = {
        [IDS] = { "output_ids", { FT_I32, FT_ROW, 2, { rows, (int64_t) cols }, NULL } },
        [LENGTHS] = { "lengths", { FT_I32, FT_ROW, 1, { rows }, NULL } },
        [LOGPROBS] = { "logprobs",
                       { FT_F32, FT_ROW, 2, { rows, (int64_t) new_columns_count }, NULL } },
    };
    ft_safetensors_stream *file = NULL;
    int32_t *ids = ft_calloc(cols, sizeof *ids);
    float *logprobs = ft_calloc(new_columns_count, sizeof *logprobs);
    ft_status status = FT_OK;
    if (ids == NULL || logprobs == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for a text of %zu tokens", cols);
    if (status == FT_OK)
        status = ft_safetensors_stream_open(&file, output, tensors, g->run->logprobs ? 3 : 2, err);
    for (size_t i = 0; i < g->prompts.count && status == FT_OK; i++)
        status = put_row(file, g, i, ids, cols, logprobs, new_columns_count, err);
    if (status == FT_OK)
        status = ft_safetensors_stream_commit(file, err);
    ft_safetensors_stream_free(file);
    free(ids);
    free(logprobs);
    return status;
}
