/*
 * config_reader.h - shared helpers of the readers of config.json; private to convert/.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONFIG_CONFIG_READER_H
#define FT_CONVERT_CONFIG_CONFIG_READER_H

#include "convert/config/hf_config.h"

typedef struct ft_config_reader {
    json_t *json;
    const char *label;          /* names the file in messages */
    const char *const *ignored; /* keys that the user answers for; NULL-terminated, or NULL */
    const ft_architecture *architecture;
    ft_hf_model *out;
    ft_messages *problems;
} ft_config_reader;

/* The value of a key, or NULL where it is absent or null. */
const json_t *ft_config_get(const ft_config_reader *reader, const char *key);

/* Report an invalid value: FT_EFORMAT. */
void ft_config_fail_value(const ft_config_reader *reader, const char *key, const json_t *found,
                          const char *expected);

/*
 * Report an unknown key that may change the result, unless its value is empty or the key is
 * ignored.
 */
void ft_config_reject_unknown(const ft_config_reader *reader, const char *key, const json_t *value);

/* Read an integer from `low` to `high`; false, and a problem, when the value is not one. */
bool ft_config_read_int(const ft_config_reader *reader, const char *key, const json_t *value,
                        int32_t low, int32_t high, int32_t *out);

/* Read a token id, or a list of one token id; false, and a problem, when the value is neither. */
bool ft_config_read_token_id(const ft_config_reader *reader, const char *key, const json_t *value,
                             int32_t *out);

/* Report a key whose value is neither null nor equal to the JSON text `must`: FT_EUNSUPPORTED. */
void ft_config_require_value(const ft_config_reader *reader, const char *key, const char *must);

/* Whether the user passed --ignore-key for this key. */
bool ft_config_is_ignored(const ft_config_reader *reader, const char *key);

/* Reject every key that has no rule and may change the result. */
void ft_config_check_other_keys(const ft_config_reader *reader);

/*
 * Read the classification head; for decoders also the RoPE settings (rope_parameters, rope_scaling,
 * rope_theta) and the sliding window.
 */
void ft_config_read_classifier(const ft_config_reader *reader);
void ft_config_read_rope(const ft_config_reader *reader);
void ft_config_read_sliding_window(const ft_config_reader *reader);

#endif
