/*
 * decode-t.c - what is decoded when: nothing that a later token could change, and nothing late.
 *
 * bpe-t.c compares whole texts with those of the `tokenizers` library.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "tests/lib/models/tiny_tokenizer.h"
#include "tests/tap/tap.h"

#include <string.h>

#define OLD_DECODER                                                                                \
    "'decoder': {'type': 'ByteLevel', 'add_prefix_space': true, 'trim_offsets': true,"             \
    " 'use_regex': true}"
#define OLD_WORDS                                                                                  \
    "'vocab': {'a': 0, 'b': 1, 'c': 2, '\\u0120': 3, '\\u00e2': 4, '\\u0124': 5, '\\u00ac': 6,"
/* U+20AC is the bytes E2 82 AC. */
#define BYTE_WORDS                                                                                 \
    "'vocab': {'a': 0, 'b': 1, 'c': 2, '_': 3, '<0xE2>': 4, '<0x82>': 5, '<0xAC>': 6,"

/* The pieces of "3 4 5" with "|" behind each, the last that of the end. */
static const char *pieces_of(ft_detokenizer *decoder, const char *ids)
{
    static char out[256];
    size_t used = 0;
    char *next;
    for (bool more = true; more; ids = next) {
        const char *text;
        size_t bytes;
        long id = strtol(ids, &next, 10);
        more = next > ids;
        ft_status rc = more ? ft_detokenizer_push(decoder, (int32_t) id, &text, &bytes, NULL)
                            : ft_detokenizer_finish(decoder, &text, &bytes, NULL);
        if (rc != FT_OK)
            return ft_status_name(rc);
        used += (size_t) snprintf(out + used, sizeof out - used, "%.*s|", (int) bytes, text);
    }
    return out;
}

static void streams(ft_tokenizer *tokenizer, const char *ids, const char *expected,
                    const char *sentence)
{
    ft_detokenizer *decoder;
    ft_error err;
    if (ft_detokenizer_open(&decoder, tokenizer, true, &err) != FT_OK)
        bail_out("%s", err.text);
    is_str(pieces_of(decoder, ids), expected, "%s", sentence);
    is_str(pieces_of(decoder, ids), expected, "and again");
    ft_detokenizer_close(decoder);
}

static void test_bytes(void)
{
    ft_tokenizer *t = tiny_bpe_open("", "");
    streams(t, "7 9 2", "ab| a|c||", "a token is text at once");
    streams(t, "4 5 6 0", "||\u20ac|a||", "a character waits for all of its bytes");
    streams(t, "4 5 0", "||\ufffda||", "until it can be none");
    streams(t, "4 5", "||\ufffd|", "or the end comes");
    streams(t, "4 4 5 6 6", "|\ufffd||\u20ac|\ufffd||", "what is cut is one U+FFFD");
    streams(t, "13 4", "|\ufffd|\ufffd|", "for each start");
    streams(t, "0 15 1", "a||b||", "special tokens say nothing");
    streams(t, "0 99 -1 2147483647 1", "a||||b||", "nor do ids without a token");
    streams(t, "", "|", "no ids are no text");
    ft_tokenizer_close(t);
}

static void test_byte_tokens(void)
{
    char *json = edited(tiny_bpe_json, OLD_DECODER,
                        "'decoder': {'type': 'Sequence', 'decoders': [{'type': 'Replace',"
                        " 'pattern': {'String': '_'}, 'content': ' '}, {'type': 'ByteFallback'},"
                        " {'type': 'Fuse'}, {'type': 'Strip', 'content': ' ', 'start': 1,"
                        " 'stop': 0}]}");
    for (char *quote = json; (quote = strchr(quote, '"')) != NULL;)
        *quote = '\'';
    char *bytes = edited(json, "['a b', ['ab', 'c'], '\\u0120 a', ", "[");
    for (char *quote = bytes; (quote = strchr(quote, '"')) != NULL;)
        *quote = '\'';
    ft_tokenizer *t = open_edited(bytes, OLD_WORDS, BYTE_WORDS);
    streams(t, "3 0 3 1", "|a| |b||", "one blank goes at the start");
    streams(t, "3 3 0", "| |a||", "and no other");
    streams(t, "4 5 6 0 4 5 6", "|||\u20aca||||\u20ac|", "bytes wait for the end of their run");
    streams(t, "4 5 6 4 0", "||||\ufffd\ufffd\ufffd\ufffda||", "of which all are valid, or none");
    streams(t, "4 5", "||\ufffd\ufffd|", "also at the end of the text");
    ft_tokenizer_close(t);
    free(bytes);
    free(json);
}

