/*
 * tokenizer_json-t.c - which tokenizer.json files are accepted, and the errors for others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer_json.h"

#include "tests/lib/models/tiny_tokenizer.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

#define BERT_PROCESSING "{'type': 'BertProcessing', 'sep': ['[SEP]', 3], 'cls': ['[CLS]', 2]}"
#define TEMPLATE(single)                                                                           \
    "{'type': 'TemplateProcessing', 'single': [" single "], 'pair': [], 'special_tokens':"         \
    " {'[CLS]': {'id': '[CLS]', 'ids': [2], 'tokens': ['[CLS]']},"                                 \
    "  'both': {'id': 'both', 'ids': [3, 4], 'tokens': ['[SEP]', '[MASK]']}}}"
#define SPECIAL(id) "{'SpecialToken': {'id': '" id "', 'type_id': 0}}"
#define SEQUENCE(id, type) "{'Sequence': {'id': '" id "', 'type_id': " type "}}"
#define ADDED(id, content, normalized)                                                             \
    "{'id': " id ", 'content': '" content "', 'single_word': false, 'lstrip': false,"              \
    " 'rstrip': false, 'normalized': " normalized ", 'special': true}"

static void ids_after_edit(const char *old, const char *new, const char *text, const char *expected,
                           const char *sentence)
{
    is_ids(tiny_open(old, new), text, expected, sentence);
}

static void test_settings(void)
{
    ids_after_edit("'strip_accents': null", "'strip_accents': false", "\u00e9", "2 1 3",
                   "strip_accents false keeps accents");
    ids_after_edit("'lowercase': true", "'lowercase': false", "\u00e9 E", "2 1 1 3",
                   "without strip_accents, accents are kept when case is kept");
    ids_after_edit("_word': 100", "_word': 5", "unaab unaabb", "2 5 8 8 9 1 3",
                   "a word longer than max_input_chars_per_word becomes [UNK]");
    ids_after_edit("_word': 100", "_word': 1", "\u5b57 un", "2 12 1 3",
                   "max_input_chars_per_word counts characters, not bytes");
    ids_after_edit("'truncation': null", "'truncation': {'max_length': 3}", "e e e e",
                   "2 10 10 10 10 3", "the truncation section is ignored");
    ids_after_edit("'padding': null", "'padding': {'strategy': {'Fixed': 9}}", "e", "2 10 3",
                   "the padding section is ignored");
    ids_after_edit("'type': 'WordPiece', ", "", "unable", "2 5 6 3",
                   "a model without a type is recognized as WordPiece by its fields");
    ids_after_edit("'##',", "'',", "unable", "2 5 7 3",
                   "the continuing subword prefix may be empty");
    ids_after_edit("'##',", "'@',", "unable un", "2 1 5 3",
                   "a continuing subword prefix that no token has is accepted");
    ids_after_edit("'normalizer': {", "'normalizer': null, 'decoder': {", "un Un", "2 5 1 3",
                   "text is not normalized without a normalizer");
    ids_after_edit("'normalizer': {",
                   "'normalizer': {'type': 'Sequence', 'normalizers': []},"
                   " 'decoder': {",
                   "un Un", "2 5 1 3", "an empty sequence of normalizers leaves text unchanged");
}

static void test_special_ids(void)
{
    ft_tokenizer *t = tiny_open(BERT_PROCESSING, "null");
    is_str(tiny_ids(t, "un"), "5", "without a post-processor no special tokens are added");
    is_int(ft_tokenizer_end_id(t), -1, "without a post-processor there is no end token");
    ft_tokenizer_close(t);

    t = tiny_open(BERT_PROCESSING,
                  TEMPLATE(SPECIAL("[CLS]") ", " SEQUENCE("A", "0") ", " SPECIAL("both")));
    is_str(tiny_ids(t, "un"), "2 5 3 4",
           "a template places special tokens before and after the text");
    is_int(ft_tokenizer_end_id(t), 4, "the last token of the template is the end token");
    ft_tokenizer_close(t);
}

/* ------------------------------------------------------------------------------------------ */

