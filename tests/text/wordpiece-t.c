/*
 * wordpiece-t.c - WordPiece token ids equal those of the Hugging Face `tokenizers` library, which
 * are kept in golden/.
 *
 * golden/make-wordpiece.py generates the data and documents each file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/base/utf8.h"
#include "tests/lib/golden_rows.h"

#include <string.h>

enum { MAX_IDS = 4096 };

/* Whether `text` encodes to the ids of the JSON array; prints a diagnostic if not. */
static bool has_ids(const ft_tokenizer *tokenizer, const json_t *text, const json_t *expected)
{
    static int32_t ids[MAX_IDS];
    ft_error err;
    size_t count, i = 0;
    if (ft_tokenizer_encode(tokenizer, json_string_value(text), json_string_length(text), ids,
                            MAX_IDS, &count, &err) != FT_OK) {
        diag("%s", err.text);
        return false;
    }
    while (i < count && i < MAX_IDS && ids[i] == json_integer_value(json_array_get(expected, i)))
        i++;
    if (count == json_array_size(expected) && i == count)
        return true;
    diag("\"%s\": id %zu is %d, expected %d", json_string_value(text), i, i < count ? ids[i] : -1,
         (int) json_integer_value(json_array_get(expected, i)));
    return false;
}

static void test_lines(void)
{
    ft_tokenizer *sample = open_tokenizer("samples/source-language-bert/tokenizer.json");
    ft_tokenizer *cased = open_tokenizer("tests/golden/wordpiece-cased.json");
    FILE *file = open_golden("tests/golden/wordpiece-lines.jsonl");
    int lines = 0, equal_sample = 0, equal_cased = 0;
    for (json_t *row; (row = read_row(file)) != NULL; json_decref(row)) {
        const json_t *text = json_array_get(row, 0);
        equal_sample += has_ids(sample, text, json_array_get(row, 1));
        equal_cased += has_ids(cased, text, json_array_get(row, 2));
        lines++;
    }
    is_int(lines, 1000, "the golden file has 1,000 varied lines");
    is_int(equal_sample, lines,
           "every line has the library's ids with an uncased tokenizer that strips accents");
    is_int(equal_cased, lines,
           "every line has the library's ids with a cased tokenizer, added tokens and a template");
    fclose(file);
    ft_tokenizer_close(sample);
    ft_tokenizer_close(cased);
}

/* ------------------------------------------------------------------------------------------ */

/* The tokenizer `file` with its normalizer's steps replaced. */
static ft_tokenizer *with_steps(json_t *file, const json_t *steps)
{
    static const char *const name[] = { "clean_text", "handle_chinese_chars", "strip_accents",
                                        "lowercase" };
    for (size_t i = 0; i < FT_COUNT(name); i++)
        json_object_set(json_object_get(file, "normalizer"), name[i], json_array_get(steps, i));
    char *text = json_dumps(file, 0);
    ft_tokenizer *tokenizer;
    ft_error err;
    if (ft_tokenizer_parse(&tokenizer, "sample", text, strlen(text), &err) != FT_OK)
        bail_out("%s", err.text);
    free(text);
    return tokenizer;
}

static void test_steps(void)
{
    json_error_t why;
    json_t *sample =
        json_load_file(source_path("samples/source-language-bert/tokenizer.json"), 0, &why);
    FILE *file = open_golden("tests/golden/wordpiece-steps.jsonl");
    json_t *last = json_null();
    ft_tokenizer *tokenizer = NULL;
    int lines = 0, equal = 0, settings = 0;
    for (json_t *row; (row = read_row(file)) != NULL; json_decref(row)) {
        json_t *steps = json_array_get(row, 1);
        if (!json_equal(steps, last)) {
            ft_tokenizer_close(tokenizer);
            tokenizer = with_steps(sample, steps);
            settings++;
            json_decref(last);
            last = json_incref(steps);
        }
        equal += has_ids(tokenizer, json_array_get(row, 0), json_array_get(row, 2));
        lines++;
    }
    is_int(settings, 24, "the golden file covers all 2 x 2 x 3 x 2 settings of the normalizer");
    is_int(equal, lines, "each setting of the normalizer gives %d lines the library's ids",
           lines / settings);
    json_decref(last);
    json_decref(sample);
    ft_tokenizer_close(tokenizer);
    fclose(file);
}

