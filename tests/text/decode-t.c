/*
 * decode-t.c - incremental detokenization emits no text that a later token could change, and emits
 * all other text at once.
 *
 * bpe-t.c compares complete texts with those of the `tokenizers` library.
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

/* The pieces of ids such as "3 4 5", each followed by "|"; the last piece comes from
 * ft_detokenizer_finish(). */
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
    is_str(pieces_of(decoder, ids), expected, "the detokenizer restarts after the end: %s",
           sentence);
    ft_detokenizer_close(decoder);
}

static void test_bytes(void)
{
    ft_tokenizer *t = tiny_bpe_open("", "");
    streams(t, "7 9 2", "ab| a|c||", "the text of a complete token is emitted at once");
    streams(t, "4 5 6 0", "||\u20ac|a||", "a character is emitted when its last byte arrives");
    streams(t, "4 5 0", "||\ufffda||",
            "an incomplete character becomes U+FFFD when a different token follows");
    streams(t, "4 5", "||\ufffd|", "an incomplete character becomes U+FFFD at the end");
    streams(t, "4 4 5 6 6", "|\ufffd||\u20ac|\ufffd||",
            "each truncated byte sequence becomes one U+FFFD");
    streams(t, "13 4", "|\ufffd|\ufffd|",
            "each leading byte without continuation becomes one U+FFFD");
    streams(t, "0 15 1", "a||b||", "special tokens add no text");
    streams(t, "0 99 -1 2147483647 1", "a||||b||", "ids without a token add no text");
    streams(t, "", "|", "no ids decode to no text");
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
    streams(t, "3 0 3 1", "|a| |b||", "Strip removes one leading blank");
    streams(t, "3 3 0", "| |a||", "Strip keeps further leading blanks");
    streams(t, "4 5 6 0 4 5 6", "|||\u20aca||||\u20ac|",
            "byte tokens are emitted at the end of their sequence");
    streams(t, "4 5 6 4 0", "||||\ufffd\ufffd\ufffd\ufffda||",
            "a sequence of byte tokens that is not valid UTF-8 becomes one U+FFFD for each byte");
    streams(t, "4 5", "||\ufffd\ufffd|",
            "invalid byte tokens at the end of the text become U+FFFD");
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
           "decoding into an empty buffer is not an error");
    is_int((long long) bytes, 11, "the byte count is the required capacity");
    is_int(ft_tokenizer_decode(t, ids, 6, false, text, 9, &bytes, &err), FT_OK,
           "decoding into a buffer that is too small is not an error");
    ok(bytes == 11 && memcmp(text, "ab<s>\u20ac\xef......", 15) == 0,
       "decoding writes nothing past the end of the buffer");
    is_int(ft_tokenizer_decode(t, ids, 6, true, text, sizeof text, &bytes, &err), FT_OK,
           "decoding skips special tokens when asked to");
    ok(bytes == 8 && memcmp(text, "ab\u20ac\ufffd", 8) == 0,
       "the decoded text is complete without special tokens");
    is_int(ft_tokenizer_decode(t, NULL, 0, true, text, sizeof text, &bytes, &err), FT_OK,
           "decoding an empty list of ids succeeds");
    is_int((long long) bytes, 0, "an empty list of ids decodes to 0 bytes");
    ft_tokenizer_close(t);
    ft_detokenizer_close(NULL);
}

static void test_tokens(void)
{
    ft_tokenizer *t = tiny_bpe_open("'c': 2", "'c': 40");
    is_int((long long) ft_tokenizer_vocab_size(t), 16, "the vocabulary size counts all tokens");
    is_int(ft_tokenizer_token_to_id(t, "abc"), 8, "a token is found by its text");
    is_int(ft_tokenizer_token_to_id(t, "\u0120a"), 9,
           "a token is found by the byte-level text of the file");
    is_int(ft_tokenizer_token_to_id(t, "c"), 40, "a token after a gap in the ids is found");
    is_int(ft_tokenizer_token_to_id(t, "<s>"), 15, "an added token is found by its text");
    is_int(ft_tokenizer_token_to_id(t, " a"), -1, "a text that is not a token has no id");
    is_int(ft_tokenizer_token_to_id(t, ""), -1, "the empty text has no id");
    ok(ft_tokenizer_is_special(t, 15), "<s> is a special token");
    ok(!ft_tokenizer_is_special(t, 8) && !ft_tokenizer_is_special(t, 2) &&
           !ft_tokenizer_is_special(t, -1) && !ft_tokenizer_is_special(t, 41),
       "words and ids without a token are not special");
    streams(t, "0 40 2 39 41", "a|c|||||", "ids around a gap in the vocabulary are decoded");
    ft_tokenizer_close(t);
}

