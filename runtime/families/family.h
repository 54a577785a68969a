/*
 * family.h - what the toolchain must know of a model family: how checkpoints spell its
 * configuration, the names and shapes of its weights, and its graph.
 *
 * Names and shapes are data: the converter, the artifact's reader and error messages use the same
 * tables.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_FAMILIES_FAMILY_H
#define FT_RUNTIME_FAMILIES_FAMILY_H

#include "runtime/graph/graph.h"
#include "runtime/graph/model_config.h"

#include <stddef.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* How a weight is used, which decides how it may be stored. */
typedef enum ft_role {
    FT_ROLE_LINEAR, /* a matrix that int8 recipes quantize */
    FT_ROLE_DENSE,  /* a matrix that stays float (heads) */
    FT_ROLE_TABLE,  /* rows are looked up */
    FT_ROLE_VECTOR, /* always stored as F32 */
} ft_role;

/* "linear", "dense", "table", "vector"; parse is false for other words. */
const char *ft_role_name(ft_role role);
bool ft_role_parse(const char *name, ft_role *out);

/* The `bias` of a weight that has one in every model of its family. */
#define FT_ALWAYS "1"

/*
 * One line of a family's table of weights.  '*' in names runs over layers, '#' over those of an
 * encoder before them.  Dimensions are products as ft_config_size() reads them, with commas between
 * them ("heads*head_size, hidden"); where checkpoints have other dimensions for the same elements
 * in the same order, theirs follow a '/'.  A rule with a `bias` stands for NAME.weight and, where
 * that product is not 0, for the vector NAME.bias, one element a row.  `when` is a product that
 * must not be 0; NULL: the weight is always there.
 */
typedef struct ft_weight_rule {
    const char *name, *shape;
    ft_role role;
    const char *bias, *when;
} ft_weight_rule;

/*
 * The name of a weight in checkpoints: `name` as the rule has it, `source` without the suffix of a
 * rule with bias.  One that starts with '~' carries the model's prefix, if the checkpoint uses it.
 */
typedef struct ft_weight_source {
    const char *name, *source;
} ft_weight_source;

enum { FT_STORED_DIMS = 4 };

/* A weight rule expanded for one layer. */
typedef struct ft_weight_spec {
    char name[FT_NAME];
    char source[128]; /* with its '~'; empty when no architecture was asked for */
    ft_role role;
    int ndim, stored_ndim;
    int64_t dim[2], stored[FT_STORED_DIMS]; /* here; in checkpoints */
} ft_weight_spec;

/* What a key of config.json means. */
typedef enum ft_key {
    FT_KEY_COUNT,      /* a whole number, stored in the int32 field */
    FT_KEY_OPTIONAL,   /* the same, at least 1; null leaves 0 */
    FT_KEY_PAIR,       /* the same for two neighbouring fields: one number for both, or a list */
    FT_KEY_FLAG,       /* true or false, stored in the bool field */
    FT_KEY_EPS,        /* a positive number, stored in the float field */
    FT_KEY_ACTIVATION, /* a name, stored in the activation field */
    FT_KEY_ID,         /* a token's id, or a list of one, stored in the int32 field; null is -1 */
    FT_KEY_ALIAS,      /* absent, null, or what key `must` says, which the int32 field holds */
    FT_KEY_ROPE,       /* of rotary positions, see convert/config/rope.c */
    FT_KEY_WINDOW,     /* of layers that see less than all, see convert/config/window.c */
    FT_KEY_FIXED,      /* changes the result: only null and the value `must` are supported */
    FT_KEY_IGNORED,    /* does not change the result of inference */
} ft_key;

/*
 * One line about a key.  A key may have several: for each field that it is stored in, and one that
 * says what it must be because the family's code does not read it.
 */
typedef struct ft_config_rule {
    const char *key;
    ft_key kind;
    size_t field;     /* offsetof(ft_config, ...) */
    const char *must; /* MUST_BE: JSON text; TWIN: the other key; others: JSON text of the default,
                         NULL = required */
} ft_config_rule;

/* A field of ft_config, as rules name it. */
#define FT_FIELD(member) offsetof(ft_config, member)

typedef struct ft_family {
    const char *name; /* in the manifest */
    ft_kind kind;
    const ft_weight_rule *weight;
    size_t nweight;
    void (*build)(ft_graph *graph, const ft_config *config);
} ft_family;

/*
 * How the checkpoints of one model_type of transformers spell a family: each has a file of its own,
 * or shares one.  What an architecture does not say of a key or of a weight, its `base` says, which
 * need not be a model_type itself; other members are not inherited.
 */
typedef struct ft_architecture {
    const char *model_type; /* config.json's "model_type" */
    const ft_family *family;
    const struct ft_architecture *base; /* or NULL */
    const ft_config_rule *rule;         /* these replace all that the base has about their keys */
    size_t nrule;
    const ft_weight_source *source;
    size_t nsource;

    const char *const *classes; /* supported "architectures" of config.json, NULL-terminated */
    const char *base_model;     /* the class without the head that predicts tokens; or NULL */
    const char *prefix;         /* "bert."; NULL: none */
    ft_head head;               /* what a ...ForSequenceClassification has */
    bool qkv_bias;              /* queries, keys and values have one without a key that says so */
    bool qk_norm;               /* queries and keys are normed head by head */
    int32_t prefix_tokens;      /* of images: rows before those of patches */

    /* Of encoder-decoders. */
    ft_sinusoids sinusoids;
    const char *const *words;     /* other names of embed.word, NULL-terminated; or NULL */
    const char *const *positions; /* where the sinusoids may be stored too, the same; or NULL */
} ft_architecture;

/* Its rules about config.json, its base's first, from index 0; NULL past the last one. */
const ft_config_rule *ft_architecture_rule(const ft_architecture *architecture, size_t index);

/* The source of the weights of a rule; NULL: these checkpoints never have it. */
const char *ft_architecture_source(const ft_architecture *architecture, const char *name);

/* All architectures, from index 0; NULL past the last one. */
const ft_architecture *ft_architecture_at(size_t index);

/* The architecture of that model_type; NULL when unknown. */
const ft_architecture *ft_architecture_find(const char *model_type);

/* All families, from index 0; NULL past the last one. */
const ft_family *ft_family_at(size_t index);

/* The family of that name; NULL when unknown. */
const ft_family *ft_family_find(const char *name);

/*
 * All weights of a model, in the order in which it uses them, with their names in checkpoints of
 * `architecture` (NULL: without).  Free *out with free().  FT_EFORMAT: a weight would have no
 * elements, so the configuration is of another family.
 */
FT_MUST_USE ft_status ft_family_weights(const ft_family *family,
                                        const ft_architecture *architecture,
                                        const ft_config *config, ft_weight_spec **out,
                                        size_t *count, ft_error *err);

#pragma GCC visibility pop

#endif