/* ------------------------------------------------------------------------------------------ */

static void digest_line(EVP_MD_CTX *digest, const char *text, size_t bytes)
{
    EVP_DigestUpdate(digest, text, bytes);
    EVP_DigestUpdate(digest, "\n", 1);
}

static void digest_words(EVP_MD_CTX *digest, const char *text, size_t bytes)
{
    const char *word, *end = text + bytes;
    size_t length;
    while ((length = ft_bert_next_word(&text, end, &word)) > 0)
        digest_line(digest, word, length);
}

static void normalize(const ft_bert_normalizer *steps, const char *text, size_t bytes,
                      ft_strbuf *normal)
{
    if (ft_bert_normalize(steps, text, bytes, normal) != FT_OK)
        bail_out("no memory");
}

/* "A?b" after each step alone, and its words before all steps and after them. */
static void digest_character(EVP_MD_CTX *digest, const char *c, size_t bytes, ft_strbuf *normal)
{
    static const ft_bert_normalizer all = { true, true, true, true };
    static const ft_bert_normalizer alone[] = { { .clean_text = true },
                                                { .handle_chinese_chars = true },
                                                { .strip_accents = true },
                                                { .lowercase = true } };
    char text[8] = "A";
    memcpy(text + 1, c, bytes);
    text[1 + bytes] = 'b';
    for (size_t i = 0; i < FT_COUNT(alone); i++) {
        normalize(&alone[i], text, bytes + 2, normal);
        digest_line(digest, normal->data, normal->bytes);
    }
    digest_words(digest, text, bytes + 2);
    normalize(&all, text, bytes + 2, normal);
    digest_words(digest, normal->data, normal->bytes);
}

/* The character after a mark of class 226, and after marks of classes 224 and 9. */
static void digest_order(EVP_MD_CTX *digest, const char *c, size_t bytes, ft_strbuf *normal)
{
    static const ft_bert_normalizer strip = { .strip_accents = true };
    static const char high[4] = "\U0001d16d", low[6] = "\u302e\u1bf2";
    char text[sizeof high + sizeof low + 8];
    memcpy(text, high, sizeof high);
    memcpy(text + sizeof high, c, bytes);
    memcpy(text + sizeof high + bytes, low, sizeof low);
    memcpy(text + sizeof high + bytes + sizeof low, c, bytes);
    normalize(&strip, text, sizeof high + sizeof low + 2 * bytes, normal);
    digest_line(digest, normal->data, normal->bytes);
}

/* The digest of 4,096 code points, in the format of golden/wordpiece-characters.txt. */
static void digest_block(uint32_t first, char line[32], ft_strbuf *normal)
{
    char sum[GOLDEN_DIGEST];
    EVP_MD_CTX *digest = digest_begin();
    for (uint32_t code = first; code < first + 0x1000; code++) {
        char c[4];
        size_t bytes = (size_t) utf8proc_encode_char((utf8proc_int32_t) code, (uint8_t *) c);
        if (code >= 0xd800 && code < 0xe000)
            continue;
        digest_character(digest, c, bytes, normal);
        digest_order(digest, c, bytes, normal);
    }
    digest_end(digest, sum);
    snprintf(line, 32, "%06x %s\n", first, sum);
}

static void test_characters(void)
{
    FILE *file = open_golden("tests/golden/wordpiece-characters.txt");
    ft_strbuf normal = { 0 };
    int equal = 0;
    for (uint32_t first = 0; first < 0x110000; first += 0x1000) {
        char found[32], expected[32] = "";
        digest_block(first, found, &normal);
        if (fgets(expected, sizeof expected, file) != NULL && strcmp(found, expected) == 0)
            equal++;
        else
            diag("code points from U+%04X: digest %s, expected %s", first, found, expected);
    }
    is_int(
        equal, 0x110,
        "every code point is cleaned, stripped, lowercased and split as in the tokenizers library");
    ft_strbuf_fini(&normal);
    fclose(file);
}

int main(void)
{
    test_lines();
    test_steps();
    test_characters();
    return done_testing();
}