static void test_bare(void)
{
    int32_t ids[8];
    size_t count;
    ft_error err;
    ft_tokenizer *t = tiny_open("", "");
    is_int(ft_tokenizer_encode_no_special(t, "un[MASK]", 8, ids, 8, &count, &err), FT_OK,
           "ft_tokenizer_encode_no_special encodes text");
    ok(count == 2 && ids[0] == 5 && ids[1] == 4,
       "ft_tokenizer_encode_no_special adds no special tokens but recognizes those in the text");
    is_int(ft_tokenizer_encode_no_special(t, "un\xff", 3, ids, 8, &count, &err), FT_EFORMAT,
           "ft_tokenizer_encode_no_special refuses invalid UTF-8");
    ok(count == 0 && strstr(err.text, "text: byte 2 is 0xff") == err.text,
       "the error names the invalid byte and there are no ids");
    ft_tokenizer_close(t);
}

/* ------------------------------------------------------------------------------------------ */

#define STEPS(list) "'decoder': {'type': 'Sequence', 'decoders': [" list "]}"
#define REPLACE(from, to)                                                                          \
    "{'type': 'Replace', 'pattern': {'String': '" from "'}, 'content': '" to "'}"

/* The tokens are a, b, c, ab and abc. */
static void test_suffix(void)
{
    ft_tokenizer *t =
        tiny_bpe_open(OLD_DECODER, "'decoder': {'type': 'BPEDecoder', 'suffix': 'b'}");
    streams(t, "7 0 2 7", "|a |a|c|a|",
            "the suffix of a word becomes a space unless it is the last one");
    streams(t, "8 1 0", "|a c| |a|", "each suffix in a token becomes a space");
    streams(t, "1", "||", "a suffix alone decodes to no text");
    ft_tokenizer_close(t);
}

static void test_nested(void)
{
    ft_tokenizer *t = tiny_bpe_open(
        OLD_DECODER, STEPS(REPLACE("a", "x") ", {'type': 'Sequence', 'decoders': [" REPLACE(
                         "x", "y") ", {'type': 'Fuse'}]}"));
    streams(t, "0 1", "y|b||", "the steps of a sequence in a sequence are steps of the decoder");
    ft_tokenizer_close(t);
}

static void test_refused(void)
{
    static const struct {
        const char *decoder, *says;
    } refused[] = {
        { "'decoder': {'type': 'CTC'}", "tiny: decoder.type: found \"CTC\", expected BPEDecoder" },
        { "'decoder': {'type': 'BPEDecoder', 'suffix': ''}",
          "decoder.suffix: found \"\", expected 1 to 64 bytes" },
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
        is_str(tiny_ids(t, "abc"), "8",
               "a tokenizer with an unsupported decoder still encodes text");
        is_int(ft_detokenizer_open(&decoder, t, true, &err), FT_EUNSUPPORTED,
               "a detokenizer cannot be opened with an unsupported decoder");
        has(err.text, refused[i].says, "the error names the unsupported part of the decoder");
        ok(decoder == NULL &&
               ft_tokenizer_decode(t, &id, 1, true, NULL, 0, &bytes, &err) == FT_EUNSUPPORTED &&
               bytes == 0,
           "ids cannot be decoded with an unsupported decoder, one by one or all at once");
        ft_tokenizer_close(t);
    }
}

#define GROWING REPLACE("a", "aaaaaaaaaaaaaaaa")

/* Four successive replacements would expand one byte to 64 KiB. */
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
           "a decoder that expands one byte too far is refused");
    is_str(err.text, "tiny: decoder: adds more than 1040 bytes to a token of 1",
           "the error names the limit of the expansion");
    is_int(ft_detokenizer_push(decoder, 1, &text, &bytes, &err), FT_OK,
           "the token after an expansion that failed is decoded");
    ok(bytes == 1 && text[0] == 'b',
       "the token after an expansion that failed decodes to its own text");
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
    test_suffix();
    test_nested();
    test_refused();
    test_growing();
    return done_testing();
}
