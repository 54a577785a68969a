/*
 * zip_directory.c - parse the end of the archive, then its directory, then each local header.
 *
 * Entries must follow each other without a gap and fill the file up to the directory. So comparing
 * one offset per entry rules out overlapping, out-of-bounds and hidden data.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/zip_directory.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Size in bytes of the fixed part of each record. */
enum { LOCAL = 30, CENTRAL = 46, END = 22, END64 = 56, LOCATOR64 = 20 };

enum {
    LOCAL_SIGNATURE = 0x04034b50,
    CENTRAL_SIGNATURE = 0x02014b50,
    END_SIGNATURE = 0x06054b50,
    END64_SIGNATURE = 0x06064b50,
    LOCATOR64_SIGNATURE = 0x07064b50,
};

/* General purpose flags. */
enum { ENCRYPTED = 1 << 0, SIZES_FOLLOW = 1 << 3, UTF8_NAME = 1 << 11 };

enum { ZIP64_EXTRA_ID = 1 };

typedef struct {
    const char *label;
    const unsigned char *map;
    size_t bytes;
    ft_error *err;
} archive;

/* The central directory as described by the end record. */
typedef struct {
    uint64_t count, offset, bytes;
    size_t limit; /* start of the end records */
} end_record;

/* The fields that a local and a central header share, in the widths of zip64. */
typedef struct {
    const unsigned char *name;
    size_t name_bytes;
    unsigned flags, method;
    uint32_t crc;
    uint64_t packed, bytes;
} header;

size_t ft_zip_alignment(size_t bytes)
{
    return bytes >= FT_ZIP_LARGE ? FT_ZIP_ALIGN_LARGE : FT_ZIP_ALIGN;
}

bool ft_zip_name_is_valid(const char *name, size_t bytes)
{
    if (bytes == 0 || bytes > FT_ZIP_MAX_NAME)
        return false;
    size_t start = 0; /* of the path component */
    for (size_t i = 0; i <= bytes; i++) {
        if (i < bytes && name[i] != '/') {
            if (name[i] <= ' ' || name[i] > '~' || name[i] == '\\')
                return false;
            continue;
        }
        size_t length = i - start;
        bool dots = length <= 2 && strncmp(name + start, "..", length) == 0;
        if (dots) /* also true for an empty component */
            return false;
        start = i + 1;
    }
    return true;
}

/* ---- The end of the archive --------------------------------------------------------------- */

static ft_status read_end64(const archive *a, end_record *s)
{
    const unsigned char *locator = a->map + s->limit - LOCATOR64;
    if (s->limit < LOCATOR64 + END64 || ft_load_le32(locator) != LOCATOR64_SIGNATURE)
        return ft_fail(a->err, FT_EFORMAT, "%s: truncated: no zip64 locator before the end record",
                       a->label);
    size_t at = s->limit - LOCATOR64 - END64;
    const unsigned char *end = a->map + at;
    if (ft_load_le64(locator + 8) != at || ft_load_le32(end) != END64_SIGNATURE ||
        ft_load_le64(end + 4) != END64 - 12)
        return ft_fail(a->err, FT_EFORMAT,
                       "%s: zip64 end record expected at byte %zu, locator says %" PRIu64, a->label,
                       at, ft_load_le64(locator + 8));
    bool one_disk = ft_load_le32(locator + 4) == 0 && ft_load_le32(locator + 16) == 1 &&
                    ft_load_le32(end + 16) == 0 && ft_load_le32(end + 20) == 0 &&
                    ft_load_le64(end + 24) == ft_load_le64(end + 32);
    if (!one_disk)
        return ft_fail(a->err, FT_EFORMAT, "%s: zip archive spans several files", a->label);
    s->count = ft_load_le64(end + 32);
    s->bytes = ft_load_le64(end + 40);
    s->offset = ft_load_le64(end + 48);
    s->limit = at;
    return FT_OK;
}

