/*
 * config_reader.h - what the readers of parts of config.json share; for convert/ alone.
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
    const ft_dialect *dialect;
    ft_origin *out;
    ft_messages *problems;
} ft_config_reader;

/* The value of a key, or NULL where it is absent or null. */
const json_t *ft_config_value(const ft_config_reader *reader, const char *key);

/* Note that a value is not what it must be: FT_EFORMAT. */
void ft_config_wrong(const ft_config_reader *reader, const char *key, const json_t *found,
                     const char *expected);

/* Note that a key is unknown and may change the result, unless its value is empty or it is ignored.
 */
void ft_config_refuse_unknown(const ft_config_reader *reader, const char *key, const json_t *value);

/* Read a whole number from `low` to `high`; false, and a problem, where it is none. */
bool ft_config_whole(const ft_config_reader *reader, const char *key, const json_t *value,
                     int32_t low, int32_t high, int32_t *out);

/* Read a token's id, which may stand in a list of one; false, and a problem, where it is none. */
bool ft_config_id(const ft_config_reader *reader, const char *key, const json_t *value,
                  int32_t *out);

/* Note where a key has another value than null and this JSON text: FT_EUNSUPPORTED. */
void ft_config_must_be(const ft_config_reader *reader, const char *key, const char *must);

/* Whether the user answers for a key. */
bool ft_config_is_ignored(const ft_config_reader *reader, const char *key);

/* Refuse every key that has no rule and may change the result. */
void ft_config_check_other_keys(const ft_config_reader *reader);

/* The head of a classifier; of decoders rope_parameters and its kin, sliding_window and its kin. */
void ft_config_read_head(const ft_config_reader *reader);
void ft_config_read_rope(const ft_config_reader *reader);
void ft_config_read_windows(const ft_config_reader *reader);

#endif
