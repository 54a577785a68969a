/*
 * normalizer.h - text normalization: a list of steps.
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
    FT_NORMALIZE_PREPEND, /* prepend `content` to a text that is not empty */
    FT_NORMALIZE_REPLACE, /* replace each `pattern` by `content` */
} ft_normalizer_kind;

typedef struct ft_normalizer_step {
    ft_normalizer_kind kind;
    ft_bert_normalizer bert;
    char *pattern, *content; /* owned; valid UTF-8 */
} ft_normalizer_step;

/* Zero-initialized leaves the text unchanged. */
typedef struct ft_normalizer {
    ft_normalizer_step step[FT_NORMALIZER_MAX_STEPS];
    size_t count;
} ft_normalizer;

void ft_normalizer_fini(ft_normalizer *normalizer);

/* Buffers of the steps, reusable; initialize with { .growth_left }. */
typedef struct ft_normalizer_buffers {
    ft_strbuf from, to;
    size_t growth_left; /* number of bytes that the steps may still add */
} ft_normalizer_buffers;
void ft_normalizer_buffers_fini(ft_normalizer_buffers *buffers);

/*
 * Normalize *text (valid UTF-8); *text and *bytes are replaced by the result, which is in *buffers
 * or is the input itself. Errors without text: FT_ELIMIT when buffers->growth_left is exceeded,
 * which sets buffers->to.overflowed; FT_ENOMEM.
 */
ft_status ft_normalizer_run(const ft_normalizer *normalizer, const char **text, size_t *bytes,
                            ft_normalizer_buffers *buffers);

#endif
