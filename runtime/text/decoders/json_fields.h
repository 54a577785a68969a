/*
 * json_fields.h - fields that several decoders have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_DECODERS_JSON_FIELDS_H
#define FT_RUNTIME_TEXT_DECODERS_JSON_FIELDS_H

#include "runtime/base/json_reader.h"

/* A copy of a string member of 1 to `max_bytes` bytes; the caller frees it. */
ft_status ft_json_copy_string(const ft_json_reader *in, const char *key, size_t max_bytes,
                              char **out);

/* Maximum length in bytes of a string that steps insert or search for. */
enum { FT_JSON_MAX_CONTENT = 64 };

/* {"pattern": {"String": " "}, "content": ...} as copies; an empty content is allowed. */
ft_status ft_json_read_replace(const ft_json_reader *in, char **pattern, char **content);

#endif
