/*
 * examples.c - lists of examples: lines, pairs and operands.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/texts/examples.h"

#include "runtime/base/utf8.h"
#include "runtime/data/texts/example_json.h"
#include "runtime/data/texts/text_reader.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Overhead per example: the list entry and the allocation header. */
enum { COST = 48 };

ft_status ft_examples_fail(const ft_examples *examples, size_t index, ft_error *err,
                           const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return ft_fail(err, FT_EFORMAT, "%s: line %zu: %s", examples->name, index + 1, text);
}

static ft_status no_memory(const ft_examples *examples, ft_error *err)
{
    return ft_fail(err, FT_ENOMEM, "%s: line %zu: no memory for this text", examples->name,
                   examples->count + 1);
}

static ft_status init(ft_examples *out, const char *name, ft_error *err)
{
    *out = (ft_examples){ .name = ft_strdup(name) };
    return out->name != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "%s: no memory", name);
}

/* The next example, all zero; it is not part of the list yet. */
static ft_example *reserve(ft_examples *list)
{
    if (list->count == list->capacity) {
        ft_example *grown = ft_array_grow(list->example, &list->capacity, 16, sizeof *grown);
        if (grown == NULL)
            return NULL;
        list->example = grown;
    }
    list->example[list->count] = (ft_example){ 0 };
    return &list->example[list->count];
}

/* A line without or with a pair after a tab. */
static ft_status add_line(ft_examples *list, const char *line, bool is_pair, ft_error *err)
{
    ft_example *example = reserve(list);
    const char *tab = is_pair ? strchr(line, '\t') : NULL;
    if (is_pair && tab == NULL)
        return ft_examples_fail(list, list->count, err,
                                "has no tab, expected two texts parted by one");
    if (example == NULL)
        return no_memory(list, err);
    list->count++;
    example->text = ft_strdup(line);
    if (example->text == NULL)
        return no_memory(list, err);
    list->bytes += strlen(line) + COST;
    if (tab == NULL)
        return FT_OK;
    example->text[tab - line] = '\0';
    example->pair = ft_strdup(tab + 1);
    return example->pair == NULL ? no_memory(list, err) : FT_OK;
}

static ft_status add_json(ft_examples *list, const char *line, ft_example_fields *fields,
                          ft_error *err)
{
    ft_example *example = reserve(list);
    if (example == NULL)
        return no_memory(list, err);
    list->count++;
    list->bytes += 4 * strlen(line) + COST; /* parsed JSON is larger than its text */
    return ft_example_parse(example, fields, list, line, err);
}

static bool is_json_lines(const char *path, const ft_examples_options *options)
{
    size_t bytes = strlen(path);
    return !options->whole_file &&
           (options->fields != NULL || (bytes > 6 && strcmp(path + bytes - 6, ".jsonl") == 0));
}

static ft_status add_all(ft_examples *out, ft_text_reader *from, const ft_examples_options *options,
                         ft_error *err)
{
    bool is_json = is_json_lines(from->name, options);
    ft_example_fields fields = { .names = options->fields, .targets = options->targets };
    const char *text;
    FT_TRY(ft_text_reader_next(from, &text, err));
    if (text == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: contains no text", from->name);
    while (text != NULL) {
        FT_TRY(is_json ? add_json(out, text, &fields, err)
                       : add_line(out, text, options->pairs, err));
        if (out->bytes > FT_EXAMPLES_MAX_BYTES)
            return ft_fail(err, FT_ELIMIT,
                           "%s: line %zu: the texts up to this line exceed the limit of %d MiB; "
                           "split the file",
                           from->name, from->count, FT_EXAMPLES_MAX_BYTES >> 20);
        FT_TRY(ft_text_reader_next(from, &text, err));
    }
    return FT_OK;
}

ft_status ft_examples_read(ft_examples *out, const char *path, const ft_examples_options *options,
                           ft_error *err)
{
    ft_text_reader from;
    *out = (ft_examples){ 0 };
    FT_TRY(ft_text_reader_open(&from, path, options->whole_file, err));
    ft_status status = init(out, from.name, err);
    if (status == FT_OK)
        status = add_all(out, &from, options, err);
    ft_text_reader_close(&from);
    return status;
}

/* Command line arguments may be arbitrary bytes. */
static ft_status check_operand(const char *text, size_t number, ft_error *err)
{
    size_t bytes = strlen(text), valid = ft_utf8_valid_prefix(text, bytes);
    if (valid == bytes)
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "text %zu: byte %zu is 0x%02x, expected valid UTF-8", number,
                   valid, (unsigned) (unsigned char) text[valid]);
}

ft_status ft_examples_copy(ft_examples *out, char *const *line, size_t count, bool pairs,
                           ft_error *err)
{
    FT_TRY(init(out, "the command line", err));
    for (size_t i = 0; i < count; i++) {
        FT_TRY(check_operand(line[i], i + 1, err));
        FT_TRY(add_line(out, line[i], pairs, err));
    }
    return FT_OK;
}

void ft_examples_fini(ft_examples *examples)
{
    for (size_t i = 0; i < examples->count; i++) {
        free(examples->example[i].text);
        free(examples->example[i].pair);
        json_decref(examples->example[i].json);
    }
    free(examples->example);
    free(examples->name);
    *examples = (ft_examples){ 0 };
}
