/*
 * run_report.c - what has become of texts: for people as it comes, for programs at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/requests.h"
#include "runtime/safetensors.h"
#include "runtime/tools/generation.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- For people --------------------------------------------------------------------------- */

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

/* A text's first new token is chosen by the run that ends its prompt. */
size_t ft_generation_tokens(const ft_generation *g)
{
    size_t tokens = 0;
    for (size_t i = 0; i < g->prompts.count; i++)
        tokens += g->grown[i].tokens;
    return tokens;
}

void ft_print_speed(FILE *file, size_t sequences, size_t made, const ft_generate_stats *stats)
{
    fprintf(file, "%zu sequence%s, %zu prompt tokens, %zu new tokens; ", sequences,
            sequences == 1 ? "" : "s", stats->prompt_tokens, made);
    fprintf(file, "prefill %.1f tokens/s, decode %.1f tokens/s\n",
            rate(stats->prompt_tokens, stats->prompt_seconds),
            rate(stats->step_tokens, stats->step_seconds));
}

/* The end of what is printed of one text. */
static void end_text(const ft_growth *grown)
{
    if (grown->bytes == 0 || grown->text[grown->bytes - 1] != '\n')
        putchar('\n');
    fflush(stdout);
}

/* Many texts: each when it is complete, under its number. */
static void tell_next(ft_generation *g)
{
    const ft_growth *grown = &g->grown[g->told];
    printf("%s==> %zu <==\n", g->told > 0 ? "\n" : "", g->told + 1);
    ft_print_piece(grown->text, grown->bytes);
    end_text(grown);
    g->told++;
}

void ft_generation_tell(ft_generation *g)
{
    if (g->run->json || g->run->data != NULL)
        return;
    if (g->prompts.count > 1) {
        while (g->told < g->prompts.count && g->grown[g->told].reason != FT_REASON_NONE)
            tell_next(g);
        return;
    }
    ft_growth *grown = &g->grown[0];
    if (grown->bytes > g->told) /* before that there may be no text at all */
        ft_print_piece(grown->text + g->told, grown->bytes - g->told);
    g->told = grown->bytes;
    if (grown->reason != FT_REASON_NONE)
        end_text(grown);
}

/* ---- For programs ------------------------------------------------------------------------- */

static json_t *json_of(const ft_generation *g, size_t i)
{
    const ft_growth *grown = &g->grown[i];
    json_t *object = json_object(), *ids = json_array(), *logprobs = json_array();
    for (size_t k = 0; k < grown->tokens; k++) {
        json_array_append_new(ids, json_integer(grown->id[k]));
        json_array_append_new(logprobs, json_real((double) grown->logprob[k]));
    }
    json_object_set_new(object, "prompt_tokens",
                        json_integer((json_int_t) g->request[i].prompt_tokens));
    if (g->tokenizer != NULL)
        json_object_set_new(object, "text",
                            json_stringn(grown->bytes > 0 ? grown->text : "", grown->bytes));
    json_object_set_new(object, "ids", ids);
    json_object_set_new(object, "logprobs", logprobs);
    json_object_set_new(object, "reason", json_string(ft_reason_name(grown->reason)));
    return object;
}

void ft_generation_print_json(const ft_generation *g)
{
    const ft_generate_stats *s = &g->stats;
    json_t *results = json_array();
    for (size_t i = 0; i < g->prompts.count; i++)
        json_array_append_new(results, json_of(g, i));
    json_t *root = json_pack(
        "{sI sI sI sf sf sf sf so}", "sequences", (json_int_t) g->prompts.count, "prompt_tokens",
        (json_int_t) s->prompt_tokens, "new_tokens", (json_int_t) ft_generation_tokens(g),
        "prefill_seconds", s->prompt_seconds, "decode_seconds", s->step_seconds,
        "prefill_tokens_per_second", rate(s->prompt_tokens, s->prompt_seconds),
        "decode_tokens_per_second", rate(s->step_tokens, s->step_seconds), "results", results);
    json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(root);
}

/* Columns for new tokens: as many as were asked for and the context has, or as there are. */
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

/* What stands behind the end of a text: an encoder-decoder's padding, else what ends texts. */
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

typedef struct written {
    int32_t *ids, *lengths; /* [N, P + new], [N] */
    float *logprobs;        /* [N, new] */
    size_t cols, fresh;
} written;

static ft_status fill(const ft_generation *g, written *w, ft_error *err)
{
    size_t count = g->prompts.count;
    w->fresh = new_columns(g);
    w->cols = (g->begins > 0 ? g->begins : g->prompts.cols) + w->fresh;
    w->ids = ft_array(count * w->cols, sizeof *w->ids);
    w->lengths = ft_array(count, sizeof *w->lengths);
    w->logprobs = ft_array(count * w->fresh, sizeof *w->logprobs);
    if (w->ids == NULL || w->lengths == NULL || w->logprobs == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu texts of %zu tokens", count, w->cols);
    for (size_t i = 0; i < count; i++) {
        fill_row(g, i, w->ids + i * w->cols, w->cols);
        w->lengths[i] = (int32_t) (g->request[i].prompt_tokens + g->grown[i].tokens);
        if (g->grown[i].tokens > 0)
            memcpy(w->logprobs + i * w->fresh, g->grown[i].logprob,
                   g->grown[i].tokens * sizeof *w->logprobs);
    }
    return FT_OK;
}

ft_status ft_generation_write(const ft_generation *g, ft_output *output, ft_error *err)
{
    written w = { 0 };
    ft_status status = fill(g, &w, err);
    int64_t rows = (int64_t) g->prompts.count;
    const ft_named_tensor tensors[] = {
        { "output_ids", { FT_I32, FT_ROW, 2, { rows, (int64_t) w.cols }, w.ids } },
        { "lengths", { FT_I32, FT_ROW, 1, { rows }, w.lengths } },
        { "logprobs", { FT_F32, FT_ROW, 2, { rows, (int64_t) w.fresh }, w.logprobs } },
    };
    if (status == FT_OK)
        status = ft_safetensors_write_to(output, tensors, g->run->logprobs ? 3 : 2, err);
    free(w.ids);
    free(w.lengths);
    free(w.logprobs);
    return status;
}