/* ------------------------------------------------------------------------------------------ */

static void test_at_once(void)
{
    static const int32_t ids[] = { 7, 15, 4, 5, 6, 4 };
    ft_tokenizer *t = tiny_bpe_open("", "");
    char text[16] = "...............";
    size_t bytes = 99;
    ft_error err;
    is_int(ft_tokenizer_decode(t, ids, 6, false, NULL, 0, &bytes, &err), FT_OK,
           "no room is no error");
    is_int((long long) bytes, 11, "the count says how much would be enough");
    is_int(ft_tokenizer_decode(t, ids, 6, false, text, 9, &bytes, &err), FT_OK,
           "nor is too little");
    ok(bytes == 11 && memcmp(text, "ab<s>\u20ac\xef......", 15) == 0,
       "nothing is written behind the room there is");
    is_int(ft_tokenizer_decode(t, ids, 6, true, text, sizeof text, &bytes, &err), FT_OK,
           "special tokens are left out on demand");
    ok(bytes == 8 && memcmp(text, "ab\u20ac\ufffd", 8) == 0, "and the text is whole");
    is_int(ft_tokenizer_decode(t, NULL, 0, true, text, sizeof text, &bytes, &err), FT_OK,
           "no ids are decoded too");
    is_int((long long) bytes, 0, "to no text");
    ft_tokenizer_close(t);
    ft_detokenizer_close(NULL);
}

static void test_tokens(void)
{
    ft_tokenizer *t = tiny_bpe_open("'c': 2", "'c': 40");
    is_int((long long) ft_tokenizer_vocab_size(t), 16, "tokens are counted");
    is_int(ft_tokenizer_token_to_id(t, "abc"), 8, "and found by their text");
    is_int(ft_tokenizer_token_to_id(t, "\u0120a"), 9, "as the file writes it");
    is_int(ft_tokenizer_token_to_id(t, "c"), 40, "also behind a gap");
    is_int(ft_tokenizer_token_to_id(t, "<s>"), 15, "added ones too");
    is_int(ft_tokenizer_token_to_id(t, " a"), -1, "a text that is none is not found");
    is_int(ft_tokenizer_token_to_id(t, ""), -1, "nor is none");
    ok(ft_tokenizer_is_special(t, 15), "<s> is special");
    ok(!ft_tokenizer_is_special(t, 8) && !ft_tokenizer_is_special(t, 2) &&
           !ft_tokenizer_is_special(t, -1) && !ft_tokenizer_is_special(t, 41),
       "a word is not, nor is what is no token");
    streams(t, "0 40 2 39 41", "a|c|||||", "ids around gaps are decoded");
    ft_tokenizer_close(t);
}

static void test_bare(void)
{
    int32_t ids[8];
    size_t count;
    ft_error err;
    ft_tokenizer *t = tiny_open("", "");
    is_int(ft_tokenizer_encode_no_special(t, "un[MASK]", 8, ids, 8, &count, &err), FT_OK,
           "a text is encoded without special tokens around it");
    ok(count == 2 && ids[0] == 5 && ids[1] == 4, "but with those in it");
    is_int(ft_tokenizer_encode_no_special(t, "un\xff", 3, ids, 8, &count, &err), FT_EFORMAT,
           "if it is valid");
    ok(count == 0 && strstr(err.text, "text: byte 2 is 0xff") == err.text, "else it says where");
    ft_tokenizer_close(t);
}

/* ------------------------------------------------------------------------------------------ */

#define STEPS(list) "'decoder': {'type': 'Sequence', 'decoders': [" list "]}"
#define REPLACE(from, to)                                                                          \
    "{'type': 'Replace', 'pattern': {'String': '" from "'}, 'content': '" to "'}"

