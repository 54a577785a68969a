/*
 * tokenizer-t.c - the public functions: encoding, errors, limits, threads, files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer.h"

#include "tests/lib/models/tiny_tokenizer.h"
#include "tests/tap/tap.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_encoding(void)
{
    ft_tokenizer *t = tiny_open("", "");
    is_str(tiny_ids(t, ""), "2 3", "an empty text encodes to [CLS] [SEP]");
    is_str(tiny_ids(t, "Unable"), "2 5 6 3", "WordPiece splits a word into its longest prefixes");
    is_str(tiny_ids(t, "unablex"), "2 1 3",
           "a word that cannot be split completely becomes one [UNK]");
    is_str(tiny_ids(t, "un \xc3\xa9\n[e"), "2 5 10 11 10 3",
           "accents are stripped and each punctuation character is a word");
    is_str(tiny_ids(t, "un\xe5\xad\x97un"), "2 5 12 5 3", "an ideograph is a word");
    is_str(tiny_ids(t, "un[MASK]able[mask]"), "2 5 4 7 11 13 1 3",
           "an added token is found before normalization");

    int32_t ids[4] = { -7, -7, -7, -7 };
    size_t count = 99;
    ft_error err;
    is_int(ft_tokenizer_encode(t, "unable", 6, NULL, 0, &count, &err), FT_OK,
           "encoding into an empty array is not an error");
    is_int((long long) count, 4, "the id count is the required capacity");
    is_int(ft_tokenizer_encode(t, "unable", 6, ids, 3, &count, &err), FT_OK,
           "encoding into an array that is too small is not an error");
    ok(count == 4 && ids[2] == 6 && ids[3] == -7,
       "encoding writes nothing past the end of the array");
    is_int(ft_tokenizer_end_id(t), 3, "ft_tokenizer_end_id is the id of [SEP]");
    ft_tokenizer_close(t);
    ft_tokenizer_close(NULL);
}

static void ids_with_added(const char *content, const char *flags, const char *text,
                           const char *expected, const char *sentence)
{
    is_ids(tiny_open_added(15, content, flags), text, expected, sentence);
}

static void test_added_tokens(void)
{
    ids_with_added("zz", "", "zzzun Zz", "2 15 1 1 3", "an added token is found within a word");
    ids_with_added("Z\u00c9", "normalized", "unzeun Z\u00e9", "2 5 15 5 15 3",
                   "a normalized added token is found in normalized text");
    ids_with_added("zz", "single_word", ".zz zzz \u200dzz un_zz", "2 1 15 1 1 5 1 1 3",
                   "a single_word added token does not match within a word");
    ids_with_added("\\t", "lstrip", "e \t\t e", "2 10 15 15 10 3",
                   "an lstrip added token absorbs white space on its left, even where it consists "
                   "of white space");
    ids_with_added(" ", "lstrip rstrip", "e    e e", "2 10 15 10 15 10 3",
                   "white space absorbed by one added token is not matched by another");
    ids_with_added("[MASK][SEP]", "", "[MASK][SEP][MASK]", "2 15 4 3",
                   "the longest of overlapping added tokens matches");
}

static void test_invalid_text(void)
{
    static const struct {
        const char *text, *what;
        int offset;
    } bad[] = {
        { "ab\xff", "a byte that does not occur in UTF-8", 2 },
        { "\x80", "a continuation byte without a leading byte", 0 },
        { "un \xe4\xbd", "a truncated character", 3 },
        { "\xc0\x80", "an overlong NUL", 0 },
        { "e\xe0\x9f\xbf", "an overlong character", 1 },
        { "\xed\xa0\x80", "a surrogate", 0 },
        { "[MASK]\xf4\x90\x80\x80", "a character beyond U+10FFFF", 6 },
    };
    ft_tokenizer *t = tiny_open("", "");
    for (size_t i = 0; i < FT_COUNT(bad); i++) {
        ft_error err;
        size_t count = 99;
        char place[32];
        ft_status rc =
            ft_tokenizer_encode(t, bad[i].text, strlen(bad[i].text), NULL, 0, &count, &err);
        snprintf(place, sizeof place, "text: byte %d is ", bad[i].offset);
        ok(rc == FT_EFORMAT && count == 0 && strstr(err.text, place) == err.text,
           "text with %s is refused, and the error names its offset", bad[i].what);
    }
    ft_tokenizer_close(t);
}

/* ---- Long texts, which would take minutes if any stage were not linear --------------------- */

typedef struct {
    const char *unit, *what;
    size_t ids; /* ids for every `units` units, plus `more` */
    size_t units;
    size_t more;
} long_text;

static void encode_long(const ft_tokenizer *tokenizer, const long_text *text, size_t bytes)
{
    size_t step = strlen(text->unit), units = bytes / step, count = 0;
    char *data = malloc(bytes);
    if (data == NULL)
        bail_out("no memory");
    for (size_t u = 0; u < units; u++)
        memcpy(data + u * step, text->unit, step);
    ft_status rc = ft_tokenizer_encode(tokenizer, data, units * step, NULL, 0, &count, NULL);
    if (!ok(rc == FT_OK && count == units / text->units * text->ids + text->more,
            "a text of %zu MB of %s is encoded in linear time", bytes / 1000000, text->what))
        diag("%s, %zu ids of %zu units", ft_status_name(rc), count, units);
    free(data);
}

static void encode_all(ft_tokenizer *tokenizer, const long_text *texts, size_t count, size_t bytes)
{
    for (size_t i = 0; i < count; i++)
        encode_long(tokenizer, &texts[i], bytes);
    ft_tokenizer_close(tokenizer);
}

