/*
 * family.h - a family's list of weights, and its configuration in a manifest.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_FAMILY_H
#define FT_TESTS_LIB_MODELS_FAMILY_H

#include "runtime/families/family.h"

/* "NAME ROLE [shape] SOURCE" of every weight, one a line; free with free(). */
char *weights_text(const ft_family *family, const ft_architecture *architecture,
                   const ft_config *config);

/* Whether every field survives a round trip through JSON text. */
bool config_survives(const ft_config *config);

/*
 * One check: a valid configuration patched with the members of `patch` (a JSON object; null removes
 * a key) is refused for this reason.
 */
void config_refused(const ft_config *good, const char *patch, const char *why);

#endif