static ft_status read_end(const archive *a, end_record *s)
{
    if (a->bytes < 4 || ft_load_le32(a->map) != LOCAL_SIGNATURE)
        return ft_fail(a->err, FT_EFORMAT, "%s: not an artifact: no zip archive", a->label);
    if (a->bytes < LOCAL + END)
        return ft_fail(a->err, FT_EFORMAT, "%s: truncated: only %zu bytes", a->label, a->bytes);

    s->limit = a->bytes - END;
    const unsigned char *end = a->map + s->limit;
    if (ft_load_le32(end) != END_SIGNATURE || ft_load_le16(end + 20) != 0)
        return ft_fail(a->err, FT_EFORMAT,
                       "%s: truncated, or something follows: no end record at byte %zu", a->label,
                       s->limit);
    if (ft_load_le16(end + 4) != 0 || ft_load_le16(end + 6) != 0 ||
        ft_load_le16(end + 8) != ft_load_le16(end + 10))
        return ft_fail(a->err, FT_EFORMAT, "%s: zip archive spans several files", a->label);
    s->count = ft_load_le16(end + 10);
    s->bytes = ft_load_le32(end + 12);
    s->offset = ft_load_le32(end + 16);
    if (s->count == UINT16_MAX || s->bytes == UINT32_MAX || s->offset == UINT32_MAX)
        FT_TRY(read_end64(a, s));

    if (s->offset > s->limit || s->bytes != s->limit - s->offset)
        return ft_fail(a->err, FT_EFORMAT,
                       "%s: truncated or altered: %" PRIu64 " bytes of directory at byte %" PRIu64
                       " do not end at byte %zu",
                       a->label, s->bytes, s->offset, s->limit);
    if (s->count > s->bytes / CENTRAL)
        return ft_fail(a->err, FT_EFORMAT,
                       "%s: %" PRIu64 " entries do not fit a directory of %" PRIu64 " bytes",
                       a->label, s->count, s->bytes);
    return FT_OK;
}

/* ---- Headers ------------------------------------------------------------------------------ */

/* For error messages: a name that has not been validated, truncated. */
static const char *printable_name(char text[64], const unsigned char *name, size_t bytes)
{
    size_t length = ft_min_size(bytes, 63);
    memcpy(text, name, length);
    text[length] = '\0';
    return text;
}

/*
 * Replace those of the fields value[0..count) that overflowed 32 bits by the 64-bit values of the
 * zip64 block in an extra field. Without that block the 32-bit values are used.
 */
static bool apply_zip64(const unsigned char *extra, size_t bytes, uint64_t *const *value, int count)
{
    while (bytes >= 4) {
        size_t block = ft_load_le16(extra + 2);
        if (block > bytes - 4)
            return false;
        if (ft_load_le16(extra) == ZIP64_EXTRA_ID) {
            size_t used = 0;
            for (int i = 0; i < count; i++) {
                if (*value[i] != UINT32_MAX)
                    continue;
                if (block - used < 8)
                    return false;
                *value[i] = ft_load_le64(extra + 4 + used);
                used += 8;
            }
            return used == block;
        }
        extra += 4 + block;
        bytes -= 4 + block;
    }
    return bytes == 0;
}

static ft_status check_header(const archive *a, const header *h)
{
    char text[64];
    const char *name = printable_name(text, h->name, h->name_bytes);
    if (!ft_zip_name_is_valid((const char *) h->name, h->name_bytes))
        return ft_fail(a->err, FT_EFORMAT, "%s: \"%s\" is not a valid entry name", a->label, name);
    if (h->flags & ENCRYPTED)
        return ft_fail(a->err, FT_EFORMAT, "%s: %s: encrypted", a->label, name);
    if (h->flags & SIZES_FOLLOW)
        return ft_fail(a->err, FT_EFORMAT, "%s: %s: sizes follow the data (flags 0x%04x)", a->label,
                       name, h->flags);
    if (h->flags & ~(unsigned) UTF8_NAME)
        return ft_fail(a->err, FT_EFORMAT, "%s: %s: unknown flags 0x%04x", a->label, name,
                       h->flags);
    if (h->method != 0)
        return ft_fail(a->err, FT_EFORMAT, "%s: %s: not stored (method %u)", a->label, name,
                       h->method);
    if (h->packed != h->bytes)
        return ft_fail(a->err, FT_EFORMAT,
                       "%s: %s: stored, but %" PRIu64 " bytes in the archive and %" PRIu64
                       " outside",
                       a->label, name, h->packed, h->bytes);
    return FT_OK;
}

