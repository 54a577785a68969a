/*
 * answers.c - the answer to each question, with its place in the context.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/run/tasks/task.h"

#include "runtime/base/characters.h"
#include "runtime/cli/options.h"

#include <stdio.h>

enum { SHOWN = 40 /* bytes of the context on each side */ };

/* The start of the context that is shown before an answer, at a character. */
static size_t shown_start(const char *context, size_t start)
{
    size_t at = start > SHOWN ? start - SHOWN : 0;
    while (at < start && (context[at] & 0xc0) == 0x80)
        at++;
    return at;
}

static size_t shown_end(const char *context, size_t end)
{
    size_t at = end;
    while (context[at] != '\0' && at < end + SHOWN)
        at++;
    while (at > end && (context[at] & 0xc0) == 0x80)
        at--;
    return at;
}

static void print_answer(const ft_answer *answer, const ft_example *example)
{
    const char *context = example->pair;
    ft_tool_print_escaped(example->text, 0);
    if (ft_answer_is_none(answer)) {
        printf("\n  no answer  %6.4f\n", answer->null_score);
        return;
    }
    printf("\n  ");
    ft_tool_print_escaped_bytes(context + answer->start, answer->end - answer->start);
    size_t before = shown_start(context, answer->start), after = shown_end(context, answer->end);
    printf("  %6.4f  %zu-%zu  %s", answer->score, ft_count_characters(context, answer->start),
           ft_count_characters(context, answer->end), before > 0 ? "..." : "");
    ft_tool_print_escaped_bytes(context + before, after - before);
    puts(context[after] != '\0' ? "..." : "");
}

static void put_answer(ft_json_stream *json, const ft_answer *answer, const char *context)
{
    if (ft_answer_is_none(answer)) {
        ft_json_stream_null(json, "answer");
        ft_json_stream_double(json, "score", answer->null_score);
        return;
    }
    ft_json_stream_string_n(json, "answer", context + answer->start, answer->end - answer->start);
    ft_json_stream_double(json, "score", answer->score);
    ft_json_stream_int(json, "start", (int64_t) ft_count_characters(context, answer->start));
    ft_json_stream_int(json, "end", (int64_t) ft_count_characters(context, answer->end));
}

bool ft_report_answer(ft_task_rows *rows, size_t row, const float *const logits[2],
                      ft_json_stream *json)
{
    const ft_encoded_examples *encoded = rows->encoded;
    size_t example = encoded->example[row];
    if (row == 0 || encoded->example[row - 1] != example)
        ft_answer_init(&rows->answer);
    ft_answer_add_window(&rows->answer, encoded->row[row], logits[0], logits[1]);
    if (row + 1 < encoded->count && encoded->example[row + 1] == example)
        return false;
    if (json != NULL)
        put_answer(json, &rows->answer, rows->examples->example[example].pair);
    else
        print_answer(&rows->answer, &rows->examples->example[example]);
    return true;
}
