/*
 * bpe_json-t.c - which tokenizer.json files of BPE models are accepted, and the errors for others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer_json.h"

#include "tests/lib/models/tiny_tokenizer.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

#define BYTE_LEVEL                                                                                 \
    "{'type': 'ByteLevel', 'add_prefix_space': false, 'trim_offsets': true,"                       \
    " 'use_regex': true}"
#define WORDS "'pre_tokenizer': " BYTE_LEVEL
#define SPLIT(pattern, behavior)                                                                   \
    "'pre_tokenizer': {'type': 'Split', 'pattern': {" pattern "}, 'behavior': '" behavior "',"     \
    " 'invert': false}"
#define REGEX(pattern) SPLIT("'Regex': '" pattern "'", "Isolated")
#define METASPACE(more) "'pre_tokenizer': {'type': 'Metaspace', 'replacement': 'c'" more "}"
#define ADDED(id, content)                                                                         \
    "{'id': " id ", 'content': '" content "', 'single_word': false, 'lstrip': false,"              \
    " 'rstrip': false, 'normalized': true, 'special': false}"

#define NEST(steps) "{'type': 'Sequence', 'pretokenizers': [" steps "]}"

#define LONG "01234567890123456789012345678901234567890123456789012345678901234"
#define EIGHT                                                                                      \
    "{'type': 'NFC'}, {'type': 'NFC'}, {'type': 'NFC'}, {'type': 'NFC'}, {'type': 'NFC'},"         \
    " {'type': 'NFC'}, {'type': 'NFC'}, {'type': 'NFC'}"
#define FOUR BYTE_LEVEL ", " BYTE_LEVEL ", " BYTE_LEVEL ", " BYTE_LEVEL

static void ids_after_edit(const char *old, const char *new, const char *text, const char *expected,
                           const char *sentence)
{
    is_ids(tiny_bpe_open(old, new), text, expected, sentence);
}

static void test_merges(void)
{
    ids_after_edit("", "", "abc abc", "8 3 8", "BPE merges pairs in the order of the merge list");
    ids_after_edit("", "", "aaa aaaaa", "11 0 9 14",
                   "BPE merges the leftmost of equal pairs first");
    ids_after_edit("'a b', ", "", "abc", "0 10", "BPE keeps a pair apart that has no merge");
    ids_after_edit("['b', 'c']", "['b', 'c'], ['a', 'b']", "abc", "0 10",
                   "the last of duplicate merges determines the rank");
    ids_after_edit("['a b'", "['#version: 0.2', 'a b'", "abc", "8",
                   "the version line of the merges is not a merge");
    ids_after_edit("_merges': false", "_merges': true", "aaaa aa", "14 9 0",
                   "ignore_merges makes a word that is a token one id and merges other words");
}

static void test_settings(void)
{
    ids_after_edit("'type': 'BPE', ", "", "abc", "8",
                   "a model without a type is recognized as BPE by its merges");
    ids_after_edit("'dropout': null, ", "", "abc", "8", "fields that must be null may be missing");
    ids_after_edit("_suffix': null", "_suffix': ''", "abc", "8",
                   "a field that must be null may be an empty string");
    ids_after_edit("", "", "\u20ac", "4 5 6",
                   "byte-level BPE encodes a character as the bytes of its UTF-8 form");
    ids_after_edit("", "", "xabx", "7", "unknown bytes are dropped without an unk_token");
    ids_after_edit("'unk_token': null", "'unk_token': '?'", "xxab", "12 12 7",
                   "each unknown byte becomes the unk_token");
    ids_after_edit("null, 'continuing_subword_prefix': null, 'end_of_word_suffix': null,"
                   " 'fuse_unk': false",
                   "'?', 'fuse_unk': true", "xxab", "12 7",
                   "fuse_unk merges adjacent unknown bytes into one unk_token");
    ids_after_edit(WORDS, "'pre_tokenizer': null", "abcabc a", "8 8 0",
                   "without a pre-tokenizer the text is one word");
    ids_after_edit(WORDS, METASPACE(", 'add_prefix_space': true"), "a b", "2 0 2 1",
                   "Metaspace accepts the older field add_prefix_space");
    ids_after_edit("'post_processor': null",
                   "'post_processor': {'type': 'Sequence', 'processors': [" BYTE_LEVEL "]}", "abc",
                   "8", "a post-processor that leaves ids unchanged is accepted");
    ids_after_edit(WORDS, "'pre_tokenizer': " NEST(NEST("{'type': 'Whitespace'}, " BYTE_LEVEL)),
                   "abc a", "8 0",
                   "the steps of a sequence in a sequence are steps of the pre-tokenizer");
    ids_after_edit(
        "{'type': 'NFC'}",
        "{'type': 'Sequence', 'normalizers': [{'type': 'Lowercase'}, {'type': 'Sequence', "
        "'normalizers': [{'type': 'StripAccents'}, {'type': 'NFC'}]}]}",
        "ABC", "8", "the steps of a sequence in a sequence are steps of the normalizer");
    ids_after_edit("'post_processor': null",
                   "'post_processor': {'type': 'Sequence', 'processors': [{'type': 'Sequence', "
                   "'processors': [" BYTE_LEVEL "]}]}",
                   "abc", "8", "a sequence in a sequence is accepted as a post-processor");
}

/* ------------------------------------------------------------------------------------------ */

