/*
 * source.c - read the files of a tokenizer and the settings that describe it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/draft/source.h"

#include "convert/checkpoint/text_file.h"
#include "runtime/base/utf8.h"
#include "runtime/container/file_type.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char config_file[] = "tokenizer_config.json";
static const char special_map_file[] = "special_tokens_map.json";
static const char added_tokens_file[] = "added_tokens.json";

/* ---- Files ---------------------------------------------------------------------------------- */

/* The caller frees it; NULL when out of memory. */
static char *path_of(const ft_tokenizer_source *source, const char *file)
{
    size_t folder = strlen(source->folder), size = folder + strlen(file) + 2;
    char *path = malloc(size);
    bool slash = folder > 0 && source->folder[folder - 1] != '/';
    if (path != NULL)
        snprintf(path, size, "%s%s%s", source->folder, slash ? "/" : "", file);
    return path;
}

bool ft_tokenizer_source_has(const ft_tokenizer_source *source, const char *file)
{
    struct stat about;
    char path[4096];
    int bytes = snprintf(path, sizeof path, "%s/%s", source->folder, file);
    return bytes > 0 && (size_t) bytes < sizeof path && stat(path, &about) == 0 &&
           S_ISREG(about.st_mode);
}

/* A pointer of Git LFS, a web page, or for JSON anything else; files of SentencePiece look random.
 */
static ft_status reject_wrong_file(const char *file, const char *text, size_t bytes, ft_error *err)
{
    const char *end = strrchr(file, '.');
    bool json = end != NULL && strcmp(end, ".json") == 0;
    ft_file_kind kind = ft_detect_file_kind(text, bytes);
    if (!json && kind != FT_FILE_LFS && kind != FT_FILE_HTML)
        return FT_OK;
    return ft_explain_wrong_bytes(file, text, bytes,
                                  json ? FT_EXPECTED_JSON : FT_EXPECTED_TOKENIZER, FT_OK, err);
}

ft_status ft_tokenizer_source_read(const ft_tokenizer_source *source, const char *file, char **text,
                                   size_t *bytes)
{
    char *path = path_of(source, file);
    if (path == NULL)
        return ft_fail(source->err, FT_ENOMEM, "%s: no memory", file);
    ft_status rc = ft_text_file_read(path, text, bytes, source->err);
    free(path);
    if (rc != FT_OK)
        return rc;
    rc = reject_wrong_file(file, *text, *bytes, source->err);
    if (rc != FT_OK) {
        free(*text);
        *text = NULL;
    }
    return rc;
}

static bool strip_byte_order_mark(char *text, size_t *bytes)
{
    bool found = *bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
    if (found) {
        *bytes -= 3;
        memmove(text, text + 3, *bytes + 1);
    }
    return found;
}

ft_status ft_tokenizer_source_read_text(const ft_tokenizer_source *source, const char *file,
                                        char **text, size_t *bytes)
{
    FT_TRY(ft_tokenizer_source_read(source, file, text, bytes));
    bool marked = strip_byte_order_mark(*text, bytes);
    size_t valid = ft_utf8_valid_prefix(*text, *bytes), line = 1;
    if (valid == *bytes)
        return FT_OK;
    for (size_t i = 0; i < valid; i++)
        line += (*text)[i] == '\n';
    ft_fail(source->err, FT_EFORMAT, "%s: line %zu: byte %zu of the file is 0x%02x, expected UTF-8",
            file, line, valid + (marked ? 3 : 0), (unsigned) (unsigned char) (*text)[valid]);
    free(*text);
    *text = NULL;
    return FT_EFORMAT;
}

