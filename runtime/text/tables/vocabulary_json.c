/*
 * vocabulary_json.c - read words with ids, and pairs of words, token by token.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tables/vocabulary_json.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/base/json_scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The state of reading a table: `strings` has space for those of one entry. */
typedef struct {
    ft_json_scanner scan;
    char *strings;
} reader;

static ft_status no_memory(const reader *r)
{
    return ft_fail(r->scan.err, FT_ENOMEM, "%s: no memory", r->scan.file);
}

static ft_status open_reader(reader *r, const ft_tokenizer_tables *tables, ft_json_span span,
                             const char *name, ft_error *err)
{
    const unsigned char *json = (const unsigned char *) tables->json;
    r->scan = (ft_json_scanner){ .file = tables->file,
                                 .tensor = name,
                                 .what = "file",
                                 .start = json,
                                 .at = json + span.start,
                                 .end = json + span.end,
                                 .err = err };
    r->strings = malloc(span.end - span.start);
    return r->strings == NULL ? no_memory(r) : FT_OK;
}

/* Read the next string; the `first` of an entry reuses the memory of the previous entry. */
static ft_status read_string(reader *r, bool first, const char **text, size_t *bytes)
{
    if (first)
        r->scan.out = r->strings;
    FT_TRY(ft_json_scan_string(&r->scan, text));
    *bytes = (size_t) (r->scan.out - *text) - 1;
    return FT_OK;
}

/* ---- Words -------------------------------------------------------------------------------- */

static ft_status read_token(reader *r, ft_vocabulary *vocabulary)
{
    const char *text;
    size_t bytes;
    int64_t id;
    FT_TRY(read_string(r, true, &text, &bytes));
    r->scan.field = text;
    FT_TRY(ft_json_scan_expect(&r->scan, ':'));
    FT_TRY(ft_json_scan_integer(&r->scan, &id));
    if (id > INT32_MAX)
        return ft_json_scan_fail(&r->scan, "found %" PRId64 ", expected at most %d", id, INT32_MAX);
    ft_status rc = ft_vocabulary_add(vocabulary, text, bytes, (int32_t) id);
    if (rc == FT_EARG)
        return ft_json_scan_fail(&r->scan, "duplicate object key");
    r->scan.field = NULL;
    return rc == FT_OK ? FT_OK : no_memory(r);
}

static ft_status read_tokens(reader *r, ft_vocabulary *vocabulary)
{
    FT_TRY(ft_json_scan_expect(&r->scan, '{'));
    if (ft_json_scan_accept(&r->scan, '}'))
        return FT_OK;
    do
        FT_TRY(read_token(r, vocabulary));
    while (ft_json_scan_accept(&r->scan, ','));
    return ft_json_scan_close(&r->scan, '}');
}

static ft_status check_duplicate_ids(reader *r, ft_vocabulary *vocabulary)
{
    if (!ft_vocabulary_sort(vocabulary))
        return no_memory(r);
    const ft_vocabulary_token *token = ft_vocabulary_find_duplicate_id(vocabulary);
    if (token == NULL)
        return FT_OK;
    return ft_fail(r->scan.err, FT_EFORMAT, "%s: model.vocab: %.*s: id %" PRId32 " is used twice",
                   r->scan.file, (int) ft_min_size(token->bytes, 64),
                   ft_vocabulary_token_text(vocabulary, token), token->id);
}

ft_status ft_json_read_vocabulary(const ft_tokenizer_tables *tables, ft_vocabulary *vocabulary,
                                  ft_error *err)
{
    reader r;
    ft_status rc = open_reader(&r, tables, tables->vocab, "model.vocab", err);
    if (rc == FT_OK)
        rc = read_tokens(&r, vocabulary);
    if (rc == FT_OK)
        rc = check_duplicate_ids(&r, vocabulary);
    free(r.strings);
    return rc;
}

/* ---- Merges ------------------------------------------------------------------------------- */

typedef struct {
    const ft_vocabulary *vocabulary;
    ft_bpe_merge *merge;
    size_t count, capacity;
    ft_strbuf merged; /* the concatenation of a pair */
    size_t prefix;    /* bytes that the right token of a pair starts with, which merging removes */
    size_t last;      /* index of the token that the last pair merges into */
} merge_list;

/* The index of the token with this text. */
static ft_status find_token_index(const reader *r, const merge_list *list, const char *text,
                                  size_t bytes, size_t *index)
{
    const ft_vocabulary_token *token = ft_vocabulary_find(list->vocabulary, text, bytes);
    if (token == NULL)
        return ft_json_scan_fail(&r->scan, "merge %zu: \"%.*s\" is not in the vocabulary",
                                 list->count, (int) ft_min_size(bytes, 64), text);
    *index = (size_t) (token - list->vocabulary->token);
    return FT_OK;
}

