/*
 * entities.c - the entities of each text, with their labels, scores and places.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/run/tasks/task.h"

#include "runtime/base/characters.h"
#include "runtime/cli/options.h"
#include "runtime/scores/tasks/tagged_entities.h"

#include <stdio.h>

/* The text that a token comes from. */
static const char *text_of(const ft_example *example, const ft_encoding *encoding, size_t token)
{
    return encoding->sequence[token] == 1 ? example->pair : example->text;
}

static void print_entity(const ft_tagged_entity *entity, const char *text)
{
    printf("  %-12s  %6.4f  %zu-%zu  ", entity->label, entity->score,
           ft_count_characters(text, entity->start), ft_count_characters(text, entity->stop));
    ft_tool_print_escaped_bytes(text + entity->start, entity->stop - entity->start);
    putchar('\n');
}

static void put_entity(ft_json_stream *json, const ft_tagged_entity *entity, const char *text)
{
    ft_json_stream_begin(json, NULL, '{');
    ft_json_stream_string(json, "label", entity->label);
    ft_json_stream_double(json, "score", entity->score);
    ft_json_stream_int(json, "start", (int64_t) ft_count_characters(text, entity->start));
    ft_json_stream_int(json, "end", (int64_t) ft_count_characters(text, entity->stop));
    ft_json_stream_string_n(json, "text", text + entity->start, entity->stop - entity->start);
    ft_json_stream_end(json, '{');
}

bool ft_report_entities(ft_task_rows *rows, size_t row, const float *const logits[2],
                        ft_json_stream *json)
{
    const ft_encoding *encoding = rows->encoded->row[row];
    const ft_example *example = &rows->examples->example[rows->encoded->example[row]];
    ft_tagged_entities found;
    if (!ft_tagged_entities_find(&found, rows->model, encoding, logits[0], rows->options.by_word))
        return false;
    if (json != NULL)
        ft_json_stream_begin(json, "entities", '[');
    else {
        ft_tool_print_escaped(example->text, 0);
        putchar('\n');
    }
    for (size_t i = 0; i < found.count; i++) {
        const ft_tagged_entity *entity = &found.entity[i];
        const char *text = text_of(example, encoding, entity->first);
        if (json != NULL)
            put_entity(json, entity, text);
        else
            print_entity(entity, text);
    }
    if (json != NULL)
        ft_json_stream_end(json, '[');
    ft_tagged_entities_fini(&found);
    return true;
}
