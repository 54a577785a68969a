/*
 * folder.h - files for a test, in a folder of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_FOLDER_H
#define FT_TESTS_LIB_FOLDER_H

#include <stddef.h>

enum { FOLDER_PATH = 64 };

/* A fresh folder under $TMPDIR or /tmp, and its end with all files in it. */
void folder_make(char path[FOLDER_PATH]);
void folder_remove(const char *path);

/* How many names it has beside "." and "..". */
int folder_count(const char *path);

/* The bytes of a file, or a copy of bytes: 64-byte aligned, exactly as many, for free(). */
unsigned char *folder_read(const char *path, size_t *bytes);
unsigned char *aligned_copy(const unsigned char *data, size_t bytes);

#endif
