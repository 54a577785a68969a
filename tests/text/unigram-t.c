/*
 * unigram-t.c - a Unigram model as its section of tokenizer.json describes it, and the errors for
 * others; tests/text/models-t.c compares random models with the `tokenizers` library.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/models/tiny_tokenizer.h"

static const char unigram_json[] =
    "{'version': '1.0', 'added_tokens': [{'id': 8, 'content': '<x>', 'single_word': true,"
    " 'lstrip': false, 'rstrip': false, 'normalized': false, 'special': false}],"
    " 'model': {'type': 'Unigram', 'unk_id': 0, 'vocab': [['<unk>', 0.0], ['a', -1], ['b', -2.5e0],"
    " ['ab', -3], ['<0xC3>', -9], ['<0xA9>', -9], ['\\u5b57', null], ['abb', -5.75]],"
    " 'byte_fallback': false}}";

static void ids(const char *old, const char *new, const char *text, const char *expected,
                const char *sentence)
{
    is_ids(open_edited(unigram_json, old, new), text, expected, sentence);
}

static void test_scores(void)
{
    ids("", "", "ab", "3", "the piece of the higher score is taken");
    ids("['ab', -3]", "['ab', -4]", "ab", "1 2", "two pieces are taken if their sum is higher");
    ids("['ab', -3]", "['ab', -3.5]", "ab", "3",
        "of equal sums the one whose last piece starts first is taken");
    ids("-5.75", "-5.25", "abb", "7", "a long piece is taken whole");
    ids("['a', -1]", "['ab', -9]", "ab", "3",
        "of two pieces with one text, the last one has the score and the id");
    ids("'type': 'Unigram', ", "", "ab", "3",
        "a model without a type is recognized as Unigram by its array of pieces");
    ids("['abb', -5.75]", "['', 5]", "ab", "3", "a piece without text is never taken");
}

static void test_unknown(void)
{
    ids("", "", "a\u00e9\u00e9b", "1 0 2", "adjacent unknown characters are one unknown token");
    ids("", "", "a<unk>\u00e9b", "1 0 2", "the text of the unknown token is unknown text");
    ids("'byte_fallback': false", "'byte_fallback': true", "\u00e9a", "4 5 1",
        "with byte_fallback the bytes of unknown text are tokens");
    ids("'byte_fallback': false", "'byte_fallback': true", "\u00e9\u00ea", "0",
        "with byte_fallback, unknown text is one token if the vocabulary lacks one of its bytes");
    ids("", "", "\u5b57b", "6 2",
        "unknown text that is equal to a token without a score is that token");
    ids("", "", "\u5b57\u5b57", "0", "unknown text is compared with tokens as a whole");
    ids("'unk_id': 0", "'unk_id': 0, 'unknown_from': 3", "abba", "0 2 1",
        "tokens from unknown_from on split the text, but are encoded as unknown");
    ids("", "", "<x>a", "0 1", "an added token that does not match is no piece of the model");
}

/* clang-format off */

static void test_refused(void)
{
    static const bad_edit malformed[] = {
        { "'unk_id': 0", "'unk_id': null", "model.unk_id: found null, expected an integer from 0 to 7" },
        { "'unk_id': 0", "'unk_id': 8", "model.unk_id: found 8, expected an integer from 0 to 7" },
        { "-2.5e0", "'-2'", "model.vocab: file byte 245: expected a finite number or null, found '\"'" },
        { "-2.5e0", "-2.", "expected a finite number or null, found '-'" },
        { "-2.5e0", "02", "expected a finite number or null, found '0'" },
        { "-2.5e0", "1e309", "expected a finite number or null, found '1'" },
        { "-2.5e0", "NaN", "expected a finite number or null, found 'N'" },
        { "-2.5e0", "nul", "expected a finite number or null, found 'n'" },
        { "-2.5e0]", "-2.5, 1]", "expected ',' or ']', found ','" },
        { "['b', -2.5e0]", "['b']", "expected ',', found ']'" },
        { "['b', -2.5e0]", "[1, 2]", "expected a string, found '1'" },
        { "['b', -2.5e0]", "['b', 1],", "expected '[', found ','" },
        { "'Unigram'", "'BPE'", "model.vocab: found [], expected an object" },
        { "'unk_id': 0", "'unk_id': 0, 'unknown_from': -1", "model.unknown_from: found -1, expected an" },
        { "'byte_fallback': false", "'byte_fallback': 0", "model.byte_fallback: found 0, expected true or" },
    };
    static const bad_edit unsupported[] = {
        { "'byte_fallback'", "'fuse'", "model.fuse: found false, expected no such field" },
        { "'vocab'", "'v\\u006fcab'", "found an array whose name has escapes" },
    };
    are_refused(unigram_json, malformed, FT_COUNT(malformed), FT_EFORMAT);
    are_refused(unigram_json, unsupported, FT_COUNT(unsupported), FT_EUNSUPPORTED);
}

/* clang-format on */

static const char word_level_json[] =
    "{'version': '1.0', 'pre_tokenizer': {'type': 'Split', 'pattern': {'String': ' '},"
    " 'behavior': 'Removed', 'invert': false}, 'model': {'type': 'WordLevel', 'unk_token': '<unk>',"
    " 'vocab': {'<unk>': 3, 'one': 1, 'two': 2}}}";

static void test_word_level(void)
{
    static const bad_edit malformed[] = {
        { "'unk_token': '<unk>'", "'unk_token': '?'",
          "unk_token: found \"?\", expected a token of the vocabulary" },
    };
    is_ids(open_edited(word_level_json, "", ""), "two one three onetwo", "2 1 3 3",
           "a WordLevel model makes each word one token, or the unknown token");
    are_refused(word_level_json, malformed, FT_COUNT(malformed), FT_EFORMAT);
}

int main(void)
{
    test_scores();
    test_unknown();
    test_refused();
    test_word_level();
    return done_testing();
}
