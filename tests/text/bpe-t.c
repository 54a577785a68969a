/*
 * bpe-t.c - BPE token ids and decoded text equal those of the Hugging Face
 * `tokenizers` library, which are kept in golden/.
 *
 * golden/make-bpe.py generates the data and documents each file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/container/safetensors.h"
#include "runtime/base/utf8.h"
#include "tests/lib/golden_rows.h"

#include <string.h>
#include <unistd.h>

enum { MAX_IDS = 1 << 15, MAX_TEXT = 1 << 18 };

/* ---- Encode and decode a text -------------------------------------------------------------- */

typedef struct {
    int32_t id[MAX_IDS];
    size_t count;
    char text[2][MAX_TEXT]; /* decoded: with special tokens, without */
    size_t bytes[2];
} result;

static void decode(const ft_tokenizer *tokenizer, result *out)
{
    ft_error err;
    for (int skip = 0; skip < 2; skip++)
        if (ft_tokenizer_decode(tokenizer, out->id, out->count, skip, out->text[skip], MAX_TEXT,
                                &out->bytes[skip], &err) != FT_OK)
            bail_out("%s", err.text);
    if (out->bytes[0] > MAX_TEXT)
        bail_out("a decoded text has %zu bytes, more than the test expects", out->bytes[0]);
}

static void process(const ft_tokenizer *tokenizer, const char *text, size_t bytes, result *out)
{
    ft_error err;
    if (ft_tokenizer_encode(tokenizer, text, bytes, out->id, MAX_IDS, &out->count, &err) != FT_OK)
        bail_out("%s", err.text);
    if (out->count > MAX_IDS)
        bail_out("a text has %zu ids, more than the test expects", out->count);
    decode(tokenizer, out);
}

static void digest_ids(EVP_MD_CTX *digest, const int32_t *id, size_t count)
{
    char number[16];
    for (size_t i = 0; i < count; i++) {
        int length = snprintf(number, sizeof number, i > 0 ? " %d" : "%d", id[i]);
        EVP_DigestUpdate(digest, number, (size_t) length);
    }
}

/* The digest of golden/bpe-lines.jsonl. */
static void digest_result(const result *r, char text[GOLDEN_DIGEST])
{
    EVP_MD_CTX *digest = digest_begin();
    digest_ids(digest, r->id, r->count);
    for (int skip = 0; skip < 2; skip++) {
        EVP_DigestUpdate(digest, "\n", 1);
        EVP_DigestUpdate(digest, r->text[skip], r->bytes[skip]);
    }
    digest_end(digest, text);
}

static result *new_result(void)
{
    result *r = malloc(sizeof *r);
    if (r == NULL)
        bail_out("no memory");
    return r;
}

/* ---- Lines --------------------------------------------------------------------------------- */

/* Check column `column` of the golden lines. */
static void test_lines(const ft_tokenizer *tokenizer, size_t column, const char *name)
{
    FILE *file = open_golden("tests/golden/bpe-lines.jsonl");
    result *r = new_result();
    int lines = 0, equal = 0;
    for (json_t *row; (row = read_row(file)) != NULL; json_decref(row), lines++) {
        const json_t *text = json_array_get(row, 0);
        char digest[GOLDEN_DIGEST];
        process(tokenizer, json_string_value(text), json_string_length(text), r);
        digest_result(r, digest);
        if (strcmp(digest, json_string_value(json_array_get(row, column))) == 0)
            equal++;
        else
            diag("line %d: \"%s\": %zu ids, \"%.*s\"", lines + 1, json_string_value(text), r->count,
                 (int) r->bytes[0], r->text[0]);
    }
    is_int(lines, 1000, "the golden file has 1,000 varied lines");
    is_int(equal, lines,
           "every line has the token ids and decoded texts of the tokenizers library with %s",
           name);
    free(r);
    fclose(file);
}

static void test_kept_tokenizers(void)
{
    static const char *const name[] = { "llama2", "llama3", "qwen2" };
    for (size_t i = 0; i < FT_COUNT(name); i++) {
        char path[64], sentence[64];
        snprintf(path, sizeof path, "tests/golden/bpe-%s.json", name[i]);
        snprintf(sentence, sizeof sentence, "the %s-like tokenizer", name[i]);
        ft_tokenizer *tokenizer = open_tokenizer(path);
        test_lines(tokenizer, 1 + i, sentence);
        ft_tokenizer_close(tokenizer);
    }
}

