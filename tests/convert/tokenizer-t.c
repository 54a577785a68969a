/*
 * tokenizer-t.c - each published form of a tokenizer becomes the tokenizer.json whose ids
 * tests/golden/make-tokenizer-sources.py compared with those of the published libraries.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/tokenizer_files.h"
#include "runtime/base/sha256.h"
#include "runtime/mem.h"
#include "tests/lib/folder.h"
#include "tests/lib/golden_rows.h"
#include "tests/lib/models/tiny_tokenizer.h"
#include "tests/lib/tokenizer_sources.h"

#include <string.h>
#include <unistd.h>

static const ft_tokenizer_hints no_hints = { NULL, NULL };
static char folder[FOLDER_PATH];

/* ---- Folders -------------------------------------------------------------------------------- */

static void write_file(const char *name, const char *data, size_t bytes)
{
    folder_write(folder, name, data, bytes);
}

static void copy_file(const char *name, const char *source)
{
    copy_tokenizer_source(folder, name, source);
}

static void empty_folder(void)
{
    folder_remove(folder);
    folder_make(folder);
}

/* ---- Published forms ------------------------------------------------------------------------ */

static void is_digest(const ft_json_file *file, const json_t *expected, const char *name,
                      const char *what)
{
    uint8_t digest[FT_SHA256_BYTES];
    char hex[FT_SHA256_HEX_SIZE] = "";
    if (file->text != NULL && ft_sha256_digest(file->text, file->bytes, digest))
        ft_sha256_to_hex(hex, digest);
    is_str(hex, expected == NULL ? "" : json_string_value(expected),
           "the files of %s become the %s whose ids equal those of the published libraries", name,
           what);
}

static void test_languages(const ft_json_file *file, json_t *expected, const char *name)
{
    json_t *found = json_loadb(file->text == NULL ? "null" : file->text,
                               file->text == NULL ? 4 : file->bytes, JSON_DECODE_ANY, NULL);
    ok(json_equal(found, expected == NULL ? json_null() : expected),
       "the languages of %s are those of its added tokens, with their ids and defaults", name);
    json_decref(found);
}

/* ---- Their tokens --------------------------------------------------------------------------- */

enum { BLOCK = 50, LINES = 1000, PAIRS = 200 };
static json_t *line[LINES]; /* texts of bpe-lines.jsonl */

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

/* "id:type id:start-end" per token, separated by blanks, and a line feed. */
static void add_tokens(EVP_MD_CTX *digest, const ft_tokenizer *tokenizer, const json_t *text,
                       const json_t *pair)
{
    ft_encoding *encoding;
    ft_error err;
    const ft_encode_options options = { .pair = json_string_value(pair),
                                        .pair_bytes = json_string_length(pair),
                                        .offsets = true };
    if (ft_tokenizer_encode_text(tokenizer, json_string_value(text), json_string_length(text),
                                 &options, &encoding, &err) != FT_OK)
        bail_out("%s", err.text);
    for (size_t i = 0; i < encoding->count; i++) {
        char token[64];
        int bytes =
            snprintf(token, sizeof token, "%s%d:%d:%u-%u", i > 0 ? " " : "", encoding->ids[i],
                     encoding->type_ids[i], encoding->offsets[i].start, encoding->offsets[i].end);
        EVP_DigestUpdate(digest, token, (size_t) bytes);
    }
    EVP_DigestUpdate(digest, "\n", 1);
    ft_encoding_free(encoding);
}

/* Whether 50 lines, or pairs with the line that is PAIRS lines later, have this digest. */
static bool is_block(const ft_tokenizer *tokenizer, size_t first, bool pairs, const char *expected)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    char hex[33];
    EVP_MD_CTX *digest = digest_begin();
    for (size_t i = first; i < first + BLOCK; i++)
        add_tokens(digest, tokenizer, line[i], pairs ? line[i + PAIRS] : NULL);
    EVP_DigestFinal_ex(digest, sum, NULL);
    EVP_MD_CTX_free(digest);
    for (int i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    return expected != NULL && strcmp(hex, expected) == 0;
}

