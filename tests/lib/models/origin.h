/*
 * origin.h - checks how config.json of a checkpoint is read, and which messages refuse it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_ORIGIN_H
#define FT_TESTS_LIB_MODELS_ORIGIN_H

#include "convert/config/hf_config.h"

#include <stddef.h>

/*
 * Reads a configuration of tests/data/config, with the members of `patch` (see patched.h), or
 * unchanged if that is NULL.  `problems` need not be empty.
 */
ft_status origin_read(ft_hf_model *out, const char *file, const char *patch,
                      const char *const *ignored, ft_messages *problems);

/* One check: the description of the configuration equals this text. */
void is_origin(const char *file, const char *patch, const char *(*describe)(const ft_hf_model *),
               const char *expected);

/* A configuration that is refused with one message that contains this part. */
typedef struct bad_origin {
    const char *file, *patch;
    ft_status status;
    const char *part;
} bad_origin;

/* One check for each. */
void are_refused(const bad_origin *bad, size_t count);

#endif
