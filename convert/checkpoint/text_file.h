/*
 * text_file.h - read a text file such as config.json into memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CHECKPOINT_TEXT_FILE_H
#define FT_CONVERT_CHECKPOINT_TEXT_FILE_H

#include "runtime/ft.h"

/* Size limit in bytes: 64 MiB, several times the largest index of any known model. */
enum { FT_TEXT_FILE_MAX_BYTES = 64 << 20 };

/*
 * Read a whole file. The caller frees *text; a zero byte follows its *bytes. On failure both are
 * unchanged.
 * FT_EIO: missing, unreadable, or not a regular file. FT_ELIMIT: larger than
 * FT_TEXT_FILE_MAX_BYTES.
 */
FT_MUST_USE ft_status ft_text_file_read(const char *path, char **text, size_t *bytes,
                                        ft_error *err);

#endif
