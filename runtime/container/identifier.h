/*
 * identifier.h - the names in an artifact: of its entries, and which words are valid as
 * identifiers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_IDENTIFIER_H
#define FT_RUNTIME_CONTAINER_IDENTIFIER_H

#include <stdbool.h>

#define FT_MANIFEST_ENTRY "manifest.json"
#define FT_AMAX_ENTRY "amax.tsv"
#define FT_WEIGHT_PREFIX "w/"
#define FT_SCALE_PREFIX "s/"
#define FT_ZERO_PREFIX "z/"

/* 1 to 31 visible ASCII characters: valid as a role, family or tool name. */
bool ft_identifier_is_valid(const char *word);

#endif
