/*
 * zip_writer.h - write a zip archive of stored, aligned entries, streaming.
 *
 * The other half of zip_directory.h.  The archive is libzip's work; alignment, which libzip knows nothing
 * of, comes from an extra field in each local header that moves the data to where it should be.
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
 * Where the data of every item will lie, if they are written in this order to an empty file.
 * False when the file would be too large to have offsets.  *end is where the directory begins.
 */
bool ft_zip_plan(ft_zip_item *item, size_t count, size_t *end);

/* Fill buffer with the next bytes of an item, 1 <= *got <= bytes.  Called in order, to its end. */
typedef ft_status (*ft_zip_pull)(void *user, size_t index, void *buffer, size_t bytes, size_t *got,
                                 ft_error *err);

/*
 * Write planned items to an empty file.  The bytes of the file depend on names and contents alone.
 * A failure of `pull` comes back with its own text.
 */
ft_status ft_zip_write(int fd, const char *label, const ft_zip_item *item, size_t count,
                       ft_zip_pull pull, void *user, ft_error *err);

#endif
