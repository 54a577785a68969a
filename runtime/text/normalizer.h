/*
 * normalizer.h - the text that a vocabulary is made of: a list of steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_NORMALIZER_H
#define FT_RUNTIME_TEXT_NORMALIZER_H

#include "runtime/text/bert_normalizer.h"

enum { FT_NORMALIZER_MAX_STEPS = 8 };

typedef enum ft_normalizer_kind {
    FT_NORMALIZE_BERT,
    FT_NORMALIZE_NFC,
    FT_NORMALIZE_PREPEND, /* put `content` before a text that is not empty */
    FT_NORMALIZE_REPLACE, /* each `pattern` becomes `content` */
} ft_normalizer_kind;

typedef struct ft_normalizer_step {
    ft_normalizer_kind kind;
    ft_bert_normalizer bert;
    char *pattern, *content; /* its own; valid UTF-8 */
} ft_normalizer_step;

/* All zero leaves text as it is. */
typedef struct ft_normalizer {
    ft_normalizer_step step[FT_NORMALIZER_MAX_STEPS];
    size_t count;
} ft_normalizer;

void ft_normalizer_fini(ft_normalizer *normalizer);

/* Where text goes on its way through the steps; { .growth } to begin with, and used again. */
typedef struct ft_normal_text {
    ft_text from, to;
    size_t growth; /* bytes that the steps may still add */
} ft_normal_text;
void ft_normal_text_fini(ft_normal_text *room);

/*
 * The normal form of *text (valid UTF-8), which *text and *bytes show afterwards: it lies in
 * *room, or is the text itself.  Without text, FT_ELIMIT when room->growth is used up
 * and room->to is full; FT_ENOMEM.
 */
ft_status ft_normalizer_run(const ft_normalizer *normalizer, const char **text, size_t *bytes,
                            ft_normal_text *room);

#endif