/* Read the central header at *at and advance *at to the next one. */
static ft_status read_central(const archive *a, const end_record *s, size_t *at, header *h,
                              uint64_t *local)
{
    const unsigned char *c = a->map + *at;
    size_t left = s->limit - *at;
    if (left < CENTRAL || ft_load_le32(c) != CENTRAL_SIGNATURE)
        return ft_fail(a->err, FT_EFORMAT, "%s: central directory altered at byte %zu", a->label,
                       *at);
    size_t extra_bytes = ft_load_le16(c + 30), comment_bytes = ft_load_le16(c + 32);
    *h = (header){
        .name = c + CENTRAL,
        .name_bytes = ft_load_le16(c + 28),
        .flags = ft_load_le16(c + 8),
        .method = ft_load_le16(c + 10),
        .crc = ft_load_le32(c + 16),
        .packed = ft_load_le32(c + 20),
        .bytes = ft_load_le32(c + 24),
    };
    *local = ft_load_le32(c + 42);
    size_t bytes = CENTRAL + h->name_bytes + extra_bytes + comment_bytes;
    if (bytes > left || ft_load_le16(c + 34) != 0 ||
        !apply_zip64(h->name + h->name_bytes, extra_bytes,
                     (uint64_t *const[]){ &h->bytes, &h->packed, local }, 3))
        return ft_fail(a->err, FT_EFORMAT, "%s: central directory altered at byte %zu", a->label,
                       *at);
    *at += bytes;
    return check_header(a, h);
}

/*
 * Read the local header at `at`, which must end before the directory; *data is the offset of its
 * end.
 */
static ft_status read_local(const archive *a, size_t at, size_t limit, header *h, size_t *data)
{
    const unsigned char *l = a->map + at;
    if (limit - at < LOCAL || ft_load_le32(l) != LOCAL_SIGNATURE)
        return ft_fail(a->err, FT_EFORMAT, "%s: no local header at byte %zu", a->label, at);
    size_t extra_bytes = ft_load_le16(l + 28);
    *h = (header){
        .name = l + LOCAL,
        .name_bytes = ft_load_le16(l + 26),
        .flags = ft_load_le16(l + 6),
        .method = ft_load_le16(l + 8),
        .crc = ft_load_le32(l + 14),
        .packed = ft_load_le32(l + 18),
        .bytes = ft_load_le32(l + 22),
    };
    size_t bytes = LOCAL + h->name_bytes + extra_bytes;
    if (bytes > limit - at || !apply_zip64(h->name + h->name_bytes, extra_bytes,
                                           (uint64_t *const[]){ &h->bytes, &h->packed }, 2))
        return ft_fail(a->err, FT_EFORMAT, "%s: local header altered at byte %zu", a->label, at);
    *data = at + bytes;
    return FT_OK;
}

static bool headers_equal(const header *x, const header *y)
{
    return x->flags == y->flags && x->method == y->method && x->crc == y->crc &&
           x->packed == y->packed && x->bytes == y->bytes && x->name_bytes == y->name_bytes &&
           memcmp(x->name, y->name, x->name_bytes) == 0;
}

/*
 * Read one entry: the central header at *at, its local header, which must start at *next, and the
 * position of its data. *next is advanced to the end of the data.
 */
