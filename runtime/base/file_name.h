/*
 * file_name.h - the last component of a path.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_FILE_NAME_H
#define FT_RUNTIME_BASE_FILE_NAME_H

#include <string.h>

/* What follows the last slash; the path itself if it has none. */
static inline const char *ft_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

#endif
