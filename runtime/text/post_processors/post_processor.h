/*
 * post_processor.h - special tokens around one text or a pair, and type ids.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_POST_PROCESSORS_POST_PROCESSOR_H
#define FT_RUNTIME_TEXT_POST_PROCESSORS_POST_PROCESSOR_H

#include "runtime/base/json_reader.h"

typedef enum ft_template_kind {
    FT_TEMPLATE_SPECIAL, /* a special token */
    FT_TEMPLATE_TEXT,    /* the tokens of the text */
    FT_TEMPLATE_PAIR,    /* the tokens of its pair */
} ft_template_kind;

typedef struct ft_template_piece {
    ft_template_kind kind;
    int32_t id;      /* of a special token */
    int32_t type_id; /* of all its tokens */
} ft_template_piece;

enum { FT_TEMPLATE_MAX_PIECES = 32 };

typedef struct ft_template {
    ft_template_piece piece[FT_TEMPLATE_MAX_PIECES];
    size_t count;
} ft_template;

typedef struct ft_post_processor {
    ft_template single, pair; /* pair.count 0: pairs are not supported */
    ft_template target;       /* around a text that a model is to generate; as single by default */
    bool adds_tokens;         /* a step has set the templates */
    bool trims_offsets;       /* offsets leave out white space at the ends of tokens */
    bool keeps_prefix_space;  /* but not the space that was prepended */
} ft_post_processor;

/* Parse the section "post_processor" of a tokenizer.json. Errors name what is not supported. */
FT_MUST_USE ft_status ft_post_processor_read_json(ft_post_processor *out,
                                                  const ft_json_reader *file);

/* Number of special tokens of a template. */
size_t ft_template_special_tokens(const ft_template *template);

#endif
