/*
 * recipe.h - the quantization recipe: a default scheme, and rules for single matrices.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_RECIPE_H
#define FT_CALIBRATE_WEIGHTS_RECIPE_H

#include "calibrate/weights/groupwise.h"

#include <jansson.h>
#include <regex.h>

typedef enum ft_scheme {
    FT_SCHEME_W8A8,         /* int8 per channel; input int8 with a calibrated range */
    FT_SCHEME_W8A8_DYNAMIC, /* the same, input with a dynamic scale per token */
    FT_SCHEME_W4A16,        /* group-wise 4 bits; input stays float */
    FT_SCHEME_W8A16,        /* group-wise 8 bits; input stays float */
    FT_SCHEME_W8A8_BLOCK,   /* group-wise 8 bits; input int8 with a dynamic scale per group */
    FT_SCHEME_FLOAT,        /* not quantized */
    FT_NUM_SCHEMES
} ft_scheme;

/* "w8a8", "w8a8-dynamic", "w4a16", ...; FT_EARG for other names, with a list of these. */
const char *ft_scheme_name(ft_scheme scheme);
ft_status ft_scheme_parse(const char *name, ft_scheme *out, ft_error *err);

/* The kind of quantization of a scheme; neither for FT_SCHEME_FLOAT. */
bool ft_scheme_is_int8(ft_scheme scheme);
bool ft_scheme_is_groupwise(ft_scheme scheme);

/* How the range of a group is chosen. */
typedef enum ft_clip { FT_CLIP_NONE, FT_CLIP_MSE, FT_CLIP_IMATRIX, FT_NUM_CLIPS } ft_clip;

/* "none", "mse", "imatrix". */
const char *ft_clip_name(ft_clip clip);
bool ft_clip_parse(const char *name, ft_clip *out);

/* How weights are rounded to the values of their grid: gptq.h, and refine.h for GPTAQ. */
typedef enum ft_rounding {
    FT_ROUND_NEAREST,
    FT_ROUND_GPTQ,  /* compensate rounding errors in later columns */
    FT_ROUND_GPTAQ, /* and the errors of the matrices before, matrix by matrix */
    FT_NUM_ROUNDINGS
} ft_rounding;

/* "nearest", "gptq", "gptaq". */
const char *ft_rounding_name(ft_rounding rounding);
bool ft_rounding_parse(const char *name, ft_rounding *out);

/* Assigns a scheme to the matrices whose names match a pattern. */
typedef struct ft_rule {
    char *text; /* the pattern: a POSIX extended regular expression */
    regex_t pattern;
    ft_scheme scheme;
} ft_rule;

/* All zero: w8a8 for all linears. */
typedef struct ft_recipe {
    ft_scheme scheme;    /* of linears without a rule */
    bool quantized_head; /* also quantizes the LM head; else that needs a rule */

    /* Options of group-wise quantization. */
    int32_t group; /* group size: 32, 64, 128, or 0: one group per row */
    bool asymmetric;
    bool group_pad; /* the last group of a row may be shorter */
    ft_clip clip;
    bool awq; /* AWQ: scale columns and fold the inverse into their inputs */
    ft_rounding round;

    ft_rule *rule; /* the first match decides */
    size_t rules, capacity;
} ft_recipe;

void ft_recipe_fini(ft_recipe *recipe);

/*
 * Appends a rule. FT_EARG if the pattern is not a valid regular expression, or, for the second
 * form, if the text is not REGEX=SCHEME; the last "=" separates them.
 */
ft_status ft_recipe_add(ft_recipe *recipe, const char *pattern, ft_scheme scheme, ft_error *err);
ft_status ft_recipe_add_text(ft_recipe *recipe, const char *text, ft_error *err);

/* Whether a name matches the pattern of a rule. */
bool ft_rule_matches(const ft_rule *rule, const char *name);

/* The rule that decides about a matrix, or NULL. */
const ft_rule *ft_recipe_rule(const ft_recipe *recipe, const char *name);

/* The scheme of a linear, or of the LM head. */
ft_scheme ft_recipe_scheme(const ft_recipe *recipe, const char *name);

/* Whether any matrix may get this scheme, or a group-wise one. */
bool ft_recipe_uses(const ft_recipe *recipe, ft_scheme scheme);
bool ft_recipe_uses_groupwise(const ft_recipe *recipe);

/* Whether group-wise quantization uses calibration data. */
bool ft_recipe_needs_data(const ft_recipe *recipe);

/* The options of a group-wise scheme. */
ft_groupwise_options ft_recipe_groupwise_options(const ft_recipe *recipe, ft_scheme scheme);

/*
 * The part that an artifact records: scheme, rules and, if it has group-wise matrices, group
 * options; NULL without memory.
 */
json_t *ft_recipe_to_json(const ft_recipe *recipe, bool is_groupwise);

#endif