/* clang-format off */

static void test_malformed(void)
{
    static const bad_edit edits[] = {
        { WORDS, "'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': [{'type': 'Sequence'}]}",
          "pre_tokenizer.pretokenizers[0].pretokenizers: found nothing, expected an array" },
        { "'a b'", "'a z'", "model.merges: file byte 844: merge 0: \"z\" is not in the vocabulary" },
        { "'a b'", "'z b'", "merge 0: \"z\" is not in the vocabulary" },
        { "['b', 'c']", "['b', 'a']", "merge 3: \"ba\" is not in the vocabulary" },
        { "'a b'", "'a  b'", "merge 0: found \"a  b\", expected two words" },
        { "'a b'", "'ab'", "merge 0: found \"ab\", expected two words" },
        { "'a b'", "['a']", "expected ',', found ']'" },
        { "'a b'", "['a', 'b', 'c']", "expected ',' or ']', found ','" },
        { "'a b'", "7", "expected a string, found '7'" },
        { "'a b'", "'\xc3 b'", "model.merges: file byte 840: bad UTF-8 in a string" },
        { "['aa', 'aa']]", "['aa', 'aa']", "expected near end of file" },
        { "'merges': [", "'merges': {}, 'type': [", "duplicate object key" },
        { ", 'merges': [", "}, 'version': [", "duplicate object key" },
        { "'b': 1", "'b': 0", "model.vocab: b: id 0 is used twice" },
        { "'b': 1", "'a': 1", "model.vocab: a: file byte 677: duplicate object key" },
        { "'b': 1", "'b' 1", "model.vocab: b: file byte 675: expected ':', found '1'" },
        { "'b': 1", "'b\n': 1", "control character 0x0a in a string" },
        { "'b': 1", "'b': 1,", "model.vocab: file byte 678: expected a string, found ','" },
        { "'unk_token': null", "'unk_token': 'z'", "unk_token: found \"z\", expected a token of" },
        { "'unk_token': null", "'unk_token': 1", "model.unk_token: found 1, expected a string" },
        { "'ignore_merges'", "'unknown_from': 3, 'ignore_merges'", "model.unk_token: found null, expected a token, which unknown_from needs" },
        { "'fuse_unk': false", "'fuse_unk': 0", "model.fuse_unk: found 0, expected true or" },
        { "{'type': 'NFC'}", "{'type': 'Replace', 'pattern': ' ', 'content': ''}",
          "normalizer.pattern: found \" \", expected an object" },
        { "'use_regex': true}", "'use_regex': 1}", "pre_tokenizer.use_regex: found 1, expected true" },
        { "'add_prefix_space': false, ", "", "add_prefix_space: found nothing, expected true or" },
        { WORDS, REGEX("(a"), "Regex: found \"(a\", expected a valid pattern: missing closing par" },
        { WORDS, REGEX("a)"), "Regex: found \"a)\", expected a valid pattern: unmatched closing" },
        { WORDS, REGEX("*"), "Regex: found \"*\", expected a valid pattern" },
        { WORDS, SPLIT("", "Isolated"), "pattern.Regex: found nothing, expected a string" },
        { WORDS, METASPACE(", 'add_prefix_space': false"), "found false, expected true, or the" },
        { "{'type': 'NFC'}", "7", "normalizer: found 7, expected an object" },
    };
    are_refused(tiny_bpe_json, edits, FT_COUNT(edits), FT_EFORMAT);
}

