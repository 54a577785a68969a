/*
 * source.h - the tokenizer files of a checkpoint's folder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_DRAFT_SOURCE_H
#define FT_CONVERT_TOKENIZER_DRAFT_SOURCE_H

#include "runtime/base/json_reader.h"

/* Settings that all forms of tokenizers share. */
typedef struct ft_tokenizer_source {
    const char *folder;
    json_t *config;       /* tokenizer_config.json; an empty object where it is absent */
    json_t *special_map;  /* special_tokens_map.json; the same */
    json_t *added_tokens; /* added_tokens.json; the same */
    ft_error *err;
} ft_tokenizer_source;

/* Read the settings in `folder`; on failure too, free with ft_tokenizer_source_close(). */
FT_MUST_USE ft_status ft_tokenizer_source_open(ft_tokenizer_source *source, const char *folder,
                                               ft_error *err);
void ft_tokenizer_source_close(ft_tokenizer_source *source);

/* Whether the folder has a regular file of this name. */
bool ft_tokenizer_source_has(const ft_tokenizer_source *source, const char *file);

/*
 * Read a whole file; the caller frees *text, behind which a zero byte follows. Of a text file, a
 * byte order mark is not part of it and the rest must be valid UTF-8.
 */
FT_MUST_USE ft_status ft_tokenizer_source_read(const ft_tokenizer_source *source, const char *file,
                                               char **text, size_t *bytes);
FT_MUST_USE ft_status ft_tokenizer_source_read_text(const ft_tokenizer_source *source,
                                                    const char *file, char **text, size_t *bytes);

/* A JSON object in a file of at most 64 MiB, with these flags of json_loadb(). */
FT_MUST_USE ft_status ft_tokenizer_source_read_json(const ft_tokenizer_source *source,
                                                    const char *file, size_t flags, json_t **out);

/*
 * The text of the token that has a role, such as "cls_token"; `fallback`, which may be NULL, where
 * no file names one, and NULL where it is null. Borrowed from the source.
 */
const char *ft_tokenizer_source_role(const ft_tokenizer_source *source, const char *role,
                                     const char *fallback);

/* A boolean, integer or string of tokenizer_config.json; FT_EFORMAT when it has another type. */
FT_MUST_USE ft_status ft_tokenizer_source_bool(const ft_tokenizer_source *source, const char *key,
                                               bool fallback, bool *out);
FT_MUST_USE ft_status ft_tokenizer_source_count(const ft_tokenizer_source *source, const char *key,
                                                int32_t max, int32_t fallback, int32_t *out);
FT_MUST_USE ft_status ft_tokenizer_source_string(const ft_tokenizer_source *source, const char *key,
                                                 const char *fallback, const char **out);

#endif