/* ---- A trained model's tokenizer ------------------------------------------------------------ */

static const char *model_path(const char *name)
{
    static char path[1024];
    const char *models = getenv("FT_MODELS");
    snprintf(path, sizeof path, "%s/python-llama%s%s", models == NULL ? "." : models,
             *name == '\0' ? "" : "/", name);
    return path;
}

/* The digest of golden/bpe-calibration.txt: a decoded row, and the ids of that text. */
static void digest_row(const ft_tokenizer *tokenizer, const int32_t *id, size_t count, result *r,
                       char text[GOLDEN_DIGEST])
{
    ft_error err;
    if (ft_tokenizer_decode(tokenizer, id, count, false, r->text[0], MAX_TEXT, &r->bytes[0],
                            &err) != FT_OK ||
        ft_tokenizer_encode(tokenizer, r->text[0], r->bytes[0], r->id, MAX_IDS, &r->count, &err) !=
            FT_OK)
        bail_out("%s", err.text);
    EVP_MD_CTX *digest = digest_begin();
    EVP_DigestUpdate(digest, r->text[0], r->bytes[0]);
    EVP_DigestUpdate(digest, "\n", 1);
    digest_ids(digest, r->id, r->count);
    digest_end(digest, text);
}

static void test_calibration_rows(const ft_tokenizer *tokenizer, const ft_tensor *ids)
{
    FILE *file = open_golden("tests/golden/bpe-calibration.txt");
    result *r = new_result();
    size_t columns = (size_t) ids->dim[1];
    int64_t equal = 0;
    for (int64_t row = 0; row < ids->dim[0]; row++) {
        char digest[GOLDEN_DIGEST], expected[GOLDEN_DIGEST] = "";
        digest_row(tokenizer, (const int32_t *) ids->data + (size_t) row * columns, columns, r,
                   digest);
        if (fscanf(file, "%16s", expected) == 1 && strcmp(digest, expected) == 0)
            equal++;
        else
            diag("row %d: %.60s", (int) row, r->text[0]);
    }
    is_int(equal, ids->dim[0],
           "every row of calibration data decodes to the library's text and re-encodes to its ids");
    free(r);
    fclose(file);
}

static void test_python_llama(void)
{
    ft_error err;
    ft_tokenizer *tokenizer;
    ft_safetensors *data;
    if (access(model_path("tokenizer.json"), R_OK) != 0) {
        skip(3, "no checkpoint %s; set FT_MODELS to the folder of the test models", model_path(""));
        return;
    }
    if (ft_tokenizer_open(&tokenizer, model_path("tokenizer.json"), &err) != FT_OK)
        bail_out("%s", err.text);
    test_lines(tokenizer, 4, "the tokenizer of python-llama");
    if (ft_safetensors_open(&data, model_path("calibration.safetensors"), &err) != FT_OK)
        bail_out("%s", err.text);
    const ft_tensor *ids = ft_safetensors_find(data, "input_ids");
    if (ids == NULL || ids->dtype != FT_I32 || ids->ndim != 2)
        bail_out("%s has no input_ids", model_path("calibration.safetensors"));
    test_calibration_rows(tokenizer, ids);
    ft_safetensors_close(data);
    ft_tokenizer_close(tokenizer);
}

/* ---- Settings ------------------------------------------------------------------------------- */

/* A golden tokenizer with some sections changed. */
static ft_tokenizer *with_settings(const char *name, json_t *changes)
{
    char path[64];
    const char *key;
    json_t *value;
    json_error_t why;
    snprintf(path, sizeof path, "tests/golden/bpe-%s.json", name);
    json_t *file = json_load_file(source_path(path), 0, &why);
    json_object_foreach(changes, key, value)
    {
        if (strcmp(key, "model") == 0)
            json_object_update(json_object_get(file, "model"), value);
        else
            json_object_set(file, key, value);
    }
    char *text = json_dumps(file, 0);
    ft_tokenizer *tokenizer;
    ft_error err;
    if (text == NULL || ft_tokenizer_parse(&tokenizer, name, text, strlen(text), &err) != FT_OK)
        bail_out("%s", err.text);
    free(text);
    json_decref(file);
    return tokenizer;
}

