/*
 * vocabulary_files.c - read vocab.txt, vocab.json and merges.txt.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/draft/vocabulary_files.h"

#include "runtime/base/json_build.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static ft_status no_memory(const ft_tokenizer_draft *draft, const char *file)
{
    return ft_fail(draft->source->err, FT_ENOMEM, "%s: no memory", file);
}

/* ---- Lines ---------------------------------------------------------------------------------- */

/* A text file that is read line by line. */
typedef struct {
    const ft_tokenizer_draft *draft;
    const char *file;
    char *text, *at, *end;
    size_t number; /* of the line, from 1 */
    char *line;    /* without its end */
    size_t bytes;
} line_reader;

static ft_status open_lines(line_reader *lines, const ft_tokenizer_draft *draft, const char *file)
{
    size_t bytes;
    *lines = (line_reader){ .draft = draft, .file = file };
    FT_TRY(ft_tokenizer_source_read_text(draft->source, file, &lines->text, &bytes));
    lines->at = lines->text;
    lines->end = lines->text + bytes;
    return FT_OK;
}

static bool next_line(line_reader *lines)
{
    if (lines->at == lines->end)
        return false;
    char *feed = memchr(lines->at, '\n', (size_t) (lines->end - lines->at));
    char *stop = feed != NULL ? feed : lines->end;
    lines->line = lines->at;
    lines->bytes = (size_t) (stop - lines->at);
    lines->bytes -= lines->bytes > 0 && stop[-1] == '\r';
    lines->at = feed != NULL ? feed + 1 : lines->end;
    lines->number++;
    return true;
}

static ft_status fail_line(const line_reader *lines, const char *what)
{
    return ft_fail(lines->draft->source->err, FT_EFORMAT,
                   "%s: line %zu: found \"%.*s\", expected %s", lines->file, lines->number,
                   (int) ft_min_size(lines->bytes, 64), lines->line, what);
}

/* JSON texts cannot hold U+0000. */
static ft_status check_line(const line_reader *lines)
{
    return memchr(lines->line, '\0', lines->bytes) == NULL
               ? FT_OK
               : fail_line(lines, "a text without zero bytes");
}

/* ---- vocab.txt ------------------------------------------------------------------------------ */

/* Of equal lines the last one counts, as in transformers: the ids of the others are never used. */
static ft_status add_line(ft_tokenizer_draft *draft, line_reader *lines, json_t **vocab)
{
    int32_t id = (int32_t) (lines->number - 1);
    FT_TRY(check_line(lines));
    if (ft_vocabulary_add_last(&draft->vocabulary, lines->line, lines->bytes, id) != FT_OK)
        return no_memory(draft, lines->file);
    lines->line[lines->bytes] = '\0'; /* its end, or the zero byte behind the file */
    ft_json_set(vocab, lines->line, json_integer(id));
    return *vocab == NULL ? no_memory(draft, lines->file) : FT_OK;
}

ft_status ft_vocab_txt_read(ft_tokenizer_draft *draft, const char *file, json_t **vocab)
{
    line_reader lines;
    FT_TRY(open_lines(&lines, draft, file));
    ft_status rc = FT_OK;
    *vocab = json_object();
    while (rc == FT_OK && next_line(&lines))
        rc = add_line(draft, &lines, vocab);
    if (rc == FT_OK && lines.number == 0)
        rc = ft_fail(draft->source->err, FT_EFORMAT, "%s: is empty", file);
    free(lines.text);
    return rc;
}

/* ---- vocab.json ----------------------------------------------------------------------------- */

static ft_status add_entry(ft_tokenizer_draft *draft, const char *file, const char *text,
                           const json_t *id)
{
    char place[96];
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX)
        return ft_fail(draft->source->err, FT_EFORMAT, "%s: \"%.64s\" has no id from 0 to %d", file,
                       text, INT32_MAX);
    snprintf(place, sizeof place, "%.64s", file);
    return ft_tokenizer_draft_add_piece(draft, text, strlen(text), (int32_t) json_integer_value(id),
                                        place);
}

ft_status ft_vocab_json_read(ft_tokenizer_draft *draft, const char *file, json_t **vocab)
{
    const char *text;
    json_t *id;
    FT_TRY(ft_tokenizer_source_read_json(draft->source, file, JSON_REJECT_DUPLICATES, vocab));
    json_object_foreach(*vocab, text, id) FT_TRY(add_entry(draft, file, text, id));
    if (!ft_vocabulary_sort(&draft->vocabulary))
        return no_memory(draft, file);
    const ft_vocabulary_token *twice = ft_vocabulary_find_duplicate_id(&draft->vocabulary);
    if (twice == NULL)
        return FT_OK;
    return ft_fail(draft->source->err, FT_EFORMAT, "%s: \"%.*s\": id %" PRId32 " is used twice",
                   file, (int) ft_min_size(twice->bytes, 64),
                   ft_vocabulary_token_text(&draft->vocabulary, twice), twice->id);
}

/* ---- merges.txt ----------------------------------------------------------------------------- */

static bool has_token(const line_reader *lines, const char *text, size_t bytes)
{
    return ft_vocabulary_find(&lines->draft->vocabulary, text, bytes) != NULL;
}

static ft_status add_pair(const line_reader *lines, json_t **merges)
{
    char *space = memchr(lines->line, ' ', lines->bytes);
    size_t left = space == NULL ? 0 : (size_t) (space - lines->line);
    size_t right = lines->bytes - left - 1;
    FT_TRY(check_line(lines));
    if (left == 0 || right == 0 || memchr(space + 1, ' ', right) != NULL)
        return fail_line(lines, "two tokens and a space between");
    if (!has_token(lines, lines->line, left) || !has_token(lines, space + 1, right))
        return fail_line(lines, "two tokens of the vocabulary");
    ft_json_append(merges, json_pack("[s%s%]", lines->line, left, space + 1, right));
    memmove(space, space + 1, right); /* the line becomes the merged token */
    if (*merges != NULL && !has_token(lines, lines->line, lines->bytes - 1))
        return ft_fail(lines->draft->source->err, FT_EFORMAT,
                       "%s: line %zu: the merged token \"%.*s\" is not in the vocabulary",
                       lines->file, lines->number, (int) ft_min_size(lines->bytes - 1, 64),
                       lines->line);
    return *merges == NULL ? no_memory(lines->draft, lines->file) : FT_OK;
}

static bool is_version(const line_reader *lines)
{
    return lines->number == 1 && lines->bytes >= 8 && memcmp(lines->line, "#version", 8) == 0;
}

ft_status ft_merges_txt_read(const ft_tokenizer_draft *draft, const char *file, json_t **merges)
{
    line_reader lines;
    FT_TRY(open_lines(&lines, draft, file));
    ft_status rc = FT_OK;
    *merges = json_array();
    while (rc == FT_OK && next_line(&lines))
        if (lines.bytes > 0 && !is_version(&lines))
            rc = add_pair(&lines, merges);
    free(lines.text);
    return rc;
}
