/*
 * artifact_read.c - map an artifact and validate it.
 *
 * First the directory, then the manifest, then each against the other, so that every entry is named
 * exactly once and is where the manifest says. Last come the numbers that int8 arithmetic depends
 * on: scales and amax. Weights are not read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/artifact_private.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/container/file_type.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are used in place");

/* ---- Manifest against directory ----------------------------------------------------------- */

static ft_status read_manifest(ft_artifact *a, zip_t *zip, ft_error *err)
{
    const ft_zip_entry *entry = ft_zip_directory_find(&a->dir, FT_MANIFEST_ENTRY);
    if (entry == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: no " FT_MANIFEST_ENTRY, a->label);
    FT_TRY(ft_artifact_check_crc(a, zip, entry, err));
    return ft_manifest_parse(&a->manifest, a->label, entry->data, entry->bytes, err);
}

/* Look up the entry prefix + name, which the manifest must name only once. */
static ft_status claim_entry(ft_artifact *a, const char *prefix, const char *name,
                             const uint8_t *digest, const ft_zip_entry **out, ft_error *err)
{
    char path[FT_ZIP_MAX_NAME + 1];
    int length = snprintf(path, sizeof path, "%s%s", prefix, name);
    *out = length < (int) sizeof path ? ft_zip_directory_find(&a->dir, path) : NULL;
    if (*out == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: %s: missing, but in " FT_MANIFEST_ENTRY, a->label,
                       path);
    const uint8_t **slot = &a->digest[*out - a->dir.entry];
    if (*slot != NULL || strcmp(path, FT_MANIFEST_ENTRY) == 0)
        return ft_fail(err, FT_EFORMAT, "%s: %s: named twice by " FT_MANIFEST_ENTRY, a->label,
                       path);
    *slot = digest;
    return FT_OK;
}

static ft_status resolve_tensors(ft_artifact *a, ft_error *err)
{
    for (size_t i = 0; i < a->manifest.n_tensors; i++) {
        ft_artifact_tensor *t = &a->manifest.tensor[i];
        const ft_zip_entry *entry;
        FT_TRY(claim_entry(a, FT_WEIGHT_PREFIX, t->name, t->sha256, &entry, err));
        if (t->bytes != entry->bytes || t->offset != entry->offset)
            return ft_fail(err, FT_EFORMAT,
                           "%s: %s: %zu bytes at byte %zu, " FT_MANIFEST_ENTRY
                           " says %zu at byte %zu",
                           a->label, entry->name, entry->bytes, entry->offset, t->bytes, t->offset);
        t->data = entry->data;
    }
    return FT_OK;
}

static ft_status resolve_files(ft_artifact *a, ft_error *err)
{
    for (size_t i = 0; i < a->manifest.n_files; i++) {
        ft_artifact_entry *f = &a->manifest.file[i];
        const ft_zip_entry *entry;
        FT_TRY(claim_entry(a, "", f->name, f->sha256, &entry, err));
        if (f->bytes != entry->bytes)
            return ft_fail(err, FT_EFORMAT, "%s: %s: %zu bytes, " FT_MANIFEST_ENTRY " says %zu",
                           a->label, entry->name, entry->bytes, f->bytes);
        f->data = entry->data;
    }
    return FT_OK;
}

static ft_status check_all_named(const ft_artifact *a, ft_error *err)
{
    for (size_t i = 0; i < a->dir.count; i++)
        if (a->digest[i] == NULL && strcmp(a->dir.entry[i].name, FT_MANIFEST_ENTRY) != 0)
            return ft_fail(err, FT_EFORMAT, "%s: %s: not in " FT_MANIFEST_ENTRY, a->label,
                           a->dir.entry[i].name);
    return FT_OK;
}

/* ---- Ranges --------------------------------------------------------------------------------- */

static ft_status read_amax(ft_artifact *a, zip_t *zip, ft_error *err)
{
    const ft_zip_entry *entry = ft_zip_directory_find(&a->dir, FT_AMAX_ENTRY);
    bool wanted = ft_artifact_has_static_ranges(&a->manifest.header);
    if (entry == NULL && !wanted)
        return FT_OK;
    if (entry == NULL || !wanted)
        return ft_fail(err, FT_EFORMAT, "%s: " FT_AMAX_ENTRY ": %s", a->label,
                       wanted ? "missing in an int8 artifact"
                              : "in an artifact that has no calibrated ranges");
    FT_TRY(ft_artifact_check_crc(a, zip, entry, err));
    char label[1024];
    snprintf(label, sizeof label, "%s: " FT_AMAX_ENTRY, a->label);
    return ft_amax_table_parse(&a->amax, label, entry->data, entry->bytes, err);
}

/* ---- Opening ------------------------------------------------------------------------------ */

static ft_status read_contents(ft_artifact *a, zip_t *zip, ft_error *err)
{
    FT_TRY(read_manifest(a, zip, err));
    FT_TRY(resolve_tensors(a, err));
    FT_TRY(resolve_files(a, err));
    FT_TRY(check_all_named(a, err));
    FT_TRY(ft_artifact_index_tensors(a, err));
    FT_TRY(ft_artifact_read_scales(a, zip, err));
    return read_amax(a, zip, err);
}

/*
 * Headers are scattered between the weights. Default readahead would load the neighbourhood of
 * each: most of a small model, from disk, before it is needed.
 */
static void advise_access(const ft_artifact *a, int access)
{
    if (a->mapped)
        posix_madvise((void *) (uintptr_t) a->map, a->bytes, access);
}

static ft_status read_artifact(ft_artifact *a, ft_verify verify, ft_error *err)
{
    advise_access(a, POSIX_MADV_RANDOM);
    FT_TRY(ft_zip_directory_read(&a->dir, a->label, a->map, a->bytes, err));
    a->digest = ft_calloc(a->dir.count, sizeof *a->digest);
    if (a->digest == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", a->label);
    zip_t *zip;
    FT_TRY(ft_artifact_open_zip(a, &zip, err));
    ft_status rc = read_contents(a, zip, err);
    zip_discard(zip);
    advise_access(a, POSIX_MADV_NORMAL);
    if (rc == FT_OK && verify != FT_VERIFY_STRUCTURE)
        rc = ft_artifact_verify(a, verify, NULL, NULL, err);
    return rc;
}

static ft_status map_file(ft_artifact *a, int fd, ft_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return ft_fail_errno(err, "%s", a->label);
    if (!S_ISREG(st.st_mode))
        return ft_fail(err, FT_EIO, "%s: not a regular file", a->label);
    if ((uintmax_t) st.st_size > SIZE_MAX)
        return ft_fail(err, FT_ELIMIT, "%s: too large for this machine's memory map", a->label);
    if (st.st_size == 0)
        return ft_fail(err, FT_EFORMAT, "%s: not an artifact: empty", a->label);
    void *map = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return ft_fail_errno(err, "%s: cannot map", a->label);
    a->map = map;
    a->bytes = (size_t) st.st_size;
    a->mapped = true;
    return FT_OK;
}

static ft_artifact *new_artifact(const char *label, ft_error *err)
{
    ft_artifact *a = calloc(1, sizeof *a);
    if (a != NULL)
        a->label = ft_strdup(label);
    if (a == NULL || a->label == NULL) {
        free(a);
        ft_fail(err, FT_ENOMEM, "%s: no memory", label);
        return NULL;
    }
    return a;
}

/* Return a valid artifact, or close one that is invalid. */
static ft_status return_artifact(ft_artifact **out, ft_artifact *a, ft_status rc)
{
    if (rc == FT_OK)
        *out = a;
    else
        ft_artifact_close(a);
    return rc;
}

static ft_status map_fd(ft_artifact **out, const char *label, int fd, ft_error *err)
{
    ft_artifact *a = new_artifact(label, err);
    return a != NULL ? return_artifact(out, a, map_file(a, fd, err)) : FT_ENOMEM;
}

ft_status ft_artifact_open_fd(ft_artifact **out, const char *label, int fd, ft_verify verify,
                              ft_error *err)
{
    ft_artifact *a;
    *out = NULL;
    FT_TRY(map_fd(&a, label, fd, err));
    return return_artifact(out, a, read_artifact(a, verify, err));
}

static ft_status map_path(ft_artifact **out, const char *path, ft_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a FIFO */
    if (fd < 0)
        return ft_fail_errno(err, "%s", path);
    ft_status rc = map_fd(out, path, fd, err);
    close(fd);
    return rc;
}

ft_status ft_artifact_map(ft_artifact **out, const char *path, ft_error *err)
{
    *out = NULL;
    ft_status rc = map_path(out, path, err);
    return rc == FT_OK ? FT_OK : ft_explain_wrong_file(path, FT_EXPECTED_ARTIFACT, rc, err);
}

ft_status ft_artifact_read(ft_artifact *a, ft_verify verify, ft_error *err)
{
    ft_status rc = read_artifact(a, verify, err);
    return rc == FT_OK ? FT_OK : ft_explain_wrong_file(a->label, FT_EXPECTED_ARTIFACT, rc, err);
}

ft_status ft_artifact_open(ft_artifact **out, const char *path, ft_verify verify, ft_error *err)
{
    ft_artifact *a;
    *out = NULL;
    FT_TRY(ft_artifact_map(&a, path, err));
    return return_artifact(out, a, ft_artifact_read(a, verify, err));
}

ft_status ft_artifact_open_memory(ft_artifact **out, const char *label, const void *data,
                                  size_t bytes, ft_verify verify, ft_error *err)
{
    *out = NULL;
    if ((uintptr_t) data % FT_ZIP_ALIGN != 0)
        return ft_fail(err, FT_EARG, "%s: memory is not aligned to %d bytes", label, FT_ZIP_ALIGN);
    ft_artifact *a = new_artifact(label, err);
    if (a == NULL)
        return FT_ENOMEM;
    a->map = data;
    a->bytes = bytes;
    return return_artifact(out, a, read_artifact(a, verify, err));
}

void ft_artifact_close(ft_artifact *a)
{
    if (a == NULL)
        return;
    ft_amax_table_free(a->amax);
    ft_manifest_fini(&a->manifest);
    ft_zip_directory_fini(&a->dir);
    free(a->digest);
    free(a->by_name);
    if (a->mapped)
        munmap((void *) (uintptr_t) a->map, a->bytes);
    free(a->label);
    free(a);
}