static void test_long_texts(void)
{
    static const long_text texts[] = {
        { "a", "one word", 0, 1, 3 },
        { " ", "white space", 0, 1, 3 },
        { "[", "prefixes of added tokens", 1, 1, 2 },
        { "[MASK]", "added tokens", 1, 1, 2 },
        { "\u302f\u302e", "combining marks in non-canonical order", 0, 1, 3 },
        { "\u0301", "accents without letters", 0, 1, 2 },
        { "\t ", "white space that an added token absorbs", 0, 1, 3 },
        { "\u5b57", "ideographs", 1, 1, 2 },
    };
    encode_all(tiny_open_added(15, " ", "lstrip rstrip"), texts, FT_COUNT(texts), 4000000);
}

static void test_long_texts_of_bytes(void)
{
    static const long_text texts[] = {
        { "a", "one word", 1, 4, 0 },
        { "ab", "pairs", 1, 1, 0 },
        { " ", "white space", 1, 1, 0 },
        { " a", "words", 1, 1, 0 },
        { "a\u0323\u0301", "accents", 0, 1, 0 },
        { "\u0301\u0323", "combining marks in non-canonical order", 0, 1, 0 },
        { "<s>", "added tokens", 1, 1, 0 },
        { "a?", "words that end in punctuation", 2, 1, 0 },
        { "\u20ac", "three-byte characters", 3, 1, 0 },
    };
    encode_all(tiny_bpe_open("", ""), texts, FT_COUNT(texts), 1000000);
}

static void test_too_long(void)
{
    static const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!";
    ft_tokenizer *t = tiny_bpe_open(
        "{'type': 'ByteLevel', 'add_prefix_space': false, 'trim_offsets': true, 'use_regex': true}",
        "{'type': 'Split', 'pattern': {'Regex': '(a+)+$'}, 'behavior': 'Isolated', 'invert': "
        "false}");
    size_t count = 99;
    ft_error err = { 0 };
    is_int(ft_tokenizer_encode(t, text, sizeof text - 1, NULL, 0, &count, &err), FT_ELIMIT,
           "a regular expression with exponential backtracking is stopped");
    is_str(err.text, "tiny: pre_tokenizer: its patterns take too long in a text of 65 bytes",
           "the error names the pre-tokenizer and the length of the text");
    is_int((long long) count, 0, "a stopped encoding returns no ids");
    ft_tokenizer_close(t);
}

/* ------------------------------------------------------------------------------------------ */

enum { IDS = 8 };

typedef struct {
    const ft_tokenizer *tokenizer;
    const char *text;
    int32_t ids[IDS];
    size_t count, wrong;
} encoder;

static void *encode_often(void *argument)
{
    encoder *e = argument;
    for (int i = 0; i < 50; i++) {
        int32_t ids[IDS] = { 0 };
        size_t count = 0;
        ft_status rc =
            ft_tokenizer_encode(e->tokenizer, e->text, strlen(e->text), ids, IDS, &count, NULL);
        e->wrong += rc != FT_OK || count != e->count || memcmp(ids, e->ids, sizeof ids) != 0;
    }
    return NULL;
}

static void test_threads(ft_tokenizer *tokenizer, const char *text, size_t ids)
{
    pthread_t thread[4];
    encoder state[4], alone = { .tokenizer = tokenizer, .text = text };
    size_t wrong = 0;
    if (ft_tokenizer_encode(tokenizer, text, strlen(text), alone.ids, IDS, &alone.count, NULL) !=
            FT_OK ||
        alone.count != ids)
        bail_out("\"%s\" has %zu ids", text, alone.count);
    for (int i = 0; i < 4; i++) {
        state[i] = alone;
        if (pthread_create(&thread[i], NULL, encode_often, &state[i]) != 0)
            bail_out("no thread");
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        wrong += state[i].wrong;
    }
    is_int((long long) wrong, 0, "four threads encode with one tokenizer and get the same ids");
    ft_tokenizer_close(tokenizer);
}

/* ------------------------------------------------------------------------------------------ */

static void test_files(void)
{
    char path[1024];
    const char *build = getenv("FT_BUILDDIR");
    ft_tokenizer *other = tiny_open("", ""), *t = other;
    ft_error err;
    is_int(ft_tokenizer_open(&t, "/nonexistent/tokenizer.json", &err), FT_EIO,
           "a missing tokenizer file is refused");
    ok(t == NULL, "ft_tokenizer_open sets the tokenizer to NULL when it fails");
    has(err.text, "/nonexistent/tokenizer.json: ", "the error names the missing file");

    snprintf(path, sizeof path, "%s/tokenizer-t.%ld.tmp", build == NULL ? "." : build,
             (long) getpid());
    FILE *file = fopen(path, "wb");
    if (file == NULL || ftruncate(fileno(file), FT_TOKENIZER_MAX_FILE + 1) != 0)
        bail_out("cannot write %s", path);
    is_int(ft_tokenizer_open(&t, path, &err), FT_ELIMIT,
           "a tokenizer file of more than 64 MiB is refused");
    if (ftruncate(fileno(file), 0) != 0)
        bail_out("cannot write %s", path);
    is_int(ft_tokenizer_open(&t, path, &err), FT_EFORMAT, "an empty tokenizer file is refused");
    fclose(file);
    remove(path);
    ft_tokenizer_close(other);
}

int main(void)
{
    test_encoding();
    test_added_tokens();
    test_invalid_text();
    test_long_texts();
    test_long_texts_of_bytes();
    test_too_long();
    test_threads(tiny_open("", ""), "UNABLE [MASK] \xc3\xa8", 6);
    test_threads(tiny_bpe_open("", ""), "abc aaa<s>\u20ac", 7);
    test_files();
    return done_testing();
}
