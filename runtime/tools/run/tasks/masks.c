/*
 * masks.c - the most probable words for each mask of a text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/run/tasks/task.h"

#include "runtime/cli/options.h"
#include "runtime/model/model.h"
#include "runtime/scores/tasks/top_tokens.h"

#include <stdio.h>

enum { MAX_TOKEN = 256 /* bytes of a decoded token that are shown */ };

/* A token as text, without a leading space. */
static const char *decode(const ft_tokenizer *tokenizer, int32_t id, char text[MAX_TOKEN + 1])
{
    size_t bytes = 0;
    if (ft_tokenizer_decode(tokenizer, &id, 1, false, text, MAX_TOKEN, &bytes, NULL) != FT_OK)
        bytes = 0;
    text[bytes < MAX_TOKEN ? bytes : MAX_TOKEN] = '\0';
    return text[0] == ' ' ? text + 1 : text;
}

static void report_token(const ft_task_rows *rows, const ft_top_token *token, ft_json_stream *json)
{
    char text[MAX_TOKEN + 1];
    const char *word = decode(rows->tokenizer, token->id, text);
    if (json == NULL) {
        printf("  %6.4f  ", token->probability);
        ft_tool_print_escaped(word, 0);
        putchar('\n');
        return;
    }
    ft_json_stream_begin(json, NULL, '{');
    ft_json_stream_string(json, "token", word);
    ft_json_stream_int(json, "id", token->id);
    ft_json_stream_double(json, "score", token->probability);
    ft_json_stream_end(json, '{');
}

static void report_mask(const ft_task_rows *rows, const float *logits, ft_json_stream *json)
{
    ft_top_token top[FT_TOP_TOKENS_MAX];
    size_t count = ft_top_tokens_find(top, (size_t) rows->options.top, logits,
                                      (size_t) rows->model->config.vocabulary);
    if (json != NULL)
        ft_json_stream_begin(json, NULL, '[');
    for (size_t i = 0; i < count; i++)
        report_token(rows, &top[i], json);
    if (json != NULL)
        ft_json_stream_end(json, '[');
}

bool ft_report_masks(ft_task_rows *rows, size_t row, const float *const logits[2],
                     ft_json_stream *json)
{
    const ft_encoding *encoding = rows->encoded->row[row];
    size_t vocabulary = (size_t) rows->model->config.vocabulary, masks = 0;
    int32_t mask = ft_mask_token_id(rows->tokenizer);
    if (json != NULL)
        ft_json_stream_begin(json, "masks", '[');
    else {
        ft_tool_print_escaped(rows->examples->example[rows->encoded->example[row]].text, 0);
        putchar('\n');
    }
    for (size_t i = 0; i < encoding->count; i++) {
        if (encoding->ids[i] != mask)
            continue;
        if (json == NULL && masks > 0)
            putchar('\n');
        report_mask(rows, logits[0] + i * vocabulary, json);
        masks++;
    }
    if (json != NULL)
        ft_json_stream_end(json, '[');
    else if (masks == 0)
        printf("  has no mask token\n");
    return true;
}
