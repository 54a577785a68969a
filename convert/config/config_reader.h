/*
 * config_reader.h - shared helpers of the readers of config.json; private to convert/.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONFIG_CONFIG_READER_H
#define FT_CONVERT_CONFIG_CONFIG_READER_H

#include "convert/config/hf_config.h"
#include "runtime/base/json_reader.h"

typedef struct ft_config_reader {
    ft_json_reader in;          /* the configuration, or an object in it; collects problems */
    const char *const *ignored; /* keys that the user answers for; NULL-terminated, or NULL */
    const ft_architecture *architecture;
    ft_hf_model *out;
} ft_config_reader;

/*
 * Report an unknown key that may change the result, unless its value is empty or the key is
 * ignored.
 */
void ft_config_reject_unknown(const ft_config_reader *reader, const char *key, const json_t *value);

/* Read a token id, or a list of one token id; a problem, and *out is kept, when it is neither. */
void ft_config_read_token_id(const ft_config_reader *reader, const char *key, const json_t *value,
                             int32_t *out);

/* null, false, 0, "", [] and {}: the values that switch a feature off. */
bool ft_json_is_empty(const json_t *value);

/* Whether two values are equal; numbers are compared by value, so 1 equals 1.0. */
bool ft_json_equal(const json_t *a, const json_t *b);

/* Report a key whose value is neither null nor equal to the JSON text `must`: FT_EUNSUPPORTED. */
void ft_config_require_value(const ft_config_reader *reader, const char *key, const char *must);

/* Whether the user passed --ignore-key for this key. */
bool ft_config_is_ignored(const ft_config_reader *reader, const char *key);

/* Reject every key that has no rule and may change the result. */
void ft_config_check_other_keys(const ft_config_reader *reader);

/*
 * Read the head; for decoders also the RoPE settings (rope_parameters, rope_scaling,
 * rope_theta) and the sliding window.
 */
void ft_config_read_task_head(const ft_config_reader *reader);
void ft_config_read_rope(const ft_config_reader *reader);
void ft_config_read_sliding_window(const ft_config_reader *reader);

#endif