static void test_tokens(const ft_tokenizer *tokenizer, const json_t *row, bool pairs)
{
    const json_t *expected = json_array_get(row, pairs ? 4 : 3);
    size_t equal = 0, blocks = pairs ? PAIRS / BLOCK : LINES / BLOCK;
    for (size_t i = 0; i < blocks; i++)
        equal +=
            is_block(tokenizer, i * BLOCK, pairs, json_string_value(json_array_get(expected, i)));
    is_int((long long) equal, (long long) blocks,
           "%s gives the published ids, type ids and offsets of all blocks of 50 %s",
           json_string_value(json_array_get(row, 0)), pairs ? "pairs" : "lines");
}

static void test_runtime(const ft_json_file *file, const json_t *row)
{
    ft_tokenizer *tokenizer;
    ft_error err;
    if (ft_tokenizer_parse(&tokenizer, "tokenizer.json", file->text, file->bytes, &err) != FT_OK)
        bail_out("%s", err.text);
    test_tokens(tokenizer, row, false);
    test_tokens(tokenizer, row, true);
    ft_tokenizer_close(tokenizer);
}

static bool is_equal(const ft_json_file *a, const ft_json_file *b)
{
    return a->bytes == b->bytes && (a->bytes == 0 || memcmp(a->text, b->text, a->bytes) == 0);
}

/* A checkpoint that has the tokenizer.json has the same languages. */
static void test_again(const ft_tokenizer_files *made, const char *name)
{
    ft_tokenizer_files again;
    ft_error err;
    write_file("tokenizer.json", made->tokenizer.text, made->tokenizer.bytes);
    if (ft_tokenizer_files_read(&again, folder, &no_hints, &err) != FT_OK)
        bail_out("%s", err.text);
    ok(again.class == NULL && is_equal(&again.tokenizer, &made->tokenizer) &&
           is_equal(&again.languages, &made->languages),
       "the tokenizer.json of %s goes before its other files, and its languages are the same",
       name);
    ft_tokenizer_files_fini(&again);
}

static void test_case(const json_t *row)
{
    const char *name = json_string_value(json_array_get(row, 0));
    json_t *files = json_array_get(row, 1);
    const json_t *results = json_array_get(row, 2);
    ft_tokenizer_files made;
    ft_error err = { .text = "" };
    write_tokenizer_files(folder, files);
    is_str(ft_tokenizer_files_read(&made, folder, &no_hints, &err) == FT_OK ? "" : err.text, "",
           "the files of %s are read", name);
    is_digest(&made.tokenizer, json_object_get(results, "tokenizer"), name, "tokenizer.json");
    is_digest(&made.target, json_object_get(results, "target"), name, "tokenizer_target.json");
    test_languages(&made.languages, json_object_get(results, "languages"), name);
    test_runtime(&made.tokenizer, row);
    test_again(&made, name);
    ft_tokenizer_files_fini(&made);
    empty_folder();
}

static void test_golden(void)
{
    FILE *file = open_golden("tests/golden/tokenizer-sources.jsonl");
    read_lines();
    for (json_t *row; (row = read_row(file)) != NULL; json_decref(row))
        test_case(row);
    for (size_t i = 0; i < LINES; i++)
        json_decref(line[i]);
    fclose(file);
}

/* ---- Classes -------------------------------------------------------------------------------- */

static const char *class_of(const char *model_type, const char *class)
{
    static char name[64];
    ft_tokenizer_files made;
    ft_error err;
    const ft_tokenizer_hints hints = { model_type, class };
    ft_status status = ft_tokenizer_files_read(&made, folder, &hints, &err);
    snprintf(name, sizeof name, "%s",
             status != FT_OK      ? "refused"
             : made.class == NULL ? "none"
                                  : made.class);
    ft_tokenizer_files_fini(&made);
    return name;
}

