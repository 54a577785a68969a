/*
 * squad.c - normalize both answers, then compare them as texts and as bags of words.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/metrics/squad.h"

#include "runtime/base/strbuf.h"
#include "runtime/mem.h"
#include "runtime/scores/metrics/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A normalized answer: words separated by single spaces, and its words in alphabetical order. */
typedef struct {
    ft_strbuf text;
    const char **word; /* NUL-terminated copies, in `words` */
    ft_strbuf words;
    size_t count;
} answer;

static void answer_fini(answer *a)
{
    ft_strbuf_fini(&a->text);
    ft_strbuf_fini(&a->words);
    free(a->word);
}

/* Lower-case, and drop ASCII punctuation. */
static bool lower(const char *text, ft_strbuf *out)
{
    const char *end = text + strlen(text);
    bool ok = true;
    while (ok && text < end) {
        uint32_t c = ft_utf8_decode_next(&text), lowered[FT_CHAR_MAX_LOWERED];
        if (c < 0x80 && ispunct((int) c))
            continue;
        int count = ft_char_lower(c, lowered);
        for (int i = 0; ok && i < count; i++)
            ok = ft_strbuf_append_char(out, lowered[i]);
    }
    return ok;
}

static bool is_article(const char *word, size_t bytes)
{
    return (bytes == 1 && *word == 'a') || (bytes == 2 && memcmp(word, "an", 2) == 0) ||
           (bytes == 3 && memcmp(word, "the", 3) == 0);
}

/* The end of the run of word characters, or of other ones, that starts here. */
static const char *end_of_run(const char *at, const char *end, bool *is_word)
{
    const char *next = at;
    *is_word = ft_char_is_word(ft_utf8_decode_next(&next));
    for (at = next; next < end; at = next)
        if (ft_char_is_word(ft_utf8_decode_next(&next)) != *is_word)
            break;
    return at;
}

/* Articles become spaces; they end at any character that is not part of a word. */
static bool drop_articles(const ft_strbuf *text, ft_strbuf *out)
{
    const char *at = ft_strbuf_text(text), *end = at + text->bytes;
    bool ok = true, is_word;
    for (const char *next; ok && at < end; at = next) {
        next = end_of_run(at, end, &is_word);
        size_t bytes = (size_t) (next - at);
        ok = is_word && is_article(at, bytes) ? ft_strbuf_append(out, " ", 1)
                                              : ft_strbuf_append(out, at, bytes);
    }
    return ok;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Join the words by single spaces, and list them. */
static bool list_words(const ft_strbuf *text, answer *out)
{
    const char *at = ft_strbuf_text(text), *end = at + text->bytes, *word;
    bool ok = ft_strbuf_reserve(&out->words, text->bytes + 1); /* so that it does not move */
    out->word = ft_calloc(text->bytes, sizeof *out->word);
    ok = ok && out->word != NULL;
    for (size_t bytes; ok && (bytes = ft_next_word(&at, end, &word)) > 0;) {
        ok = (out->count == 0 || ft_strbuf_append(&out->text, " ", 1)) &&
             ft_strbuf_append(&out->text, word, bytes);
        out->word[out->count++] = out->words.data + out->words.bytes;
        ok = ok && ft_strbuf_append(&out->words, word, bytes) &&
             ft_strbuf_append(&out->words, "", 1);
    }
    if (ok && out->count > 0)
        qsort(out->word, out->count, sizeof *out->word, by_text);
    return ok;
}

static bool normalize(const char *text, answer *out)
{
    ft_strbuf lowered = { 0 }, plain = { 0 };
    *out = (answer){ .count = 0 };
    bool ok = lower(text, &lowered) && drop_articles(&lowered, &plain) && list_words(&plain, out);
    ft_strbuf_fini(&lowered);
    ft_strbuf_fini(&plain);
    return ok;
}

static size_t common_words(const answer *a, const answer *b)
{
    size_t i = 0, j = 0, common = 0;
    while (i < a->count && j < b->count) {
        int sign = strcmp(a->word[i], b->word[j]);
        common += sign == 0;
        i += sign <= 0;
        j += sign >= 0;
    }
    return common;
}

/* Answers without words are equal to each other and to nothing else. */
static double f1(const answer *a, const answer *b)
{
    double common = (double) common_words(a, b);
    if (a->count == 0 || b->count == 0)
        return a->count == b->count ? 1.0 : 0.0;
    if (common == 0.0)
        return 0.0;
    double precision = common / (double) a->count, recall = common / (double) b->count;
    return 2.0 * precision * recall / (precision + recall);
}

static bool equals(const answer *a, const answer *b)
{
    return a->text.bytes == b->text.bytes &&
           (a->text.bytes == 0 || memcmp(a->text.data, b->text.data, a->text.bytes) == 0);
}

static void add(const answer *given, const answer *reference, ft_answer_score *score)
{
    double overlap = f1(given, reference);
    if (equals(given, reference))
        score->exact = 1.0;
    if (overlap > score->f1)
        score->f1 = overlap;
}

/* A reference without words after normalization is skipped, like one of an unanswerable question.
 */
bool ft_answer_compare(const char *text, const char *const *references, size_t count,
                       ft_answer_score *score)
{
    answer given, reference;
    size_t compared = 0;
    bool ok = normalize(text, &given);
    *score = (ft_answer_score){ 0 };
    for (size_t i = 0; ok && i <= count; i++) {
        if (i == count && compared > 0)
            break;
        ok = normalize(i < count ? references[i] : "", &reference);
        if (ok && (reference.count > 0 || i == count)) {
            add(&given, &reference, score);
            compared++;
        }
        answer_fini(&reference);
    }
    answer_fini(&given);
    return ok;
}