/* clang-format off */

/* Files that the `tokenizers` library refuses as well. */
static void test_malformed(void)
{
    static const bad_edit edits[] = {
        { "}}}", "}}", "t.json: line 1, column" },
        { tiny_json, "", "t.json: line 1, column 1" },
        { tiny_json, "[]", "t.json: found a JSON array, expected a JSON object" },
        { "'e': 10", "'e': 10, 'e': 11", "duplicate object key" },
        { "'e': 10", "'\xff': 10", "model.vocab: file byte 715: bad UTF-8 in a string" },
        { "'e': 10", "'\\u0000': 10", "U+0000 in a string" },
        { "'e': 10", "'e': 10]", "line 1, column 770: not valid JSON: end of file expected" },
        { "'e': 10", "'e': 11", "model.vocab: [: id 11 is used twice" },
        { "'model'", "'decoder'", "model: found nothing, expected an object" },
        { "'e': 10", "'e': -1", "model.vocab: e: file byte 719: expected an integer from 0 to" },
        { "'e': 10", "'e': 2147483648", "found 2147483648, expected at most 2147483647" },
        { "'e': 10", "'e': 1.5", "expected an integer from 0 to 9223372036854775807, found 1.5" },
        { "'e': 10", "'e': '10'", "model.vocab: e: file byte 719: expected an integer, found '\"'" },
        { "'[UNK]',", "'?',", "model.unk_token: found \"?\", expected a token of the vocabulary" },
        { "'[UNK]',", "null,", "model.unk_token: found null, expected a string" },
        { "'max_input_chars_per_word': 100, ", "", "max_input_chars_per_word: found nothing" },
        { "_word': 100", "_word': -100", "max_input_chars_per_word: found -100, expected an int" },
        { "'continuing_subword_prefix': '##',", "", "continuing_subword_prefix: found nothing" },
        { "'clean_text': true", "'clean_text': 1", "normalizer.clean_text: found 1, expected" },
        { ", 'lowercase': true", "", "normalizer.lowercase: found nothing, expected true or" },
        { "'normalizer': {", "'normalizer': {'type': 'Sequence', 'normalizers': [1, 2]},"
          " 'decoder': {",
          "normalizer.normalizers[0].type: found nothing, expected a string" },
        { "_accents': null", "_accents': 'no'", "strip_accents: found \"no\", expected true or" },
        { "{'type': 'BertPreTokenizer'}", "[]", "pre_tokenizer: found [], expected an object" },
        { "['[SEP]', 3]", "'[SEP]'", "post_processor.sep: found \"[SEP]\", expected an array" },
        { "['[SEP]', 3]", "['[SEP]']", "post_processor.sep: found nothing, expected an integer" },
        { "[{'id': 4", "[1, {'id': 4", "added_tokens[0].content: found nothing, expected a" },
        { "'id': 4, ", "", "added_tokens[0].id: found nothing, expected an integer" },
        { "'content': '[MASK]'", "'content': []", "added_tokens[0].content: found []" },
        { ", 'special': true", "", "added_tokens[0].special: found nothing, expected true" },
        { BERT_PROCESSING, TEMPLATE(SPECIAL("[NO]")), "special_tokens.[NO]: found nothing" },
        { BERT_PROCESSING, TEMPLATE(SEQUENCE("A", "-1")), "Sequence.type_id: found -1, expected an in" },
        { BERT_PROCESSING, TEMPLATE(SEQUENCE("C", "0")), "Sequence.id: found \"C\", expected" },
    };
    are_refused(tiny_json, edits, FT_COUNT(edits), FT_EFORMAT);
}

