/*
 * zip_directory.h - the directory of a mapped zip archive.
 *
 * libzip reads archives through streams and does not expose where an entry's bytes are, which is
 * needed to use weights in place. So this code reads the directory directly from the mapping, and
 * strictly: it accepts only entries that can be used in place. Every entry is stored, not
 * encrypted, aligned, and follows the previous one; local header and central directory agree.
 *
 * Source: PKWARE APPNOTE.TXT 6.3, sections 4.3.7 to 4.3.16 and 4.5.3.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_ZIP_DIRECTORY_H
#define FT_RUNTIME_CONTAINER_ZIP_DIRECTORY_H

#include "runtime/ft.h"

enum {
    FT_ZIP_ALIGN = 64,              /* of every entry's data: a cache line, a vector register */
    FT_ZIP_ALIGN_LARGE = 4096,      /* of large entries: a page, for mmap and direct I/O */
    FT_ZIP_LARGE = 64 * 1024,       /* smallest size of a large entry, in bytes */
    FT_ZIP_MAX_NAME = 255,          /* bytes of a name */
    FT_ZIP_ALIGN_EXTRA_ID = 0x5446, /* extra field for padding: "FT" in a hex dump */
};

typedef struct ft_zip_entry {
    const char *name;          /* owned by the directory */
    const unsigned char *data; /* into the mapping */
    size_t offset, bytes;      /* of the data, from the start of the file */
    uint32_t crc;              /* CRC-32 in the archive */
} ft_zip_entry;

typedef struct ft_zip_directory {
    ft_zip_entry *entry; /* in file order */
    size_t count;
    const ft_zip_entry **by_name;
    char *names;
} ft_zip_directory;

/*
 * Read the directory of the archive map[0..bytes), which is borrowed and must outlive it. `label`
 * names the file in error messages. FT_EFORMAT when the archive is invalid; then *dir is empty.
 */
ft_status ft_zip_directory_read(ft_zip_directory *dir, const char *label, const void *map,
                                size_t bytes, ft_error *err);
void ft_zip_directory_fini(ft_zip_directory *dir); /* accepts an empty one */

/* NULL when there is no such entry. */
const ft_zip_entry *ft_zip_directory_find(const ft_zip_directory *dir, const char *name);

/* The alignment in the file of the data of an entry of `bytes` bytes. */
size_t ft_zip_alignment(size_t bytes);

/*
 * Valid names are relative paths of visible ASCII characters, without a backslash and without an
 * empty, "." or ".." component: a unique spelling on every system that may unpack them.
 */
bool ft_zip_name_is_valid(const char *name, size_t bytes);

#endif