static ft_status read_entry(const archive *a, const end_record *s, size_t *at, size_t *next,
                            ft_zip_entry *entry, char *name)
{
    header central, local;
    uint64_t offset = 0;
    FT_TRY(read_central(a, s, at, &central, &offset));
    memcpy(name, central.name, central.name_bytes);
    name[central.name_bytes] = '\0';

    size_t limit = (size_t) s->offset, data = 0;
    if (offset != *next)
        return ft_fail(a->err, FT_EFORMAT,
                       "%s: %s: begins at byte %" PRIu64
                       ", expected %zu: outside, overlapping or after a gap",
                       a->label, name, offset, *next);
    FT_TRY(read_local(a, *next, limit, &local, &data));
    if (!headers_equal(&central, &local))
        return ft_fail(a->err, FT_EFORMAT, "%s: %s: local header and central directory disagree",
                       a->label, name);
    if (central.bytes > limit - data)
        return ft_fail(a->err, FT_EFORMAT,
                       "%s: %s: out of bounds: %" PRIu64 " bytes at byte %zu, directory at %zu",
                       a->label, name, central.bytes, data, limit);
    size_t bytes = (size_t) central.bytes;
    if (data % ft_zip_alignment(bytes) != 0)
        return ft_fail(a->err, FT_EFORMAT,
                       "%s: %s: not aligned: %zu bytes at byte %zu, not a "
                       "multiple of %zu",
                       a->label, name, bytes, data, ft_zip_alignment(bytes));
    *entry = (ft_zip_entry){ name, a->map + data, data, bytes, central.crc };
    *next = data + bytes;
    return FT_OK;
}

/* ---- The directory ------------------------------------------------------------------------ */

static ft_status read_entries(ft_zip_directory *dir, const archive *a, const end_record *s)
{
    size_t at = (size_t) s->offset, next = 0;
    char *name = dir->names;
    for (size_t i = 0; i < s->count; i++) {
        FT_TRY(read_entry(a, s, &at, &next, &dir->entry[i], name));
        name += strlen(name) + 1;
        dir->count++;
    }
    if (at != s->limit || next != s->offset)
        return ft_fail(a->err, FT_EFORMAT,
                       "%s: the last entry ends at byte %zu and the directory at %zu, expected "
                       "%" PRIu64 " and %zu",
                       a->label, next, at, s->offset, s->limit);
    return FT_OK;
}

static int by_name(const void *x, const void *y)
{
    const ft_zip_entry *const *a = x, *const *b = y;
    return strcmp((*a)->name, (*b)->name);
}

static ft_status index_names(ft_zip_directory *dir, const archive *a)
{
    for (size_t i = 0; i < dir->count; i++)
        dir->by_name[i] = &dir->entry[i];
    qsort(dir->by_name, dir->count, sizeof *dir->by_name, by_name);
    for (size_t i = 1; i < dir->count; i++)
        if (by_name(&dir->by_name[i - 1], &dir->by_name[i]) == 0)
            return ft_fail(a->err, FT_EFORMAT, "%s: two entries are called %s", a->label,
                           dir->by_name[i]->name);
    return FT_OK;
}

ft_status ft_zip_directory_read(ft_zip_directory *dir, const char *label, const void *map,
                                size_t bytes, ft_error *err)
{
    *dir = (ft_zip_directory){ 0 };
    archive a = { label, map, bytes, err };
    end_record s = { 0 };
    FT_TRY(read_end(&a, &s));

    /* Names, each with its terminator, are shorter than the headers that contain them. */
    dir->entry = ft_calloc((size_t) s.count, sizeof *dir->entry);
    dir->by_name = ft_calloc((size_t) s.count, sizeof *dir->by_name);
    dir->names = ft_calloc((size_t) s.bytes, 1);
    ft_status rc = FT_OK;
    if (dir->entry == NULL || dir->by_name == NULL || dir->names == NULL)
        rc = ft_fail(err, FT_ENOMEM, "%s: no memory for %" PRIu64 " entries", label, s.count);
    if (rc == FT_OK)
        rc = read_entries(dir, &a, &s);
    if (rc == FT_OK)
        rc = index_names(dir, &a);
    if (rc != FT_OK)
        ft_zip_directory_fini(dir);
    return rc;
}

void ft_zip_directory_fini(ft_zip_directory *dir)
{
    free(dir->entry);
    free(dir->by_name);
    free(dir->names);
    *dir = (ft_zip_directory){ 0 };
}

const ft_zip_entry *ft_zip_directory_find(const ft_zip_directory *dir, const char *name)
{
    ft_zip_entry key = { .name = name }, *wanted = &key;
    const ft_zip_entry **found =
        bsearch(&wanted, dir->by_name, dir->count, sizeof *dir->by_name, by_name);
    return found != NULL ? *found : NULL;
}