ft_status ft_tokenizer_source_read_json(const ft_tokenizer_source *source, const char *file,
                                        size_t flags, json_t **out)
{
    char *text;
    size_t bytes;
    json_error_t why;
    FT_TRY(ft_tokenizer_source_read(source, file, &text, &bytes));
    strip_byte_order_mark(text, &bytes);
    *out = ft_json_parse(text, bytes, flags, &why);
    free(text);
    if (*out == NULL && why.line < 0)
        return ft_fail(source->err, FT_ENOMEM, "%s: no memory", file);
    if (*out == NULL)
        return ft_fail(source->err, FT_EFORMAT, "%s: line %d, column %d: not valid JSON: %s", file,
                       why.line, why.column, why.text);
    if (json_is_object(*out))
        return FT_OK;
    json_decref(*out);
    *out = NULL;
    return ft_fail(source->err, FT_EFORMAT, "%s: expected a JSON object", file);
}

static ft_status read_optional(const ft_tokenizer_source *source, const char *file, size_t flags,
                               json_t **out)
{
    if (ft_tokenizer_source_has(source, file))
        return ft_tokenizer_source_read_json(source, file, JSON_REJECT_DUPLICATES | flags, out);
    *out = json_object();
    return *out == NULL ? ft_fail(source->err, FT_ENOMEM, "%s: no memory", file) : FT_OK;
}

/* Integers as reals: model_max_length may be 10^30. */
ft_status ft_tokenizer_source_open(ft_tokenizer_source *source, const char *folder, ft_error *err)
{
    *source = (ft_tokenizer_source){ .folder = folder, .err = err };
    FT_TRY(read_optional(source, config_file, JSON_DECODE_INT_AS_REAL, &source->config));
    FT_TRY(read_optional(source, special_map_file, 0, &source->special_map));
    return read_optional(source, added_tokens_file, 0, &source->added_tokens);
}

void ft_tokenizer_source_close(ft_tokenizer_source *source)
{
    json_decref(source->config);
    json_decref(source->special_map);
    json_decref(source->added_tokens);
    *source = (ft_tokenizer_source){ 0 };
}

/* ---- Settings ------------------------------------------------------------------------------- */

/* A token is a text or an object with its text and flags. */
static const char *content_of(const json_t *token)
{
    return json_string_value(json_is_object(token) ? json_object_get(token, "content") : token);
}

/* Since transformers 4.34 tokenizer_config.json describes all tokens; before, the other file won.
 */
const char *ft_tokenizer_source_role(const ft_tokenizer_source *source, const char *role,
                                     const char *fallback)
{
    bool described = json_object_get(source->config, "added_tokens_decoder") != NULL;
    const json_t *first = described ? source->config : source->special_map;
    const json_t *second = described ? source->special_map : source->config;
    const json_t *token = json_object_get(first, role);
    if (token == NULL)
        token = json_object_get(second, role);
    return token == NULL ? fallback : content_of(token);
}

static ft_json_reader config_reader(const ft_tokenizer_source *source)
{
    return (ft_json_reader){ .json = source->config, .file = config_file, .err = source->err };
}

ft_status ft_tokenizer_source_bool(const ft_tokenizer_source *source, const char *key,
                                   bool fallback, bool *out)
{
    ft_json_reader in = config_reader(source);
    return ft_json_read_optional_bool(&in, key, fallback, out);
}

ft_status ft_tokenizer_source_count(const ft_tokenizer_source *source, const char *key, int32_t max,
                                    int32_t fallback, int32_t *out)
{
    ft_json_reader in = config_reader(source);
    const json_t *value = ft_json_get(&in, key);
    char expected[64];
    double number = json_number_value(value);
    *out = fallback;
    if (value == NULL)
        return FT_OK;
    snprintf(expected, sizeof expected, "an integer from 0 to %d", (int) max);
    if (!json_is_number(value) || number < 0 || number > max || number != floor(number))
        return ft_json_fail_member(&in, key, expected);
    *out = (int32_t) number;
    return FT_OK;
}

ft_status ft_tokenizer_source_string(const ft_tokenizer_source *source, const char *key,
                                     const char *fallback, const char **out)
{
    ft_json_reader in = config_reader(source);
    *out = fallback;
    return ft_json_get(&in, key) == NULL ? FT_OK : ft_json_read_string(&in, key, out);
}
