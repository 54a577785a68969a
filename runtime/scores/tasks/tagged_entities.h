/*
 * tagged_entities.h - entities of a text from the logits of a token classifier.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_TASKS_TAGGED_ENTITIES_H
#define FT_RUNTIME_SCORES_TASKS_TAGGED_ENTITIES_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

enum { FT_LABEL_TEXT = 24 };

/* An entity: tokens [first, end) of an encoding, and bytes [start, stop) of its text. */
typedef struct ft_tagged_entity {
    const char *label; /* without its prefix B- or I-; lasts as long as the model and the list */
    char number[FT_LABEL_TEXT]; /* "LABEL_N", where the model has no names */
    size_t first, end;
    uint32_t start, stop;
    double score; /* mean probability of its tokens' labels */
} ft_tagged_entity;

typedef struct ft_tagged_entities {
    ft_tagged_entity *entity; /* [count] */
    size_t count;
} ft_tagged_entities;

/*
 * Group the tokens of the text that have the same label, as aggregation_strategy "simple" of
 * transformers does: an entity ends before another label, before "B-" and at a token labeled "O".
 * `logits` is [tokens, labels]. With `by_word`, the tokens of a word get the label of its first
 * one: aggregation_strategy "first". False when out of memory.
 */
FT_MUST_USE bool ft_tagged_entities_find(ft_tagged_entities *out, const ft_model *model,
                                         const ft_encoding *encoding, const float *logits,
                                         bool by_word);
void ft_tagged_entities_fini(ft_tagged_entities *found);

#pragma GCC visibility pop

#endif
