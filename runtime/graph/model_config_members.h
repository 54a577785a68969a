/*
 * model_config_members.h - the numbers of a configuration, their keys in JSON and their bounds;
 * private to runtime/graph/.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_MODEL_CONFIG_MEMBERS_H
#define FT_RUNTIME_GRAPH_MODEL_CONFIG_MEMBERS_H

#include "runtime/base/json_reader.h"
#include "runtime/graph/model_config.h"

/* Whose member it is: every model's; any model's, where 0 need not be written; encoder-decoders';
 * models' that read images, or that read words instead. */
typedef enum ft_member_kind {
    FT_MEMBER_ALL_MODELS,
    FT_MEMBER_OPTIONAL,
    FT_MEMBER_ENCODER_DECODER,
    FT_MEMBER_VISION,
    FT_MEMBER_TEXT_ONLY
} ft_member_kind;

enum { FT_CONFIG_INTS = 30, FT_CONFIG_DOUBLES = 4 };

/* Bounds that no real model meets; they keep sizes far from overflow. */
typedef struct ft_int_member {
    const char *key;
    size_t field; /* its offset in ft_config */
    int32_t low, high;
    ft_member_kind whose;
} ft_int_member;

/* Of decoders. */
typedef struct ft_double_member {
    const char *key;
    size_t field;
    double low, high; /* where it is not 0 */
} ft_double_member;

extern const ft_int_member ft_config_ints[FT_CONFIG_INTS];
extern const ft_double_member ft_config_doubles[FT_CONFIG_DOUBLES];

/* The factors "dense_size_I", "dense_input_I" and "dense_bias_I" of products; -1: none of them. */
int64_t ft_config_dense_factor(const ft_config *config, const char *name);

/* Check that what the embedding has is consistent: FT_EFORMAT. */
ft_status ft_config_check_embedding(const ft_config *config, const char *label, ft_error *err);

/* The list "dense" of the manifest, absent without Dense layers; false: out of memory. */
bool ft_config_put_dense(json_t *json, const ft_config *config);
ft_status ft_config_read_dense(ft_config *out, const ft_json_reader *in);

#endif