static void test_refused(void)
{
    static const struct {
        const char *decoder, *says;
    } refused[] = {
        { "'decoder': {'type': 'CTC'}", "tiny: decoder.type: found \"CTC\", expected ByteLevel" },
        { "'decoder': 7", "tiny: decoder: found 7, expected an object" },
        { "'decoder': {'type': 'ByteLevel', 'x': 1}", "decoder.x: found 1, expected no such" },
        { "'decoder': {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 1}",
          "decoder.stop: found 1, expected 0" },
        { "'decoder': {'type': 'Strip', 'content': '', 'start': 1, 'stop': 0}",
          "decoder.content: found \"\", expected 1 to 4 bytes" },
        { "'decoder': {'type': 'Metaspace', 'replacement': '', 'prepend_scheme': 'always'}",
          "decoder.replacement: found \"\", expected 1 to 4 bytes" },
        { STEPS("{'type': 'Fuse'}, {'type': 'ByteFallback'}"),
          "decoder.decoders[1].type: found \"ByteFallback\", expected Replace, ByteFallback, "
          "Fuse" },
        { STEPS("{'type': 'Fuse'}, {'type': 'Fuse'}"), "decoders[1].type: found \"Fuse\"" },
        { STEPS(REPLACE("a", "b") ", {'type': 'ByteLevel'}"), "[1].type: found \"ByteLevel\"" },
        { STEPS(REPLACE("a", "b") ", " REPLACE("a", "b") ", " REPLACE("a", "b") ", " REPLACE(
              "a", "b") ", " REPLACE("a", "b")),
          "decoders[4].type: found \"Replace\", expected 4 replacements at most" },
        { STEPS(REPLACE("", "b")), "pattern.String: found \"\", expected 1 to 64 bytes" },
        { STEPS(REPLACE("a", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef-")),
          "decoders[0].content: found \"0123456789abcdef0123456789abcde" },
    };
    for (size_t i = 0; i < FT_COUNT(refused); i++) {
        ft_tokenizer *t = tiny_bpe_open(OLD_DECODER, refused[i].decoder);
        ft_detokenizer *decoder;
        ft_error err = { 0 };
        int32_t id = 0;
        size_t bytes = 99;
        is_str(tiny_ids(t, "abc"), "8", "with an unknown decoder text is encoded");
        is_int(ft_detokenizer_open(&decoder, t, true, &err), FT_EUNSUPPORTED,
               "ids are not decoded");
        has(err.text, refused[i].says, "with the reason");
        ok(decoder == NULL &&
               ft_tokenizer_decode(t, &id, 1, true, NULL, 0, &bytes, &err) == FT_EUNSUPPORTED &&
               bytes == 0,
           "neither one by one nor at once");
        ft_tokenizer_close(t);
    }
}

#define GROWING REPLACE("a", "aaaaaaaaaaaaaaaa")

/* Four replacements in turn would make 64 KiB of a byte. */
static void test_growing(void)
{
    ft_tokenizer *t =
        tiny_bpe_open(OLD_DECODER, STEPS(GROWING ", " GROWING ", " GROWING ", " GROWING));
    ft_detokenizer *decoder;
    ft_error err = { 0 };
    const char *text;
    size_t bytes;
    if (ft_detokenizer_open(&decoder, t, true, &err) != FT_OK)
        bail_out("%s", err.text);
    is_int(ft_detokenizer_push(decoder, 0, &text, &bytes, &err), FT_ELIMIT,
           "a decoder that makes much of a byte is given up");
    is_str(err.text, "tiny: decoder: adds more than 1040 bytes to a token of 1", "with the reason");
    is_int(ft_detokenizer_push(decoder, 1, &text, &bytes, &err), FT_OK,
           "the next token is decoded");
    ok(bytes == 1 && text[0] == 'b', "to its own text");
    ft_detokenizer_close(decoder);
    ft_tokenizer_close(t);
}

int main(void)
{
    test_bytes();
    test_byte_tokens();
    test_at_once();
    test_tokens();
    test_bare();
    test_refused();
    test_growing();
    return done_testing();
}