/* Valid files with features that encoding does not implement. */
static void test_unsupported(void)
{
    static const bad_edit edits[] = {
        { "'1.0'", "'2.0'", "t.json: version: found \"2.0\", expected \"1.0\"" },
        { "'version'", "'versions'", "t.json: versions: found \"1.0\", expected no such field" },
        { "'WordPiece'", "'Guess'", "model.type: found \"Guess\", expected BPE, Unigram, WordLevel or WordPiece" },
        { "'vocab'", "'dropout': 0.5, 'vocab'", "model.dropout: found 0.5, expected no such" },
        { "'BertNormalizer'", "'NFKCC'", "normalizer.type: found \"NFKCC\", expected" },
        { "'clean_text'", "'clean': 1, 'clean_text'", "normalizer.clean: found 1, expected no" },
        { "'normalizer': {",
          "'normalizer': {'type': 'Sequence', 'normalizers': [{'type': 'Nfd'}]}, 'decoder': {",
          "normalizer.normalizers[0].type: found \"Nfd\", expected BertNormalizer" },
        { "'BertPreTokenizer'", "'Words'", "pre_tokenizer.type: found \"Words\"" },
        { "'BertPreTokenizer'", "'BertPreTokenizer', 'x': 1", "pre_tokenizer.x: found 1" },
        { "'BertProcessing'", "'Processing'",
          "post_processor.type: found \"Processing\", expected BertProcessing, ByteLevel, Rob" },
        { BERT_PROCESSING, TEMPLATE(""), "post_processor.single: found [], expected a template" },
        { BERT_PROCESSING, TEMPLATE(SEQUENCE("A", "0") ", " SEQUENCE("A", "0")),
          "expected a template with the sequence A once" },
        { "'id': 4", "'id': 5", "added_tokens[0].id: found 5, expected 4, as in the vocabulary" },
        { "[{", "[" ADDED("16", "new", "false") ", {", "id: found 16, expected 15, the next free" },
        { "[{", "[" ADDED("4", "[MASK]", "true") ", {", "content: \"[MASK]\" is added twice" },
        { "[{", "[" ADDED("15", "new", "true") ", " ADDED("16", "new", "false") ", {",
          "added_tokens[1].id: found 16, expected 15, as in the vocabulary" },
        { "[{", "[" ADDED("15", "new", "true") ", " ADDED("15", "new", "false") ", {",
          "added_tokens[1].content: \"new\" is added twice" },
        { "[{", "[" ADDED("15", "", "false") ", {", "added_tokens[0].content: \"\" is empty" },
        { "[{", "[" ADDED("15", "\\u0301", "true") ", {", "is empty when normalized" },
        { "[{", "[" ADDED("15", "X", "true") ", " ADDED("16", "x", "true") ", {",
          "added_tokens[1].content: \"x\" normalizes to the same text as another" },
        { "'rstrip'", "'x': 1, 'rstrip'", "added_tokens[0].x: found 1, expected no such field" },
        { "'normalized': false", "'normalized': true, 'at_start': true",
          "added_tokens[0].normalized: found true, expected false, which at_start needs" },
    };
    are_refused(tiny_json, edits, FT_COUNT(edits), FT_EUNSUPPORTED);
}

/* clang-format on */

#define GROWING "{'type': 'Replace', 'pattern': {'String': 'M'}, 'content': 'MMMMMMMMMMMMMMMM'}"

static void test_growing(void)
{
    static const bad_edit edit = {
        "'normalized': false, 'special': true}], 'normalizer': {",
        "'normalized': true, 'special': true}], 'normalizer': {'type': 'Sequence', 'normalizers': "
        "[" GROWING ", " GROWING ", " GROWING "]}, 'decoder': {",
        "added_tokens[0].content: normalizer: adds more than 1120 bytes to its 6"
    };
    are_refused(tiny_json, &edit, 1, FT_ELIMIT);
}

int main(void)
{
    test_settings();
    test_special_ids();
    test_malformed();
    test_unsupported();
    test_growing();
    return done_testing();
}