/* A pair usually merges into the token of the previous pair, or the token after it. */
static ft_status find_merged(const reader *r, merge_list *list, int32_t *id)
{
    const ft_vocabulary *v = list->vocabulary;
    const ft_strbuf *merged = &list->merged;
    for (size_t i = list->last; i < v->count && i <= list->last + 1; i++)
        if (ft_vocabulary_token_equals(v, &v->token[i], merged->data, merged->bytes)) {
            list->last = i;
            *id = v->token[i].id;
            return FT_OK;
        }
    FT_TRY(find_token_index(r, list, merged->data, merged->bytes, &list->last));
    *id = v->token[list->last].id;
    return FT_OK;
}

static bool grow(merge_list *list)
{
    ft_bpe_merge *merge = ft_array_grow(list->merge, &list->capacity, 1024, sizeof *merge);
    if (merge != NULL)
        list->merge = merge;
    return merge != NULL;
}

static ft_status add_merge(const reader *r, merge_list *list, const char *left, size_t left_bytes,
                           const char *right, size_t right_bytes)
{
    size_t left_index = 0, right_index = 0;
    int32_t id = 0;
    const ft_vocabulary_token *token = list->vocabulary->token;
    const size_t cut = ft_min_size(list->prefix, right_bytes);
    list->merged.bytes = 0;
    if ((list->count == list->capacity && !grow(list)) ||
        !ft_strbuf_append(&list->merged, left, left_bytes) ||
        !ft_strbuf_append(&list->merged, right + cut, right_bytes - cut))
        return no_memory(r);
    FT_TRY(find_token_index(r, list, left, left_bytes, &left_index));
    FT_TRY(find_token_index(r, list, right, right_bytes, &right_index));
    FT_TRY(find_merged(r, list, &id));
    list->merge[list->count] = (ft_bpe_merge){ .left = (uint32_t) token[left_index].id,
                                               .right = (uint32_t) token[right_index].id,
                                               .rank = (uint32_t) list->count + 1,
                                               .id = id };
    list->count++;
    return FT_OK;
}

/* ["a", "b"] */
static ft_status read_pair(reader *r, merge_list *list)
{
    const char *left, *right;
    size_t left_bytes, right_bytes;
    FT_TRY(read_string(r, true, &left, &left_bytes));
    FT_TRY(ft_json_scan_expect(&r->scan, ','));
    FT_TRY(read_string(r, false, &right, &right_bytes));
    FT_TRY(ft_json_scan_close(&r->scan, ']'));
    return add_merge(r, list, left, left_bytes, right, right_bytes);
}

/* "a b"; files converted from merges.txt start with a version line. */
static ft_status read_spaced_pair(reader *r, merge_list *list)
{
    const char *text;
    size_t bytes;
    FT_TRY(read_string(r, true, &text, &bytes));
    const char *space = memchr(text, ' ', bytes);
    if (strncmp(text, "#version", 8) == 0)
        return FT_OK;
    if (space == NULL || memchr(space + 1, ' ', bytes - (size_t) (space + 1 - text)) != NULL)
        return ft_json_scan_fail(&r->scan, "merge %zu: found \"%.64s\", expected two words",
                                 list->count, text);
    size_t left = (size_t) (space - text);
    return add_merge(r, list, text, left, space + 1, bytes - left - 1);
}

static ft_status read_merges(reader *r, merge_list *list)
{
    FT_TRY(ft_json_scan_expect(&r->scan, '['));
    if (ft_json_scan_accept(&r->scan, ']'))
        return FT_OK;
    do
        FT_TRY(ft_json_scan_accept(&r->scan, '[') ? read_pair(r, list) : read_spaced_pair(r, list));
    while (ft_json_scan_accept(&r->scan, ','));
    return ft_json_scan_close(&r->scan, ']');
}

ft_status ft_json_read_merges(const ft_tokenizer_tables *tables, const ft_vocabulary *vocabulary,
                              ft_bpe *bpe, ft_error *err)
{
    reader r;
    merge_list list = { .vocabulary = vocabulary,
                        .prefix = bpe->prefix == NULL ? 0 : strlen(bpe->prefix) };
    ft_status rc = open_reader(&r, tables, tables->merges, "model.merges", err);
    if (rc == FT_OK)
        rc = read_merges(&r, &list);
    if (rc == FT_OK && !ft_bpe_init(bpe, vocabulary, list.merge, list.count))
        rc = no_memory(&r);
    ft_strbuf_fini(&list.merged);
    free(list.merge);
    free(r.strings);
    return rc;
}
