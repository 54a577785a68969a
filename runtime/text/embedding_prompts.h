/*
 * embedding_prompts.h - the prompts of a sentence encoder: texts by name that stand before what is
 * embedded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_EMBEDDING_PROMPTS_H
#define FT_RUNTIME_TEXT_EMBEDDING_PROMPTS_H

#include "runtime/ft.h"

#include <jansson.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* The file of sentence-transformers that has them. */
#define FT_PROMPTS_FILE "config_sentence_transformers.json"

typedef struct ft_embedding_prompts {
    json_t *json;             /* the file; NULL: no prompts */
    const char *default_text; /* the prompt of texts for which none is named, or "" */
} ft_embedding_prompts;

/*
 * Parse the text of the file; `label` names it. FT_EFORMAT: a prompt is not a string, or
 * default_prompt_name names none. Free with ft_embedding_prompts_fini(), also after a failure.
 */
FT_MUST_USE ft_status ft_embedding_prompts_parse(ft_embedding_prompts *out, const char *label,
                                                 const char *text, size_t bytes, ft_error *err);
void ft_embedding_prompts_fini(ft_embedding_prompts *prompts);

size_t ft_embedding_prompts_count(const ft_embedding_prompts *prompts);

/* The prompt of a name; NULL: there is none. */
const char *ft_embedding_prompts_find(const ft_embedding_prompts *prompts, const char *name);

/* Write all names into `text`, separated by commas and truncated to `size`; returns `text`. */
const char *ft_embedding_prompts_names(const ft_embedding_prompts *prompts, char *text,
                                       size_t size);

#pragma GCC visibility pop

#endif