static void test_unsupported(void)
{
    static const bad_edit edits[] = {
        { "'dropout': null", "'dropout': 0.1", "model.dropout: found 0.1, expected null or 0" },
        { "_prefix': null", "_prefix': '\u00e9'", "continuing_subword_prefix: found \"\\u00E9\", expected at most 64 ASCII" },
        { "'merges': [", "'merges': 5, 'x': [", "model.x: found [\"a b\", [\"ab\", " },
        { "'fuse_unk'", "'x': 1, 'fuse_unk'", "model.x: found 1, expected no such field" },
        { "{'type': 'NFC'}", "{'type': 'NFCC'}",
          "normalizer.type: found \"NFCC\", expected BertNormalizer, ByteLevel, Lowercase, NFC," },
        { "{'type': 'NFC'}", "{'type': 'Prepend', 'prepend': '" LONG "'}",
          "expected 64 bytes at most" },
        { "{'type': 'NFC'}", "{'type': 'Replace', 'pattern': {'Glob': ' '}, 'content': ''}",
          "normalizer.pattern.Glob: found \" \", expected no such field" },
        { "{'type': 'NFC'}", "{'type': 'Replace', 'pattern': {'String': ''}, 'content': ''}",
          "normalizer.pattern.String: found \"\", expected a pattern of 1 to 4096 bytes" },
        { "{'type': 'NFC'}", "{'type': 'Sequence', 'normalizers': [" EIGHT ", " EIGHT ", " EIGHT ", "
          EIGHT ", {'type': 'NFC'}]}", "normalizers[32].type: found \"NFC\", expected 32" },
        { WORDS, "'pre_tokenizer': {'type': 'Scripts'}",
          "pre_tokenizer.type: found \"Scripts\", expected BertPreTokenizer, ByteLevel" },
        { WORDS, "'pre_tokenizer': " NEST(NEST(NEST(NEST(NEST(NEST(NEST(NEST(NEST(""))))))))),
          "pretokenizers[0].type: found \"Sequence\", expected 8 sequences in each other at most" },
        { WORDS, "'pre_tokenizer': " NEST(NEST("{'type': 'Whitespaces'}")),
          "pre_tokenizer.pretokenizers[0].pretokenizers[0].type: found \"Whitespaces\", expected" },
        { WORDS, "'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': [" FOUR ", " FOUR ", " FOUR ", "
          FOUR "]}", "pretokenizers[12].type: found \"ByteLevel\", expected fewer steps" },
        { WORDS, SPLIT("'Regex': 'a'", "Joined"), "behavior: found \"Joined\", expected Isolated" },
        { WORDS, SPLIT("'String': ''", "Removed"), "expected a pattern of 1 to 4096 bytes, found 0" },
        { WORDS, METASPACE(", 'prepend_scheme': 'last'"), "prepend_scheme: found \"last\", expec" },
        { WORDS, REGEX("a\\\\w"), "expected a pattern without \\w, found at byte 1" },
        { "'post_processor': null", "'post_processor': {'type': 'Processing'}",
          "post_processor.type: found \"Processing\", expected BertProcessing" },
        { "[{", "[" ADDED("15", "x\\u0301\\u0323") ", " ADDED("16", "x\\u0323\\u0301") ", {",
          "normalizes to the same text as another" },
        { "'?': 12, '\\u00c3': 13", "'?': 12, '\\u00c3': 15",
          "added_tokens: id 15 is used by a word of the vocabulary" },
    };
    are_refused(tiny_bpe_json, edits, FT_COUNT(edits), FT_EUNSUPPORTED);
}

/* clang-format on */

/* ---- Large files ---------------------------------------------------------------------------- */

/* A vocabulary of `words` words that would collide under a common hash function. */
static void test_many_words(void)
{
    enum { WORDS_ = 200000, WORD = 24 };
    char *json = malloc(200 + (size_t) WORDS_ * (WORD + 12)), *at = json;
    ft_tokenizer *tokenizer;
    ft_error err;
    if (json == NULL)
        bail_out("no memory");
    at += sprintf(at, "{\"pre_tokenizer\": null, \"model\": {\"vocab\": {");
    for (int i = 0; i < WORDS_; i++)
        at += sprintf(at, "%s\"%024d\": %d", i > 0 ? ", " : "", i * 64, WORDS_ - 1 - i);
    at += sprintf(at, "}, \"merges\": []}}");
    bool opened = ft_tokenizer_parse(&tokenizer, "many", json, (size_t) (at - json), &err) == FT_OK;
    if (!ok(opened, "a vocabulary of 200,000 words with descending ids is parsed"))
        bail_out("%s", err.text);
    is_int((long long) ft_tokenizer_vocab_size(tokenizer), WORDS_,
           "the vocabulary size is the number of words");
    is_int(ft_tokenizer_token_to_id(tokenizer, "000000000000000000000064"), WORDS_ - 2,
           "a word is found in a large vocabulary");
    ft_tokenizer_close(tokenizer);
    free(json);
}

/* Nested brackets: neither the scan for tables nor the parser may recurse without a limit. */
static void test_deep_nesting(void)
{
    enum { DEPTH = 1 << 20 };
    char *json = malloc(DEPTH + 16);
    ft_tokenizer *tokenizer;
    ft_error err;
    if (json == NULL)
        bail_out("no memory");
    memcpy(json, "{\"x\":", 5);
    memset(json + 5, '[', DEPTH);
    is_int(ft_tokenizer_parse(&tokenizer, "deep", json, DEPTH + 5, &err), FT_EFORMAT,
           "a million nested brackets are refused");
    has(err.text, "maximum parsing depth reached",
        "the error for nested brackets names the depth limit");
    free(json);
}

/* Keys are compared as they appear in the file, escapes included. */
static void test_escaped_name(void)
{
    static const bad_edit edits[] = {
        { "'vocab'", "'voc\\u0061b'", "model.vocab: found an object whose name has escapes" },
        { "'merges'", "'m\\u0065rges'", "model.merges: found an array whose name has escapes" },
        { "'model'", "'mod\\u0065l'", "model.vocab: found an object whose name has escapes" },
    };
    are_refused(tiny_bpe_json, edits, FT_COUNT(edits), FT_EUNSUPPORTED);
}

int main(void)
{
    test_merges();
    test_settings();
    test_malformed();
    test_unsupported();
    test_many_words();
    test_deep_nesting();
    test_escaped_name();
    return done_testing();
}
