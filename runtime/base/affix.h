/*
 * affix.h - whether a text starts or ends with another.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_AFFIX_H
#define FT_RUNTIME_BASE_AFFIX_H

#include <stdbool.h>
#include <string.h>

static inline bool ft_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static inline bool ft_ends_with(const char *text, const char *suffix)
{
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && strcmp(text + length - tail, suffix) == 0;
}

#endif
