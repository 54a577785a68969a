/*
 * config_reader.h - what the readers of parts of config.json share; for convert/ alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONFIG_READER_H
#define FT_CONVERT_CONFIG_READER_H

#include "convert/config.h"

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

/* The head of a classifier; of decoders rope_parameters and its kin, sliding_window and its kin. */
void ft_config_read_head(const ft_config_reader *reader);
void ft_config_read_rope(const ft_config_reader *reader);
void ft_config_read_windows(const ft_config_reader *reader);

#endif
