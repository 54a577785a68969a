/*
 * tokenizer_json.h - fill a tokenizer from the text of its tokenizer.json.
 *
 * The sections of the file have a reader each; tokenizer_json.c reads the model and calls the rest.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_TOKENIZER_JSON_H
#define FT_RUNTIME_TEXT_TOKENIZER_JSON_H

#include "runtime/base/json_reader.h"
#include "runtime/text/tokenizer.h"

/*
 * `tokenizer` is all zero.  On failure it may be half filled: close it.
 * Errors: FT_EFORMAT for what is no tokenizer.json, FT_EUNSUPPORTED for what this one asks for and
 * cannot get; both name the field, what was found and what was expected.
 */
FT_MUST_USE ft_status ft_tokenizer_read_json(ft_tokenizer *tokenizer, const char *name,
                                             const char *json, size_t bytes, ft_error *err);

/*
 * The sections of `file`, the whole.  The vocabulary, and for added tokens the normalizer, must
 * have been read before.
 */
ft_status ft_json_read_normalizer(ft_normalizer *normalizer, const ft_section *file);
ft_status ft_json_read_pretokenizer(ft_pretokenizer *pretokenizer, const ft_section *file);
ft_status ft_json_read_added_tokens(ft_tokenizer *tokenizer, const ft_section *file);
ft_status ft_json_read_post_processor(ft_tokenizer *tokenizer, const ft_section *file);

/* A decoder that is not known is no failure: decoding->problem tells of it later. */
ft_status ft_json_read_decoder(ft_decoding *decoding, const ft_section *file);

/* `value`, found at `key`, as an id. */
ft_status ft_json_read_id(const ft_section *in, const char *key, const json_t *value, int32_t *id);

/* A member that may be missing or null, which is `otherwise`. */
ft_status ft_json_read_flag(const ft_section *in, const char *key, bool otherwise, bool *flag);

/* A member as a string of its own, at least one character, at most `max_bytes`. */
ft_status ft_json_copy_string(const ft_section *in, const char *key, size_t max_bytes, char **out);

/* Bytes of a string that steps put into text, or look for. */
enum { FT_JSON_CONTENT = 64 };

/* {"pattern": {"String": " "}, "content": ...} as strings of their own; a content of "" is fine. */
ft_status ft_json_read_replace(const ft_section *in, char **pattern, char **content);

#endif