static bool is_text(const char *text, size_t bytes, const json_t *expected)
{
    return bytes == json_string_length(expected) &&
           (bytes == 0 || memcmp(text, json_string_value(expected), bytes) == 0);
}

/* Token by token: each piece consists of complete characters, and the pieces concatenate to the
 * text. */
static bool streams_to(const ft_tokenizer *tokenizer, const result *r, bool skip,
                       const json_t *expected)
{
    ft_strbuf whole = { 0 };
    ft_detokenizer *decoder;
    const char *piece;
    size_t bytes;
    bool valid = true;
    if (ft_detokenizer_open(&decoder, tokenizer, skip, NULL) != FT_OK)
        bail_out("no decoder");
    for (size_t i = 0; i <= r->count; i++) {
        ft_status rc = i < r->count ? ft_detokenizer_push(decoder, r->id[i], &piece, &bytes, NULL)
                                    : ft_detokenizer_finish(decoder, &piece, &bytes, NULL);
        if (rc != FT_OK || !ft_strbuf_append(&whole, piece, bytes))
            bail_out("no memory");
        valid &= ft_utf8_valid_prefix(piece, bytes) == bytes;
    }
    bool same = valid && is_text(whole.data, whole.bytes, expected);
    ft_detokenizer_close(decoder);
    ft_strbuf_fini(&whole);
    return same;
}

/* Encodes the text, or takes the ids of the row where the text is null, and decodes the ids. */
static void process_row(const ft_tokenizer *tokenizer, const json_t *text, const json_t *ids,
                        result *r)
{
    if (json_is_string(text)) {
        process(tokenizer, json_string_value(text), json_string_length(text), r);
        return;
    }
    r->count = json_array_size(ids);
    for (size_t i = 0; i < r->count; i++)
        r->id[i] = (int32_t) json_integer_value(json_array_get(ids, i));
    decode(tokenizer, r);
}

/* ["text" or null, ids, "decoded with special tokens", "decoded without"] */
static bool is_as_there(const ft_tokenizer *tokenizer, const json_t *row, result *r)
{
    const json_t *text = json_array_get(row, 0), *ids = json_array_get(row, 1);
    size_t i = 0;
    process_row(tokenizer, text, ids, r);
    while (i < r->count && r->id[i] == json_integer_value(json_array_get(ids, i)))
        i++;
    bool same = i == r->count && r->count == json_array_size(ids);
    if (!same)
        diag("\"%s\": id %zu of %zu is %d", json_string_value(text), i, r->count, r->id[i]);
    for (int skip = 0; skip < 2; skip++) {
        const json_t *decoded = json_array_get(row, 2 + (size_t) skip);
        if (!is_text(r->text[skip], r->bytes[skip], decoded) ||
            !streams_to(tokenizer, r, skip, decoded)) {
            diag("\"%s\" is decoded to \"%.*s\"", json_string_value(text), (int) r->bytes[skip],
                 r->text[skip]);
            same = false;
        }
    }
    return same;
}

static void test_settings(void)
{
    FILE *file = open_golden("tests/golden/bpe-settings.jsonl");
    result *r = new_result();
    int settings = 0;
    for (json_t *row; (row = read_row(file)) != NULL; json_decref(row), settings++) {
        const char *name = json_string_value(json_array_get(row, 0));
        json_t *changes = json_array_get(row, 1), *lines = json_array_get(row, 2), *line;
        size_t i, equal = 0;
        ft_tokenizer *tokenizer = with_settings(name, changes);
        json_array_foreach(lines, i, line) equal += is_as_there(tokenizer, line, r);
        char *text = json_dumps(changes, 0);
        ok(equal == json_array_size(lines),
           "%s with %s encodes and decodes as the tokenizers library does", name, text);
        free(text);
        ft_tokenizer_close(tokenizer);
    }
    ok(settings > 40, "the golden file covers more than 40 settings (%d)", settings);
    free(r);
    fclose(file);
}

int main(void)
{
    test_kept_tokenizers();
    test_python_llama();
    test_settings();
    return done_testing();
}