static void test_hints(void)
{
    copy_file("vocab.txt", "uncased.txt");
    is_str(class_of("distilbert", NULL), "DistilBertTokenizer",
           "the model_type of config.json selects the tokenizer's class where no file names it");
    is_str(class_of("other", "ElectraTokenizerFast"), "ElectraTokenizer",
           "the tokenizer_class of config.json selects the tokenizer's class");
    is_str(class_of("bert", "PreTrainedTokenizerFast"), "BertTokenizer",
           "a general tokenizer_class leaves the choice to the model_type");
    is_str(class_of("bert", "BertJapaneseTokenizer"), "refused",
           "a vocab.txt is refused if it belongs to a class that splits texts in another way");
    is_str(class_of("roberta", NULL), "refused",
           "a vocab.txt is refused for a model whose tokenizer has another form");
    empty_folder();
    copy_file("sentencepiece.bpe.model", "bpe.model");
    is_str(class_of("m2m_100", NULL), "NllbTokenizer",
           "without vocab.json the tokenizer of an m2m_100 model is NLLB's");
    copy_file("vocab.json", "m2m100.json");
    is_str(class_of("m2m_100", NULL), "M2M100Tokenizer",
           "with vocab.json the tokenizer of an m2m_100 model is M2M100's");
    is_str(class_of("mbart", NULL), "refused",
           "mBART is refused where nothing tells its tokenizer from that of mBART-50");
    empty_folder();
}

/* ---- Text files ----------------------------------------------------------------------------- */

/* The tokenizer of the folder, which the caller closes. */
static ft_tokenizer *open_folder(const char *model_type)
{
    const ft_tokenizer_hints hints = { model_type, NULL };
    ft_tokenizer_files made;
    ft_tokenizer *tokenizer;
    ft_error err;
    if (ft_tokenizer_files_read(&made, folder, &hints, &err) != FT_OK ||
        ft_tokenizer_parse(&tokenizer, "tokenizer.json", made.tokenizer.text, made.tokenizer.bytes,
                           &err) != FT_OK)
        bail_out("%s", err.text);
    ft_tokenizer_files_fini(&made);
    return tokenizer;
}

static void is_folder_ids(const char *model_type, const char *text, const char *ids,
                          const char *sentence)
{
    is_ids(open_folder(model_type), text, ids, sentence);
    empty_folder();
}

