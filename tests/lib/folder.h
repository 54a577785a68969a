/*
 * folder.h - a temporary folder for the files of a test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_FOLDER_H
#define FT_TESTS_LIB_FOLDER_H

#include <stddef.h>

enum { FOLDER_PATH = 64 };

/* Creates a folder under $TMPDIR or /tmp, and removes it with all files in it. */
void folder_make(char path[FOLDER_PATH]);
void folder_remove(const char *path);

/* The number of its entries, without "." and "..". */
int folder_count(const char *path);

/* Writes a file of the folder. */
void folder_write(const char *path, const char *name, const char *data, size_t bytes);

/* The bytes of a file, or a copy of bytes: 64-byte aligned, no larger than needed, for free(). */
unsigned char *folder_read(const char *path, size_t *bytes);
unsigned char *aligned_copy(const unsigned char *data, size_t bytes);

#endif
