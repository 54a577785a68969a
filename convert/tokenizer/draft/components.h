/*
 * components.h - the components of a tokenizer.json, as the `tokenizers` library writes them.
 *
 * All functions return NULL when out of memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_DRAFT_COMPONENTS_H
#define FT_CONVERT_TOKENIZER_DRAFT_COMPONENTS_H

#include "convert/tokenizer/draft/draft.h"

/* The sign that stands for a space in pieces, U+2581. */
#define FT_METASPACE "\xe2\x96\x81"

/* Steps in a row, each taken over: {"type": "Sequence", key: [...]}. */
json_t *ft_component_sequence(const char *key, json_t *const *step, size_t count);

/* {"type": "Replace", "pattern": {kind: pattern}, "content": content}; kind is String or Regex. */
json_t *ft_component_replace(const char *kind, const char *pattern, const char *content);

/* A pre-tokenizer that splits at a pattern. */
json_t *ft_component_split(const char *kind, const char *pattern, const char *behavior);

/* Pre-tokenizer, decoder or post-processor of byte-level BPE. */
json_t *ft_component_byte_level(bool add_prefix_space, bool trim_offsets, bool use_regex);

/* Pre-tokenizer and decoder of pieces that start with U+2581. */
json_t *ft_component_metaspace(const char *prepend_scheme, bool split);

/* The decoder of Llama 2: bytes become text, and one leading space goes if there was one added. */
json_t *ft_component_llama_decoder(bool strip_space);

/* ["</s>", 2]; FT_EFORMAT when the draft has no such token. */
FT_MUST_USE ft_status ft_component_token(const ft_tokenizer_draft *draft, const char *name,
                                         json_t **out);

/*
 * TemplateProcessing from two templates such as "<s>:0 $A:0 </s>:0" whose words are separated by
 * spaces, each followed by a type id; all but $A and $B are tokens of the draft. A space inside a
 * token is not supported: FT_EUNSUPPORTED. A token that is missing: FT_EFORMAT.
 */
FT_MUST_USE ft_status ft_component_template(const ft_tokenizer_draft *draft, const char *single,
                                            const char *pair, json_t **out);

#endif
