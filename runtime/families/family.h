/*
 * family.h - describes model families (names and shapes of weights, graph) and architectures (how
 * the checkpoints of transformers name weights and configuration keys).
 *
 * Names and shapes are data: converter, artifact reader and error messages use the same tables.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_FAMILIES_FAMILY_H
#define FT_RUNTIME_FAMILIES_FAMILY_H

#include "runtime/graph/graph.h"
#include "runtime/graph/model_config.h"

#include <stddef.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* How a weight is used, which determines its storage types. */
typedef enum ft_role {
    FT_ROLE_LINEAR, /* the weight of a linear that recipes may quantize */
    FT_ROLE_DENSE,  /* the weight of a linear that stays float (heads) */
    FT_ROLE_TABLE,  /* an embedding table */
    FT_ROLE_VECTOR, /* always stored as F32 */
} ft_role;

/* "linear", "dense", "table", "vector"; ft_role_parse() returns false for
 * other strings. */
const char *ft_role_name(ft_role role);
bool ft_role_parse(const char *name, ft_role *out);

/* The `bias` of a rule whose weight has a bias in every model of the family. */
#define FT_ALWAYS "1"

/*
 * One line of a family's table of weights.  In names, '*' stands for each layer and '#' for each
 * encoder layer of an encoder-decoder.  `shape` lists the dimensions, separated by commas
 * ("heads*head_size, hidden"); each is a product for ft_config_size().  If checkpoints store the
 * same elements under other dimensions, those follow after a '/'.  A rule with a `bias` stands for
 * NAME.weight and, unless the product `bias` is 0, for the vector NAME.bias with one element per
 * row.  The weight exists only if the product `when` is not 0; NULL: always.
 */
typedef struct ft_weight_rule {
    const char *name, *shape;
    ft_role role;
    const char *bias, *when;
} ft_weight_rule;

/*
 * The checkpoint name of a weight: `name` is that of the rule, `source` is the checkpoint's,
 * without
 * ".weight" and ".bias" if the rule has a bias.  A leading '~' stands for the prefix of the
 * architecture, if the checkpoint uses it.  Without a bias, names that checkpoints may have instead
 * follow after a '|'.
 */
typedef struct ft_weight_source {
    const char *name, *source;
} ft_weight_source;

enum { FT_STORED_DIMS = 4 };

/* A weight rule expanded for one layer. */
typedef struct ft_weight_spec {
    char name[FT_NAME];
    char source[128]; /* checkpoint name with its '~'; empty without an architecture */
    ft_role role;
    int ndim, stored_ndim;
    int64_t dim[2], stored[FT_STORED_DIMS]; /* in the graph; in checkpoints */
} ft_weight_spec;

/* The meaning of a key of config.json. */
typedef enum ft_key {
    FT_KEY_COUNT,      /* an integer, stored in the int32 field */
    FT_KEY_OPTIONAL,   /* an integer of at least 1; null leaves 0 */
    FT_KEY_PAIR,       /* an integer for two adjacent fields: one for both, or a list of two */
    FT_KEY_FLAG,       /* true or false, stored in the bool field */
    FT_KEY_EPS,        /* a positive number, stored in the float field */
    FT_KEY_ACTIVATION, /* a name, stored in the activation field */
    FT_KEY_ID,         /* a token id or a list of one, stored in the int32 field; null is -1 */
    FT_KEY_ALIAS,      /* missing, null, or equal to the key `must`, which the field holds */
    FT_KEY_ROPE,       /* RoPE, see convert/config/rope.c */
    FT_KEY_WINDOW,     /* sliding window attention, see convert/config/window.c */
    FT_KEY_FIXED,      /* affects the result: only null and the value `must` are supported */
    FT_KEY_IGNORED,    /* does not affect inference */
} ft_key;

/*
 * A rule for a key of config.json.  A key may have several rules: one per field that stores it, and
 * a FIXED rule for a value that the code of the family assumes.
 */
typedef struct ft_config_rule {
    const char *key;
    ft_key kind;
    size_t field;     /* offsetof(ft_config, ...) */
    const char *must; /* FIXED: JSON text; ALIAS: the other key; others: JSON text of the default,
                         NULL = required */
} ft_config_rule;

/* The offset of a member of ft_config, for rules. */
#define FT_FIELD(member) offsetof(ft_config, member)

typedef struct ft_family {
    const char *name; /* the name in the manifest */
    ft_kind kind;
    const ft_weight_rule *weight;
    size_t nweight;
    void (*build)(ft_graph *graph, const ft_config *config);
} ft_family;

/*
 * Maps the checkpoints of one model_type of transformers to a family.  An architecture inherits the
 * rules and sources of its `base` for keys and weights that it does not list itself.  It inherits
 * nothing else.  A base need not be a model_type.
 */
typedef struct ft_architecture {
    const char *model_type; /* config.json's "model_type" */
    const ft_family *family;
    const struct ft_architecture *base; /* or NULL */
    const ft_config_rule *rule;         /* replace all rules of the base for the same keys */
    size_t nrule;
    const ft_weight_source *source;
    size_t nsource;

    const char *const *classes; /* supported "architectures" of config.json, NULL-terminated */
    const char *base_model;     /* the class without the LM head; or NULL */
    const char *prefix;         /* "bert."; NULL: none */
    ft_head head;               /* the head of ...ForSequenceClassification */
    bool qkv_bias;         /* Q, K and V projections have a bias; no key of config.json says so */
    bool qk_norm;          /* query and key heads are normalized */
    int32_t prefix_tokens; /* vision models: tokens before the patches */

    /* Encoder-decoders. */
    ft_sinusoids sinusoids;
    /* Checkpoint names of the copies of embed.word and of stored sinusoids; each list ends with
     * NULL and may be NULL. */
    const char *const *tied_embeddings, *const *stored_sinusoids;
} ft_architecture;

/* Rule `index` for config.json, inherited rules first; NULL past the last one. */
const ft_config_rule *ft_architecture_rule(const ft_architecture *architecture, size_t index);

/* The checkpoint name of the weight of the rule `name`; NULL: checkpoints never have it. */
const char *ft_architecture_source(const ft_architecture *architecture, const char *name);

/* Architecture `index` in the order of the registry; NULL past the last one. */
const ft_architecture *ft_architecture_at(size_t index);

/* The architecture of a model_type; NULL: unknown. */
const ft_architecture *ft_architecture_find(const char *model_type);

/* Family `index` in the order of the registry; NULL past the last one. */
const ft_family *ft_family_at(size_t index);

/* The family with that name; NULL: unknown. */
const ft_family *ft_family_find(const char *name);

/*
 * List the weights of a model in the order of use, with their names in checkpoints of
 * `architecture`, or without these if it is NULL.  Free *out with free().  FT_EFORMAT: a weight
 * would have no elements, so the configuration is that of another family; FT_ELIMIT: a name is too
 * long; FT_ENOMEM: out of memory.
 */
FT_MUST_USE ft_status ft_family_weights(const ft_family *family,
                                        const ft_architecture *architecture,
                                        const ft_config *config, ft_weight_spec **out,
                                        size_t *count, ft_error *err);

#pragma GCC visibility pop

#endif
