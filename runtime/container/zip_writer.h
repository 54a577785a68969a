/*
 * zip_writer.h - stream a zip archive of stored, aligned entries.
 *
 * The counterpart of zip_directory.h. libzip writes the archive. It has no notion of alignment, so
 * an extra field in each local header pads the data to its alignment.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_ZIP_WRITER_H
#define FT_RUNTIME_CONTAINER_ZIP_WRITER_H

#include "runtime/ft.h"

typedef struct ft_zip_item {
    const char *name;
    size_t bytes;
    size_t offset; /* of the data in the file; set by ft_zip_plan */
} ft_zip_item;

/*
 * Compute the offset of the data of every item, if they are written in this order to an empty file.
 * False when the file would exceed the range of offsets. *end is the offset of the directory.
 */
bool ft_zip_plan(ft_zip_item *item, size_t count, size_t *end);

/*
 * Fill buffer with the next bytes of an item, 1 <= *got <= bytes. Called sequentially until the
 * item is complete.
 */
typedef ft_status (*ft_zip_read_callback)(void *user, size_t index, void *buffer, size_t bytes,
                                          size_t *got, ft_error *err);

/*
 * Write planned items to an empty file. The file's bytes depend only on names and contents. Errors
 * of the callback are passed on with their text.
 */
ft_status ft_zip_write(int fd, const char *label, const ft_zip_item *item, size_t count,
                       ft_zip_read_callback read_bytes, void *user, ft_error *err);

#endif
