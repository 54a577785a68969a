/*
 * zip_writer.c - libzip with two callbacks: `entry_reader` supplies the bytes of an entry,
 * `file_sink` writes the bytes of the archive.
 *
 * With its own sink, the caller keeps control of the file, its lock and its errors. libzip's file
 * source would write a second temporary file and rename that.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/zip_writer.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/container/zip_directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

typedef struct {
    int fd;
    const char *label;
    const ft_zip_item *item;
    ft_zip_read_callback read_bytes;
    void *user;

    uint64_t at, end;  /* write position; end of the written data */
    ft_status failure; /* the first one, and its text */
    ft_error why;
    zip_error_t error; /* the same for libzip, which only passes it on */
} zip_job;

typedef struct {
    zip_job *zip_job;
    size_t index, left;
} entry_reader;

/* ---- Offsets -------------------------------------------------------------------------------- */

/* Size of the local header that libzip writes for a stored entry, without padding. */
static size_t header_bytes(const ft_zip_item *item)
{
    size_t zip64 = item->bytes > UINT32_MAX ? 20 : 0;
    return 30 + strlen(item->name) + zip64 + 4; /* 4: header of the padding field */
}

static size_t padding(const ft_zip_item *item, size_t at)
{
    size_t alignment = ft_zip_alignment(item->bytes);
    return ft_round_up(at + header_bytes(item), alignment) - at - header_bytes(item);
}

bool ft_zip_plan(ft_zip_item *item, size_t count, size_t *end)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (at > SIZE_MAX / 4 || item[i].bytes > SIZE_MAX / 4)
            return false;
        item[i].offset = at + header_bytes(&item[i]) + padding(&item[i], at);
        at = item[i].offset + item[i].bytes;
    }
    *end = at;
    return true;
}

/* ---- Callbacks ---------------------------------------------------------------------------- */

static zip_int64_t fail(zip_job *j, ft_status failure)
{
    if (j->failure == FT_OK)
        j->failure = failure;
    zip_error_set(&j->error, ZIP_ER_INTERNAL, 0);
    return -1;
}

static zip_int64_t entry_reader_stat(const entry_reader *f, void *data)
{
    zip_stat_t *st = data;
    zip_stat_init(st);
    st->size = f->zip_job->item[f->index].bytes;
    st->comp_method = ZIP_CM_STORE;
    st->valid = ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD;
    return 0;
}

static zip_int64_t entry_reader_read(entry_reader *f, void *data, zip_uint64_t bytes)
{
    zip_job *j = f->zip_job;
    size_t requested = bytes < f->left ? (size_t) bytes : f->left, got = 0;
    if (requested == 0)
        return 0;
    ft_status rc = j->read_bytes(j->user, f->index, data, requested, &got, &j->why);
    if (rc != FT_OK)
        return fail(j, rc);
    f->left -= got;
    return (zip_int64_t) got;
}

static zip_int64_t entry_reader_call(void *user, void *data, zip_uint64_t bytes,
                                     zip_source_cmd_t command)
{
    entry_reader *f = user;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_SUPPORTS, ZIP_SOURCE_OPEN, ZIP_SOURCE_READ,
                                              ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
                                              ZIP_SOURCE_FREE, -1);
    case ZIP_SOURCE_OPEN:
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    case ZIP_SOURCE_STAT:
        return entry_reader_stat(f, data);
    case ZIP_SOURCE_READ:
        return entry_reader_read(f, data, bytes);
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&f->zip_job->error, data, bytes);
    default:
        return fail(f->zip_job, FT_EUNSUPPORTED);
    }
}

static zip_int64_t file_sink_write(zip_job *j, const void *data, zip_uint64_t bytes)
{
    const char *next = data;
    for (zip_uint64_t left = bytes; left > 0;) {
        ssize_t wrote = pwrite(j->fd, next, left, (off_t) j->at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            ft_fail_errno(&j->why, "%s: cannot write at byte %llu", j->label,
                          (unsigned long long) j->at);
            return fail(j, FT_EIO);
        }
        next += wrote;
        left -= (zip_uint64_t) wrote;
        j->at += (uint64_t) wrote;
    }
    j->end = j->at > j->end ? j->at : j->end;
    return (zip_int64_t) bytes;
}

static zip_int64_t file_sink_seek(zip_job *j, void *data, zip_uint64_t bytes)
{
    zip_int64_t at = zip_source_seek_compute_offset(j->at, j->end, data, bytes, &j->error);
    if (at < 0)
        return -1;
    j->at = (uint64_t) at;
    return 0;
}

