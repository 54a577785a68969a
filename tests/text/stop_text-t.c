/*
 * stop_text-t.c - streamed text is withheld while it may be the beginning of a stop string.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/stop_text.h"
#include "tests/lib/random.h"
#include "tests/lib/models/tiny_tokenizer.h"

/* a b c, a blank, the three bytes of the euro sign, and longer words: see tiny_bpe_json. */
enum { A, B, C, BLANK, E2, X82, XAC, AB, ABC, BLANK_A, BC, AA, MARK, XC3, AAAA, SPECIAL };
enum { MAX_SIZE = 64, TEXT = 512 };

static ft_tokenizer *tokenizer;
static ft_error err;

/* The result of streaming a text token by token. */
typedef struct heard {
    char text[TEXT];  /* all emitted text */
    char calls[TEXT]; /* the same with "|" after each token */
    size_t used;      /* tokens until it stopped */
    bool stopped;
} heard;

static heard listen(ft_stop_decoder *t, const char *const *stop, const int32_t *ids, size_t count)
{
    heard h = { .text = "" };
    ft_stop_decoder_reset(t, stop);
    while (h.used < count && !h.stopped) {
        const char *shown;
        size_t bytes, had = strlen(h.text);
        int32_t id = ids[h.used++];
        if (ft_stop_decoder_push(t, id, h.used == count, &shown, &bytes, &h.stopped, &err) != FT_OK)
            bail_out("%s", err.text);
        if (had + bytes >= TEXT / 2)
            bail_out("the text is too long");
        memcpy(h.text + had, shown, bytes);
        snprintf(h.calls + strlen(h.calls), TEXT / 2, "%.*s|", (int) bytes, shown);
    }
    return h;
}

#define STOPS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define IDS(...) (const int32_t[]){ __VA_ARGS__ }, FT_COUNT(((const int32_t[]){ __VA_ARGS__ }))

static void test_some(ft_stop_decoder *t)
{
    heard h = listen(t, NULL, IDS(A, BLANK, E2, X82, XAC, B));
    is_str(h.calls, "a| |||\u20ac|b|", "a character is emitted when its last byte arrives");
    h = listen(t, NULL, IDS(A, E2, X82));
    is_str(h.calls, "a||\ufffd|", "an incomplete character at the end is emitted as U+FFFD");
    h = listen(t, STOPS("abc"), IDS(A, B, B, A));
    is_str(h.calls, "||abb|a|", "text that may begin a stop string is withheld until it cannot");
    h = listen(t, STOPS("bca"), IDS(A, AB, C, ABC, B));
    ok(h.stopped && h.used == 4 && strcmp(h.text, "aa") == 0,
       "only the text before the stop string is emitted");
    h = listen(t, STOPS("bc", "abc"), IDS(A, ABC));
    is_str(h.text, "a", "the stop string that begins first ends the text");
    h = listen(t, STOPS("aab"), IDS(A, A, A, A, B));
    ok(h.stopped && strcmp(h.text, "aa") == 0,
       "a stop string that begins within a failed partial match ends the text");
    h = listen(t, STOPS("ab"), IDS(C, A));
    ok(!h.stopped && strcmp(h.text, "ca") == 0, "the last token releases withheld text");
    h = listen(t, STOPS("\u20ac"), IDS(A, E2, X82, XAC, B));
    ok(h.stopped && h.used == 4 && strcmp(h.text, "a") == 0,
       "a stop string may be a multi-byte character");
    h = listen(t, STOPS("ab"), IDS(A, SPECIAL, B));
    ok(h.stopped && h.text[0] == '\0', "special tokens are not part of the text");
}

/* A text abandoned in the middle must not affect the next one. */
static void test_again(ft_stop_decoder *t)
{
    const char *shown;
    size_t bytes;
    bool stopped;
    ft_stop_decoder_reset(t, STOPS("abc"));
    if (ft_stop_decoder_push(t, AB, false, &shown, &bytes, &stopped, &err) != FT_OK ||
        ft_stop_decoder_push(t, E2, false, &shown, &bytes, &stopped, &err) != FT_OK)
        bail_out("%s", err.text);
    heard h = listen(t, NULL, IDS(C, A));
    is_str(h.text, "ca", "a new text contains nothing of an abandoned one");
    const char *text;
    ok(ft_stop_decoder_push(t, -1, true, &text, &bytes, &stopped, &err) == FT_OK && bytes == 0,
       "a token id of -1 adds no text");
}

/* ---- Any text ----------------------------------------------------------------------------- */

/* The earliest position of a stop string, or -1. */
static long find(const char *text, const char *const *stop)
{
    long first = -1;
    for (; *stop != NULL; stop++) {
        const char *at = strstr(text, *stop);
        if (at != NULL && (first < 0 || at - text < first))
            first = at - text;
    }
    return first;
}

/* The reference: searches the complete text for stop strings after each token. */
static heard plainly(const char *const *stop, const int32_t *ids, size_t count)
{
    heard h = { .text = "" };
    ft_detokenizer *decoder;
    if (ft_detokenizer_open(&decoder, tokenizer, true, &err) != FT_OK)
        bail_out("%s", err.text);
    while (h.used < count && !h.stopped) {
        const char *piece;
        size_t bytes;
        ft_status status = ft_detokenizer_push(decoder, ids[h.used++], &piece, &bytes, &err);
        snprintf(h.text + strlen(h.text), TEXT / 2, "%.*s", (int) bytes, piece);
        if (status == FT_OK && h.used == count) {
            status = ft_detokenizer_finish(decoder, &piece, &bytes, &err);
            snprintf(h.text + strlen(h.text), TEXT / 2, "%.*s", (int) bytes, piece);
        }
        if (status != FT_OK)
            bail_out("%s", err.text);
        long found = find(h.text, stop);
        h.stopped = found >= 0;
        if (h.stopped)
            h.text[found] = '\0';
    }
    ft_detokenizer_close(decoder);
    return h;
}

static void test_any(ft_stop_decoder *t)
{
    rng r = { 4711 };
    int different = 0, stopped = 0;
    for (int round = 0; round < 3000; round++) {
        char a[5] = "", b[5] = "";
        int32_t ids[MAX_SIZE];
        size_t count = 1 + rng_below(&r, MAX_SIZE);
        for (size_t i = 1 + rng_below(&r, 4); i-- > 0;)
            a[i] = "abc "[rng_below(&r, 4)];
        for (size_t i = 1 + rng_below(&r, 4); i-- > 0;)
            b[i] = "abc "[rng_below(&r, 4)];
        for (size_t i = 0; i < count; i++)
            ids[i] = (int32_t) rng_below(&r, SPECIAL + 1);
        heard found = listen(t, STOPS(a, b), ids, count),
              expected = plainly(STOPS(a, b), ids, count);
        different += found.used != expected.used || found.stopped != expected.stopped ||
                     strcmp(found.text, expected.text) != 0;
        stopped += found.stopped;
    }
    is_int(different, 0,
           "3000 random texts stop where a search of the complete text finds a stop string");
    ok(stopped > 300 && stopped < 2999,
       "some of the random texts contain a stop string and some do not");
}

int main(void)
{
    ft_stop_decoder t;
    tokenizer = tiny_bpe_open("null", "null");
    if (ft_stop_decoder_init(&t, tokenizer, &err) != FT_OK)
        bail_out("%s", err.text);
    test_some(&t);
    test_again(&t);
    test_any(&t);
    ft_stop_decoder_fini(&t);
    ft_tokenizer_close(tokenizer);
    return done_testing();
}
