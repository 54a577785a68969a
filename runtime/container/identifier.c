/*
 * identifier.c - which words are valid as a role, family or tool name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/identifier.h"

#include "runtime/container/artifact.h"
#include "runtime/container/zip_directory.h"

#include <string.h>

bool ft_identifier_is_valid(const char *word)
{
    size_t bytes = strlen(word);
    return bytes <= FT_ARTIFACT_IDENTIFIER_MAX && ft_zip_name_is_valid(word, bytes);
}