static zip_int64_t file_sink_call(void *user, void *data, zip_uint64_t bytes,
                                  zip_source_cmd_t command)
{
    zip_job *j = user;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_SUPPORTS, ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
            ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL,
            ZIP_SOURCE_BEGIN_WRITE, ZIP_SOURCE_COMMIT_WRITE, ZIP_SOURCE_ROLLBACK_WRITE,
            ZIP_SOURCE_WRITE, ZIP_SOURCE_SEEK_WRITE, ZIP_SOURCE_TELL_WRITE, ZIP_SOURCE_REMOVE, -1);
    case ZIP_SOURCE_BEGIN_WRITE:
    case ZIP_SOURCE_COMMIT_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_FREE:
        return 0;
    case ZIP_SOURCE_WRITE:
        return file_sink_write(j, data, bytes);
    case ZIP_SOURCE_SEEK_WRITE:
        return file_sink_seek(j, data, bytes);
    case ZIP_SOURCE_TELL_WRITE:
        return (zip_int64_t) j->at;
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&j->error, data, bytes);
    case ZIP_SOURCE_STAT: /* the archive does not exist yet */
        zip_error_set(&j->error, ZIP_ER_READ, ENOENT);
        return -1;
    default:
        return fail(j, FT_EUNSUPPORTED);
    }
}

/* ---- Writing ------------------------------------------------------------------------------ */

/* Add an item to the archive: stored, aligned, and without user, system or time information. */
static bool add_item(zip_t *zip, entry_reader *f)
{
    static const zip_uint8_t zeros[FT_ZIP_ALIGN_LARGE];
    const ft_zip_item *item = &f->zip_job->item[f->index];
    size_t at = f->index == 0 ? 0 : item[-1].offset + item[-1].bytes;
    zip_source_t *source = zip_source_function(zip, entry_reader_call, f);
    if (source == NULL)
        return false;
    /* Names are ASCII. Declared as UTF-8, libzip 1.11 would set a flag that 1.7 does not set. */
    zip_int64_t index = zip_file_add(zip, item->name, source, ZIP_FL_ENC_GUESS);
    if (index < 0) {
        zip_source_free(source);
        return false;
    }
    zip_uint64_t i = (zip_uint64_t) index;
    return zip_set_file_compression(zip, i, ZIP_CM_STORE, 0) == 0 &&
           zip_file_set_dostime(zip, i, 0, 0x21, 0) == 0 && /* 1980-01-01, the earliest date */
           zip_file_set_external_attributes(zip, i, 0, ZIP_OPSYS_UNIX, 0100644u << 16) == 0 &&
           zip_file_extra_field_set(zip, i, FT_ZIP_ALIGN_EXTRA_ID, ZIP_EXTRA_FIELD_NEW, zeros,
                                    (zip_uint16_t) padding(item, at), ZIP_FL_LOCAL) == 0;
}

/* Report an error of libzip itself. */
static ft_status fail_zip(const zip_job *j, zip_error_t *error, ft_error *err)
{
    if (zip_error_code_zip(error) == ZIP_ER_MEMORY)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for a zip archive", j->label);
    return ft_fail(err, FT_EIO, "%s: cannot write a zip archive: %s", j->label,
                   zip_error_strerror(error));
}

static zip_t *open_archive(zip_job *j)
{
    zip_source_t *sink = zip_source_function_create(file_sink_call, j, &j->error);
    if (sink == NULL)
        return NULL;
    zip_t *zip = zip_open_from_source(sink, ZIP_CREATE | ZIP_TRUNCATE, &j->error);
    if (zip == NULL)
        zip_source_free(sink);
    return zip;
}

static ft_status write_archive(zip_job *j, entry_reader *entry_readers, size_t count, ft_error *err)
{
    zip_t *zip = open_archive(j);
    if (zip == NULL)
        return fail_zip(j, &j->error, err);
    bool ok = true;
    for (size_t i = 0; i < count && ok; i++) {
        entry_readers[i] = (entry_reader){ j, i, j->item[i].bytes };
        ok = add_item(zip, &entry_readers[i]);
    }
    if (ok && zip_close(zip) == 0)
        return FT_OK;
    ft_status rc = j->failure != FT_OK ? ft_fail(err, j->failure, "%s", j->why.text)
                                       : fail_zip(j, zip_get_error(zip), err);
    zip_discard(zip);
    return rc;
}

ft_status ft_zip_write(int fd, const char *label, const ft_zip_item *item, size_t count,
                       ft_zip_read_callback read_bytes, void *user, ft_error *err)
{
    entry_reader *entry_readers = ft_calloc(count, sizeof *entry_readers);
    if (entry_readers == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu entries", label, count);
    zip_job j = { .fd = fd, .label = label, .item = item, .read_bytes = read_bytes, .user = user };
    zip_error_init(&j.error);
    ft_status rc = write_archive(&j, entry_readers, count, err);
    zip_error_fini(&j.error);
    free(entry_readers);
    return rc;
}
