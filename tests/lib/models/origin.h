/*
 * origin.h - what config.json of a checkpoint is read as, and what is refused with which words.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_ORIGIN_H
#define FT_TESTS_LIB_MODELS_ORIGIN_H

#include "convert/config/hf_config.h"

#include <stddef.h>

/*
 * Read a configuration of tests/data/config, with the members of `patch` (see patched.h) or as it
 * is where that is NULL.  `problems` need not be empty.
 */
ft_status origin_read(ft_hf_model *out, const char *file, const char *patch,
                      const char *const *ignored, ft_messages *problems);

/* One check: what is read is described by this text. */
void is_origin(const char *file, const char *patch, const char *(*describe)(const ft_hf_model *),
               const char *expected);

/* A configuration that is refused, with one message that has this part. */
typedef struct bad_origin {
    const char *file, *patch;
    ft_status status;
    const char *part;
} bad_origin;

/* One check for each. */
void are_refused(const bad_origin *bad, size_t count);

#endif
