/*
 * recipe.h - which matrix becomes what: a scheme for all, and rules for some.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_RECIPE_H
#define FT_CALIBRATE_WEIGHTS_RECIPE_H

#include "calibrate/weights/groupwise.h"

#include <jansson.h>
#include <regex.h>

typedef enum ft_scheme {
    FT_SCHEME_W8A8,         /* int8, a scale a row; its input int8 by a calibrated range */
    FT_SCHEME_W8A8_DYNAMIC, /* the same, its input by the range of each row */
    FT_SCHEME_W4A16,        /* blocks of 4 bits; its input stays float */
    FT_SCHEME_W8A16,        /* blocks of 8 bits; the same */
    FT_SCHEME_W8A8_BLOCK,   /* blocks of 8 bits; its input int8 by the range of each group */
    FT_SCHEME_FLOAT,        /* stays as it is */
    FT_SCHEMES
} ft_scheme;

/* "w8a8", "w8a8-dynamic", "w4a16", ...; FT_EARG for other words, with a list of these. */
const char *ft_scheme_name(ft_scheme scheme);
ft_status ft_scheme_parse(const char *word, ft_scheme *out, ft_error *err);

/* What the codes of a scheme are; neither for FT_SCHEME_FLOAT. */
bool ft_scheme_is_int8(ft_scheme scheme);
bool ft_scheme_is_blocks(ft_scheme scheme);

/* How the range of a group is chosen. */
typedef enum ft_clip { FT_CLIP_NONE, FT_CLIP_MSE, FT_CLIP_IMATRIX, FT_CLIPS } ft_clip;

/* "none", "mse", "imatrix". */
const char *ft_clip_name(ft_clip clip);
bool ft_clip_parse(const char *word, ft_clip *out);

/* Matrices with a name that a pattern is found in. */
typedef struct ft_rule {
    char *text; /* of the pattern: a POSIX extended regular expression */
    regex_t pattern;
    ft_scheme scheme;
} ft_rule;

/* All zero: w8a8 for all linears. */
typedef struct ft_recipe {
    ft_scheme scheme; /* of linears without a rule */
    bool coded_head;  /* also of the matrix that makes logits; else that needs a rule */

    /* Of blocks. */
    int32_t group; /* 32, 64, 128, or 0: a row */
    bool asymmetric;
    bool group_pad; /* the last group of a row may be short */
    ft_clip clip;
    bool awq;  /* columns are multiplied by factors, and their inputs divided */
    bool gptq; /* columns make up for the errors of others */

    ft_rule *rule; /* the first that fits decides */
    size_t rules, room;
} ft_recipe;

void ft_recipe_fini(ft_recipe *recipe);

/*
 * Add a rule behind the others.  FT_EARG when the pattern is none, or, of the second form, when the
 * text is not REGEX=SCHEME; the last "=" counts.
 */
ft_status ft_recipe_add(ft_recipe *recipe, const char *pattern, ft_scheme scheme, ft_error *err);
ft_status ft_recipe_add_text(ft_recipe *recipe, const char *text, ft_error *err);

/* Whether the pattern of a rule is found in a name. */
bool ft_rule_fits(const ft_rule *rule, const char *name);

/* What a linear, or the matrix that makes logits, becomes. */
ft_scheme ft_recipe_scheme(const ft_recipe *recipe, const char *name);

/* Whether any matrix may get such a scheme. */
bool ft_recipe_mentions(const ft_recipe *recipe, ft_scheme scheme);
bool ft_recipe_mentions_blocks(const ft_recipe *recipe);

/* Whether sample data choose codes of blocks. */
bool ft_recipe_learns(const ft_recipe *recipe);

/* How blocks of a scheme are made. */
ft_blocks_how ft_recipe_how(const ft_recipe *recipe, ft_scheme scheme);

/* What an artifact keeps of it: scheme, groups and rules; NULL without memory. */
json_t *ft_recipe_to_json(const ft_recipe *recipe);

#endif
