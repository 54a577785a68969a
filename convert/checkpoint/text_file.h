/*
 * text_file.h - read config.json and its like into memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CHECKPOINT_TEXT_FILE_H
#define FT_CONVERT_CHECKPOINT_TEXT_FILE_H

#include "runtime/ft.h"

/* The largest file that is read: 64 MiB, several times the largest index of any known model. */
enum { FT_TEXT_FILE_MAX = 64 << 20 };

/*
 * Read a file.  *text is the caller's to free() and has a zero byte behind its *bytes; on failure
 * both are left alone.
 * FT_EIO: absent, unreadable, or not a regular file.  FT_ELIMIT: above FT_TEXT_FILE_MAX.
 */
FT_MUST_USE ft_status ft_text_file_read(const char *path, char **text, size_t *bytes,
                                        ft_error *err);

#endif
