/*
 * pipelines-t.c - tokenizers of every published family, and random pipelines of all components,
 * give the ids, type ids and offsets of the `tokenizers` library.
 *
 * tests/golden/make-tokenizers.py made the tokenizers and what the library says of 1,000 lines and
 * 200 pairs each; make-scripts.py those with sequences in sequences and with UnicodeScripts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/characters.h"
#include "runtime/base/strbuf.h"
#include "runtime/text/tokenizer.h"
#include "tests/lib/golden_rows.h"
#include "tests/tap/tap.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 1000, PAIRS = 200, BLOCK = 50, DIGEST = 16 };

static ft_error err;
static json_t *line[LINES]; /* strings, which may hold NUL */
static char *charsmap;

/* ---- Files ---------------------------------------------------------------------------------- */

static void read_lines(void)
{
    FILE *file = open_golden("tests/golden/bpe-lines.jsonl");
    for (size_t i = 0; i < LINES; i++) {
        json_t *row = read_row(file);
        line[i] = json_incref(json_array_get(row, 0));
        json_decref(row);
    }
    fclose(file);
}

static void read_charsmap(void)
{
    size_t capacity = 0;
    FILE *file = open_golden("tests/golden/nmt_nfkc.txt");
    if (getline(&charsmap, &capacity, file) < 2)
        bail_out("nmt_nfkc.txt is empty");
    charsmap[strcspn(charsmap, "\n")] = '\0';
    fclose(file);
}

/* A tokenizer.json with the charsmap in place of its name. */
static ft_tokenizer *open_json(const json_t *json, const char *name)
{
    static const char place[] = "@nmt_nfkc";
    char *text = json_dumps(json, JSON_COMPACT);
    ft_strbuf whole = { 0 };
    ft_tokenizer *tokenizer;
    bool added = text != NULL;
    const char *at = text;
    for (const char *found; added && (found = strstr(at, place)) != NULL;
         at = found + sizeof place - 1)
        added = ft_strbuf_append(&whole, at, (size_t) (found - at)) &&
                ft_strbuf_append(&whole, charsmap, strlen(charsmap));
    if (!added || !ft_strbuf_append(&whole, at, strlen(at)))
        bail_out("no memory");
    if (ft_tokenizer_parse(&tokenizer, name, whole.data, whole.bytes, &err) != FT_OK)
        tokenizer = NULL;
    ft_strbuf_fini(&whole);
    free(text);
    return tokenizer;
}

/* ---- Encodings as Python prints them --------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void put(ft_strbuf *out, const char *format, ...)
{
    char text[64];
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!ft_strbuf_append(out, text, (size_t) bytes))
        bail_out("no memory");
}

static void put_ints(ft_strbuf *out, const int32_t *x, size_t count)
{
    put(out, "[");
    for (size_t i = 0; i < count; i++)
        put(out, "%s%d", i > 0 ? ", " : "", (int) x[i]);
    put(out, "]");
}

/* "[ids, type ids, offsets in characters]" */
static void put_encoding(ft_strbuf *out, const ft_tokenizer *tokenizer, const json_t *first,
                         const json_t *second)
{
    const char *text = json_string_value(first), *pair = json_string_value(second);
    const ft_encode_options options = { .pair = pair,
                                        .pair_bytes = json_string_length(second),
                                        .offsets = true };
    ft_encoding *e;
    if (ft_tokenizer_encode_text(tokenizer, text, json_string_length(first), &options, &e, &err) !=
        FT_OK)
        bail_out("%s", err.text);
    put(out, "[");
    put_ints(out, e->ids, e->count);
    put(out, ", ");
    put_ints(out, e->type_ids, e->count);
    put(out, ", [");
    for (size_t i = 0; i < e->count; i++) {
        const char *of = e->sequence[i] == 1 ? pair : text;
        put(out, "%s[%zu, %zu]", i > 0 ? ", " : "", ft_count_characters(of, e->offsets[i].start),
            ft_count_characters(of, e->offsets[i].end));
    }
    put(out, "]]");
    ft_encoding_free(e);
}

static bool has_digest(const ft_strbuf *text, const char *expected)
{
    char sum[GOLDEN_DIGEST];
    EVP_MD_CTX *digest = digest_begin();
    EVP_DigestUpdate(digest, text->data, text->bytes);
    digest_end(digest, sum);
    return strncmp(sum, expected, DIGEST) == 0;
}

/* ---- Families ---------------------------------------------------------------------------------
 */

/* How many blocks of texts differ; pairs are line i with line 999 - i. */
static int count_wrong(const ft_tokenizer *tokenizer, const json_t *digests, bool pairs)
{
    int wrong = 0;
    for (size_t block = 0; block < json_array_size(digests); block++) {
        ft_strbuf text = { 0 };
        for (size_t i = block * BLOCK; i < (block + 1) * BLOCK; i++) {
            if (text.bytes > 0)
                put(&text, "\n");
            put_encoding(&text, tokenizer, line[i], pairs ? line[LINES - 1 - i] : NULL);
        }
        wrong += !has_digest(&text, json_string_value(json_array_get(digests, block)));
        ft_strbuf_fini(&text);
    }
    return wrong;
}

static void test_family(const json_t *row)
{
    const char *name = json_string_value(json_array_get(row, 0));
    ft_tokenizer *tokenizer = open_json(json_array_get(row, 1), name);
    if (!ok(tokenizer != NULL, "the tokenizer of %s opens", name)) {
        diag("%s", err.text);
        return;
    }
    is_int(count_wrong(tokenizer, json_array_get(row, 2), false), 0,
           "%s: ids and offsets of 1,000 lines are those of the tokenizers library", name);
    is_int(count_wrong(tokenizer, json_array_get(row, 3), true), 0,
           "%s: ids, type ids and offsets of 200 pairs are those of the tokenizers library", name);
    ft_tokenizer_close(tokenizer);
}

static void test_families(void)
{
    FILE *file = open_golden("tests/golden/tokenizer-families.jsonl");
    for (json_t *row; (row = read_row(file)) != NULL; json_decref(row))
        test_family(row);
    fclose(file);
}

/* ---- Components -------------------------------------------------------------------------------
 */

static void test_components(const json_t *row, const char *name, size_t number)
{
    const json_t *texts = json_array_get(row, 1);
    ft_tokenizer *tokenizer = open_json(json_array_get(row, 0), name);
    int wrong = 0;
    if (!ok(tokenizer != NULL, "the tokenizer %zu of %s opens", number, name)) {
        diag("%s", err.text);
        return;
    }
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *text = json_array_get(texts, i);
        ft_strbuf found = { 0 };
        put_encoding(&found, tokenizer, json_array_get(text, 0), json_array_get(text, 1));
        wrong += !has_digest(&found, json_string_value(json_array_get(text, 2)));
        ft_strbuf_fini(&found);
    }
    is_int(wrong, 0, "the tokenizer %zu of %s encodes all texts and pairs as the library does",
           number, name);
    ft_tokenizer_close(tokenizer);
}

static void test_random(const char *name)
{
    FILE *file = open_golden(name);
    size_t number = 0;
    for (json_t *row; (row = read_row(file)) != NULL; json_decref(row))
        test_components(row, name, ++number);
    fclose(file);
}

int main(void)
{
    read_lines();
    read_charsmap();
    test_families();
    test_random("tests/golden/tokenizer-components.jsonl");
    test_random("tests/golden/tokenizer-scripts.jsonl");
    for (size_t i = 0; i < LINES; i++)
        json_decref(line[i]);
    free(charsmap);
    return done_testing();
}