static void write_text(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

#define BOM "\xef\xbb\xbf"

static void test_text_files(void)
{
    write_text("vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\nb\na\nc\n");
    is_folder_ids("bert", "a b c", "1 5 4 6 2", "of equal lines of vocab.txt the last one counts");
    write_text("vocab.txt", BOM "[UNK]\r\n[CLS]\r\n[SEP]\r\na\r\nb");
    write_text("tokenizer_config.json", BOM "{\r\n\"do_lower_case\": false}\r\n");
    is_folder_ids("bert", "a b A", "1 3 4 0 2",
                  "vocab.txt and tokenizer_config.json may have a byte order mark and CRLF");
    write_text("vocab.json", BOM "{\"a\": 0,\r\n\"b\": 1,\r\n\"ab\": 2}\r\n");
    write_text("merges.txt", BOM "#version: 0.2\r\na b\r\n");
    is_folder_ids("gpt2", "abb", "2 1", "vocab.json and merges.txt may have both as well");
    char *json = edited(BOM "%s", "%s", tiny_bpe_json);
    write_text("tokenizer.json", json);
    free(json);
    is_folder_ids("gpt2", "abc a", "8 9", "tokenizer.json may have a byte order mark");
}

static void test_byte_order_mark(void)
{
    char path[FOLDER_PATH + 32];
    ft_tokenizer *tokenizer;
    ft_error err = { .text = "" };
    char *json = edited(BOM "%s", "%s", tiny_bpe_json);
    write_text("tokenizer.json", json);
    free(json);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    if (ft_tokenizer_open(&tokenizer, path, &err) != FT_OK)
        tokenizer = NULL;
    is_str(tokenizer == NULL ? err.text : tiny_ids(tokenizer, "abc"), "8",
           "ft_tokenizer_open() reads a tokenizer.json with a byte order mark");
    ft_tokenizer_close(tokenizer);
    empty_folder();
}

/* ---- Languages of Marian -------------------------------------------------------------------- */

/* Ids separated by blanks, as MarianTokenizer of transformers 5.24 gives them. */
static const struct {
    const char *text, *ids, *sentence;
} marian_texts[] = {
    { ">>fra<< the dog", "2 51 35 0", "a language at the start of a text is its token" },
    { ">>fra<<the dog", "2 51 35 0", "a language at the start of a text needs no space behind it" },
    { "the >>fra<< dog", "51 147 81 98 22 88 102 102 35 0",
      "a language in the middle of a text is text" },
    { " >>fra<< the dog", "147 81 98 22 88 102 102 51 35 0", "a language behind a space is text" },
    { ">>fra<<>>deu<< a", "2 147 81 124 136 102 102 15 0",
      "a language behind the first one is text" },
};

static void test_marian_languages(void)
{
    copy_file("source.spm", "source.spm");
    copy_file("target.spm", "target.spm");
    copy_file("vocab.json", "marian.json");
    ft_tokenizer *tokenizer = open_folder("marian");
    for (size_t i = 0; i < FT_COUNT(marian_texts); i++)
        is_str(tiny_ids(tokenizer, marian_texts[i].text), marian_texts[i].ids, "%s",
               marian_texts[i].sentence);
    ft_tokenizer_close(tokenizer);
    empty_folder();
}

/* ---- Refused files -------------------------------------------------------------------------- */

typedef struct {
    const char *class;
    const char *file, *text; /* the only file, or the one that replaces that of `class` */
    const char *says;
} bad_file;

static void is_refused(const char *class, ft_status status, const char *says)
{
    const ft_tokenizer_hints hints = { NULL, class };
    ft_tokenizer_files made;
    ft_error err = { .text = "" };
    ft_status found = ft_tokenizer_files_read(&made, folder, &hints, &err);
    if (!ok(found == status && strstr(err.text, says) != NULL,
            "the files of a tokenizer are refused with the error: %s", says))
        diag("found %s \"%s\"", ft_status_name(found), err.text);
    ft_tokenizer_files_fini(&made);
}

/* clang-format off */
static const bad_file bad_files[] = {
    { "BertTokenizer", "vocab.txt", "[UNK]\r\n[CLS]\r\n[SEP]\r\na\xff\r\n", "vocab.txt: line 4: byte 22 of the file is 0xff, expected UTF-8" },
    { "BertTokenizer", "vocab.txt", "[CLS]\n[SEP]\n", "vocab.txt: has no unknown token \"[UNK]\"" },
    { "BertTokenizer", "vocab.txt", "[UNK]\n[SEP]\n", "has no token \"[CLS]\", which its class adds to each text" },
    { "BertTokenizer", "vocab.txt", "", "vocab.txt: is empty" },
    { "GPT2Tokenizer", "merges.txt", "#version: 0.2\na b\nab\n", "merges.txt: line 3: found \"ab\", expected two tokens and a space between" },
    { "GPT2Tokenizer", "merges.txt", "a b c\n", "merges.txt: line 1: found \"a b c\", expected two tokens" },
    { "GPT2Tokenizer", "merges.txt", "\na z\n", "merges.txt: line 2: found \"a z\", expected two tokens of the vocabulary" },
    { "GPT2Tokenizer", "merges.txt", "b a\n", "merges.txt: line 1: the merged token \"ba\" is not in the vocabulary" },
    { "GPT2Tokenizer", "vocab.json", "{\"a\": 0, \"b\": 0}", "vocab.json: \"b\": id 0 is used twice" },
    { "GPT2Tokenizer", "vocab.json", "{\"a\": -1}", "vocab.json: \"a\" has no id from 0 to" },
    { "GPT2Tokenizer", "vocab.json", "{\"a\": 0,\n \"a\": 1}", "vocab.json: line 2, column" },
    { "GPT2Tokenizer", "tokenizer_config.json", "{\"bos_token\": \"<s>\", \"added_tokens_decoder\": {\"9\": {\"content\": \"<s>\"}}}", "tokenizer_config.json: \"<s>\": found id 9, expected 3, the next free one" },
    { "GPT2Tokenizer", "tokenizer_config.json", "{\"added_tokens_decoder\": {\"x\": {}}}", "added_tokens_decoder: found \"x\", expected an id and an object" },
    { "GPT2Tokenizer", "tokenizer_config.json", "{\"add_prefix_space\": 1}", "add_prefix_space: found 1.0, expected true or false" },
    { "GPT2Tokenizer", "tokenizer_config.json", "[]", "tokenizer_config.json: expected a JSON object" },
    { "GPT2Tokenizer", "added_tokens.json", "{\"<x>\": \"3\"}", "added_tokens.json: \"<x>\" has no id" },
    { "RobertaTokenizer", "vocab.json", "{\"a\": 0, \"b\": 1, \"ab\": 2, \"</s>\": 3}", "the tokenizer has no token \"<s>\", which its class adds to each text" },
    { "NllbTokenizer", "tokenizer_config.json", "{\"src_lang\": \"eng\"}", "src_lang: found \"eng\", expected a language of the vocabulary, such as \"eng_Latn\"" },
    { "LlamaTokenizer", "vocab.txt", "[UNK]\n", "no tokenizer.model and no tokenizer.json: a LlamaTokenizer is made from tokenizer.model" },
    { "PerceiverTokenizer", "vocab.txt", "[UNK]\n", "tokenizers of class PerceiverTokenizer are not made from other files" },
    { "BertTokenizer", "vocab.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "vocab.txt: looks like a Git LFS pointer: expected a file of a tokenizer; only the pointer" },
    { NULL, "vocab.txt", "[UNK]\n", "neither tokenizer_config.json nor config.json has a tokenizer_class" },
};
/* clang-format on */

static void test_refused_files(void)
{
    for (size_t i = 0; i < FT_COUNT(bad_files); i++) {
        const bad_file *bad = &bad_files[i];
        bool bpe = bad->class != NULL && (strcmp(bad->class, "GPT2Tokenizer") == 0 ||
                                          strcmp(bad->class, "RobertaTokenizer") == 0);
        if (bad->class != NULL && strcmp(bad->class, "NllbTokenizer") == 0)
            copy_file("sentencepiece.bpe.model", "bpe.model");
        static const char ids[] = "{\"a\": 0, \"b\": 1, \"ab\": 2}";
        if (bpe) {
            write_file("vocab.json", ids, strlen(ids));
            write_file("merges.txt", "a b", 3);
        }
        write_file(bad->file, bad->text, strlen(bad->text));
        bool unsupported = strstr(bad->says, "expected 3") != NULL ||
                           strstr(bad->says, "class") != NULL || strstr(bad->says, "made") != NULL;
        is_refused(bad->class,
                   unsupported && strstr(bad->says, "which its class") == NULL ? FT_EUNSUPPORTED
                                                                               : FT_EFORMAT,
                   bad->says);
        empty_folder();
    }
}

/* ---- Refused files of SentencePiece --------------------------------------------------------- */

typedef struct {
    const char *data;
    size_t bytes;
    ft_status status;
    const char *says;
} bad_pieces;

#define PIECES(status, says, data)                                                                 \
    {                                                                                              \
        data, sizeof data - 1, status, says                                                        \
    }
/* Fields: 1 is a piece with a text (0a), a score (15) and a type (18); 2 the trainer's settings. */
#define UNKNOWN "\x0a\x09\x0a\x05<unk>\x18\x02"
#define PIECE_A                                                                                    \
    "\x0a\x08\x0a\x01"                                                                             \
    "a\x15\x00\x00\x80\xbf"

/* clang-format off */
static const bad_pieces bad_models[] = {
    PIECES(FT_EFORMAT, "found 0 pieces of type UNKNOWN in 0, expected one", ""),
    PIECES(FT_EFORMAT, "found 0 pieces of type UNKNOWN in 1, expected one", PIECE_A),
    PIECES(FT_EFORMAT, "found 2 pieces of type UNKNOWN in 2, expected one", UNKNOWN UNKNOWN),
    PIECES(FT_EFORMAT, "byte 0: field 1: found 3 bytes, expected 9", "\x0a\x09\x0a\x05<"),
    PIECES(FT_EFORMAT, "byte 13: piece 1 has no text", UNKNOWN "\x0a\x00"),
    PIECES(FT_EFORMAT, "piece 0 is not valid UTF-8", "\x0a\x03\x0a\x01\xff"),
    PIECES(FT_EFORMAT, "piece 0 is not valid UTF-8", "\x0a\x03\x0a\x01\x00"),
    PIECES(FT_EFORMAT, "piece 0 has no finite score", "\x0a\x08\x0a\x01" "a\x15\x00\x00\x80\x7f"),
    PIECES(FT_EFORMAT, "piece 0: found type 7, expected 1 to 6", "\x0a\x05\x0a\x01" "a\x18\x07"),
    PIECES(FT_EFORMAT, "byte 2: field 1: found wire type 0, expected 2", "\x0a\x02\x08\x01"),
    PIECES(FT_EFORMAT, "byte 0: field 1: found wire type 3, expected 0, 1, 2 or 5", "\x0b"),
    PIECES(FT_EFORMAT, "byte 0: found field number 0, expected 1 to", "\x00\x01"),
    PIECES(FT_EFORMAT, "byte 0: found the end of the message, expected an integer", "\xff\xff"),
    PIECES(FT_EFORMAT, "byte 0: found a longer one, expected an integer of at most 10", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    PIECES(FT_EFORMAT, "byte 1: found the end of the message, expected 4 bytes", "\x35\x01"),
    PIECES(FT_EFORMAT, "\"a\" is there twice", UNKNOWN PIECE_A PIECE_A),
    PIECES(FT_EUNSUPPORTED, "trainer_spec.model_type: found 3, expected 1 (unigram) or 2 (bpe)", UNKNOWN "\x12\x02\x18\x03"),
    PIECES(FT_EUNSUPPORTED, "trainer_spec.treat_whitespace_as_suffix: found true", UNKNOWN "\x12\x03\xc0\x01\x01"),
    PIECES(FT_EUNSUPPORTED, "normalizer_spec.escape_whitespaces: found false", UNKNOWN "\x1a\x02\x28\x00"),
    PIECES(FT_EUNSUPPORTED, "denormalizer_spec: found a precompiled_charsmap", UNKNOWN "\x2a\x03\x12\x01x"),
    PIECES(FT_EUNSUPPORTED, "found ranks of tiktoken, expected a model of SentencePiece", "IQ== 0\nIg== 1\n"),
    PIECES(FT_EFORMAT, "found the end of the message", "IQ== 0"),
    PIECES(FT_EFORMAT, "found the end of the message", "IQ==0\n"),
};
/* clang-format on */

static void test_refused_pieces(void)
{
    for (size_t i = 0; i < FT_COUNT(bad_models); i++) {
        write_file("tokenizer.model", bad_models[i].data, bad_models[i].bytes);
        is_refused("LlamaTokenizer", bad_models[i].status, bad_models[i].says);
    }
    write_file("sentencepiece.bpe.model", UNKNOWN PIECE_A, sizeof UNKNOWN PIECE_A - 1);
    is_refused("XLMRobertaTokenizer", FT_EUNSUPPORTED,
               "piece 1: found another type, expected <unk>, <s> and </s> as pieces 0 to 2");
    write_file("vocab.json", "{\"<unk>\": 0, \"a\": 2}", 20);
    is_refused("M2M100Tokenizer", FT_EUNSUPPORTED,
               "vocab.json: found id 2 in 2 tokens, expected the ids from 0 on");
    empty_folder();
}

static void test_nothing(void)
{
    ft_tokenizer_files made;
    ft_error err;
    ok(ft_tokenizer_files_read(&made, folder, &no_hints, &err) == FT_OK &&
           made.tokenizer.text == NULL,
       "a folder without files of a tokenizer gives none, and that is no error");
    ft_tokenizer_files_fini(&made);
}

int main(void)
{
    folder_make(folder);
    test_golden();
    test_hints();
    test_text_files();
    test_byte_order_mark();
    test_marian_languages();
    test_refused_files();
    test_refused_pieces();
    test_nothing();
    folder_remove(folder);
    return done_testing();
}
