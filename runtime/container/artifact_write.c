/*
 * artifact_write.c - collect the entries, then write them in one pass.
 *
 * Digests have a fixed width, so the size of the manifest, and with it the offset of every entry,
 * is known before the first byte is written. The manifest is formatted twice: once for its size,
 * and again as the last entry, when the digests are known.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/artifact_private.h"

#include "runtime/base/affix.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/base/atomic_file.h"
#include "runtime/container/zip_writer.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256 * 1024 }; /* bytes requested from a callback at once; fits in a core's cache */

typedef struct {
    char *entry; /* name in the archive */
    size_t bytes, done;
    ft_read_callback read_bytes; /* NULL: read from memory */
    const void *memory;
    void *user;
    bool tensor; /* w/NAME: described by `desc` */
    ft_artifact_tensor desc;
    char role[FT_ARTIFACT_IDENTIFIER_MAX + 1];
    uint8_t sha256[FT_SHA256_BYTES];
} item;

struct ft_artifact_writer {
    ft_atomic_file *output;
    item *item; /* the manifest is the last one, added when writing starts */
    size_t items, capacity;
    size_t planned; /* bytes of data so far */
    ft_manifest manifest;
    char *manifest_text;
    ft_zip_item *plan;
    size_t end; /* end of the last entry */

    ft_sha256 *hash; /* of the item being written */
    unsigned char *block;
    size_t used, filled; /* bytes of the block */

    ft_progress_callback progress;
    void *progress_user;
    ft_manifest_hook hook; /* or NULL */
    void *hook_user;
};

/* ---- Adding entries ------------------------------------------------------------------------- */

ft_status ft_artifact_create(ft_artifact_writer **out, const char *path, bool force, ft_error *err)
{
    *out = NULL;
    ft_artifact_writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", path);
    w->hash = ft_sha256_new();
    w->block = ft_calloc_aligned(BLOCK);
    ft_status rc = FT_OK;
    if (w->hash == NULL || w->block == NULL)
        rc = ft_fail(err, FT_ENOMEM, "%s: no memory", path);
    if (rc == FT_OK)
        rc = ft_atomic_file_open(&w->output, path, force, err);
    if (rc != FT_OK) {
        ft_artifact_discard(w);
        return rc;
    }
    *out = w;
    return FT_OK;
}

static const char *label(const ft_artifact_writer *w)
{
    return ft_atomic_file_path(w->output);
}

static bool entry_exists(const ft_artifact_writer *w, const char *entry)
{
    for (size_t i = 0; i < w->items; i++)
        if (strcmp(w->item[i].entry, entry) == 0)
            return true;
    return false;
}

/* Append an item named prefix + name; *out is valid until the next call. */
static ft_status append(ft_artifact_writer *w, const char *prefix, const char *name, size_t bytes,
                        item **out, ft_error *err)
{
    char entry[FT_ZIP_MAX_NAME + 1];
    int length = snprintf(entry, sizeof entry, "%s%s", prefix, name);
    if (length >= (int) sizeof entry || !ft_zip_name_is_valid(entry, (size_t) length))
        return ft_fail(err, FT_EARG, "%s: \"%s%s\" is not a valid entry name", label(w), prefix,
                       name);
    if (entry_exists(w, entry))
        return ft_fail(err, FT_EARG, "%s: two entries are called %s", label(w), entry);
    if (w->items == w->capacity) {
        item *grown = ft_array_grow(w->item, &w->capacity, 64, sizeof *grown);
        if (grown == NULL)
            return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu entries", label(w), w->items + 1);
        w->item = grown;
    }
    if (!ft_checked_add(w->planned, bytes, &w->planned))
        return ft_fail(err, FT_ELIMIT, "%s: %s: %zu bytes are too many", label(w), entry, bytes);
    char *copy = ft_strdup(entry);
    if (copy == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", label(w));
    *out = &w->item[w->items++];
    **out = (item){ .entry = copy, .bytes = bytes };
    return FT_OK;
}

/* The prefixes of tensors and the name of the manifest are reserved. */
static ft_status append_file(ft_artifact_writer *w, const char *entry, size_t bytes, item **out,
                             ft_error *err)
{
    if (ft_starts_with(entry, FT_WEIGHT_PREFIX) || ft_starts_with(entry, FT_SCALE_PREFIX) ||
        ft_starts_with(entry, FT_ZERO_PREFIX) || strcmp(entry, FT_MANIFEST_ENTRY) == 0)
        return ft_fail(err, FT_EARG, "%s: %s: this name is reserved", label(w), entry);
    return append(w, "", entry, bytes, out, err);
}

ft_status ft_artifact_add(ft_artifact_writer *w, const char *entry, size_t bytes,
                          ft_read_callback read_bytes, void *user, ft_error *err)
{
    item *it;
    FT_TRY(append_file(w, entry, bytes, &it, err));
    it->read_bytes = read_bytes;
    it->user = user;
    return FT_OK;
}

ft_status ft_artifact_add_memory(ft_artifact_writer *w, const char *entry, const void *data,
                                 size_t bytes, ft_error *err)
{
    item *it;
    FT_TRY(append_file(w, entry, bytes, &it, err));
    it->memory = data;
    return FT_OK;
}

/* An entry whose bytes the callback of the preceding tensor delivers next. */
static ft_status add_continuation(ft_artifact_writer *w, const char *prefix,
                                  const ft_artifact_tensor *t, size_t bytes,
                                  ft_read_callback read_bytes, void *user, ft_error *err)
{
    item *it;
    FT_TRY(append(w, prefix, t->name, bytes, &it, err));
    it->read_bytes = read_bytes;
    it->user = user;
    return FT_OK;
}

static ft_status add_groups(ft_artifact_writer *w, const ft_artifact_tensor *t,
                            ft_read_callback read_bytes, void *user, ft_error *err)
{
    size_t count = ft_groupwise_scale_count(&t->groupwise, (size_t) t->dim[0], (size_t) t->dim[1]);
    FT_TRY(add_continuation(w, FT_SCALE_PREFIX, t, count * sizeof *t->groupwise.scale, read_bytes,
                            user, err));
    return t->has_zero_points ? add_continuation(w, FT_ZERO_PREFIX, t, count, read_bytes, user, err)
                              : FT_OK;
}

ft_status ft_artifact_add_tensor(ft_artifact_writer *w, const ft_artifact_tensor *t,
                                 ft_read_callback read_bytes, void *user, ft_error *err)
{
    size_t bytes;
    FT_TRY(ft_artifact_tensor_bytes(label(w), t, &bytes, err));
    if (!ft_identifier_is_valid(t->role))
        return ft_fail(err, FT_EARG, "%s: %s: \"%s\" is not a valid role", label(w), t->name,
                       t->role);
    if ((t->dtype == FT_I8) != (t->scale != NULL))
        return ft_fail(err, FT_EARG, "%s: %s: %s %s scale", label(w), t->name,
                       ft_dtype_name(t->dtype), t->scale != NULL ? "with a" : "without");
    item *it;
    FT_TRY(append(w, FT_WEIGHT_PREFIX, t->name, bytes, &it, err));
    it->read_bytes = read_bytes;
    it->user = user;
    it->tensor = true;
    it->desc = *t;
    it->desc.name = it->entry + strlen(FT_WEIGHT_PREFIX);
    strcpy(it->role, t->role);
    if (t->layout == FT_PANEL32)
        return add_groups(w, t, read_bytes, user, err);
    if (t->scale == NULL)
        return FT_OK;
    FT_TRY(append(w, FT_SCALE_PREFIX, t->name, (size_t) t->dim[0] * sizeof *t->scale, &it, err));
    it->memory = t->scale;
    return FT_OK;
}

uint64_t ft_artifact_planned_bytes(const ft_artifact_writer *w)
{
    return w->planned;
}

void ft_artifact_set_progress(ft_artifact_writer *w, ft_progress_callback progress, void *user)
{
    w->progress = progress;
    w->progress_user = user;
}

void ft_artifact_set_manifest_hook(ft_artifact_writer *w, ft_manifest_hook hook, void *user)
{
    w->hook = hook;
    w->hook_user = user;
}

/* ---- The manifest ------------------------------------------------------------------------- */

static ft_status check_head(const ft_artifact_writer *w, const ft_artifact_header *header,
                            ft_error *err)
{
    if (!ft_identifier_is_valid(header->family) || !ft_identifier_is_valid(header->tool))
        return ft_fail(err, FT_EARG, "%s: \"%s\" or \"%s\" is not a valid family or tool name",
                       label(w), header->family, header->tool);
    bool is_float = header->state == FT_ARTIFACT_FLOAT;
    bool recipe_fits = is_float ? header->recipe == NULL : json_is_object(header->recipe);
    if (header->provenance != NULL && !json_is_object(header->provenance))
        return ft_fail(err, FT_EARG, "%s: provenance is not an object", label(w));
    if (!json_is_object(header->config) || !recipe_fits)
        return ft_fail(err, FT_EARG, "%s: config or recipe does not match state %s", label(w),
                       ft_artifact_state_name(header->state));
    if (ft_artifact_has_static_ranges(header) != entry_exists(w, FT_AMAX_ENTRY))
        return ft_fail(err, FT_EARG, "%s: %s " FT_AMAX_ENTRY, label(w),
                       ft_artifact_has_static_ranges(header) ? "an int8 artifact needs"
                                                             : "an artifact without ranges has no");
    for (size_t i = 0; i < w->items; i++)
        if (w->item[i].tensor && !ft_artifact_state_allows(header->state, &w->item[i].desc))
            return ft_fail(err, FT_EARG, "%s: %s: %s in an artifact of state %s", label(w),
                           w->item[i].desc.name, ft_dtype_name(w->item[i].desc.dtype),
                           ft_artifact_state_name(header->state));
    return FT_OK;
}

/* Copy the known properties of all items into the manifest and format it. */
static ft_status format_manifest(ft_artifact_writer *w, ft_error *err)
{
    ft_manifest *m = &w->manifest;
    m->n_tensors = m->n_files = 0;
    for (size_t i = 0; i + 1 < w->items; i++) {
        const item *it = &w->item[i];
        if (!it->tensor) {
            ft_artifact_entry *f = &m->file[m->n_files++];
            *f = (ft_artifact_entry){ .name = it->entry, .bytes = it->bytes };
            memcpy(f->sha256, it->sha256, sizeof f->sha256);
            continue;
        }
        ft_artifact_tensor *t = &m->tensor[m->n_tensors++];
        *t = it->desc;
        t->role = it->role;
        t->bytes = it->bytes;
        t->offset = w->plan[i].offset;
        memcpy(t->sha256, it->sha256, sizeof t->sha256);
    }
    free(w->manifest_text);
    item *manifest_item = &w->item[w->items - 1];
    FT_TRY(ft_manifest_format(m, &w->manifest_text, &manifest_item->bytes, err));
    manifest_item->memory = w->manifest_text;
    return FT_OK;
}

/* Format the manifest with all digests. */
static ft_status format_last_manifest(ft_artifact_writer *w, ft_error *err)
{
    if (w->hook != NULL)
        FT_TRY(w->hook(w->hook_user, err));
    return format_manifest(w, err);
}

/* ---- Writing ------------------------------------------------------------------------------ */

/* Read the next bytes of an item into the block. */
static ft_status read_bytes(item *it, unsigned char *block, size_t requested, size_t *got,
                            ft_error *err)
{
    if (it->read_bytes != NULL)
        return it->read_bytes(it->user, block, requested, got, err);
    memcpy(block, (const unsigned char *) it->memory + it->done, requested);
    *got = requested;
    return FT_OK;
}

static ft_status refill(ft_artifact_writer *w, size_t index, ft_error *err)
{
    item *it = &w->item[index];
    if (it->done == 0) {
        ft_sha256_init(w->hash);
        if (index + 1 == w->items)
            FT_TRY(format_last_manifest(w, err));
        if (it->bytes != w->plan[index].bytes)
            return ft_fail(err, FT_EFORMAT, "%s: %s: has %zu bytes, expected %zu", label(w),
                           it->entry, it->bytes, w->plan[index].bytes);
    }
    size_t requested = ft_min_size(it->bytes - it->done, BLOCK), got = 0;
    FT_TRY(read_bytes(it, w->block, requested, &got, err));
    if (got == 0 || got > requested)
        return ft_fail(err, FT_EARG, "%s: %s: callback returned %zu of %zu bytes at %zu", label(w),
                       it->entry, got, requested, it->done);
    ft_sha256_update(w->hash, w->block, got);
    w->used = 0;
    w->filled = got;
    it->done += got;
    if (it->done == it->bytes && !ft_sha256_final(w->hash, it->sha256))
        return ft_fail(err, FT_ENOMEM, "%s: %s: cannot compute SHA-256", label(w), it->entry);
    if (w->progress != NULL)
        w->progress(w->progress_user, w->plan[index].offset + it->done, w->end);
    return FT_OK;
}

static ft_status read_for_zip(void *user, size_t index, void *buffer, size_t bytes, size_t *got,
                              ft_error *err)
{
    ft_artifact_writer *w = user;
    if (w->used == w->filled)
        FT_TRY(refill(w, index, err));
    *got = ft_min_size(bytes, w->filled - w->used);
    memcpy(buffer, w->block + w->used, *got);
    w->used += *got;
    return FT_OK;
}

/* Compute the offsets of all entries; the sizes of all but the manifest are known. */
static ft_status plan_entries(ft_artifact_writer *w, const ft_artifact_header *header,
                              ft_error *err)
{
    item *manifest_item;
    FT_TRY(append(w, "", FT_MANIFEST_ENTRY, 0, &manifest_item, err));
    w->plan = ft_calloc(w->items, sizeof *w->plan);
    w->manifest.tensor = ft_calloc(w->items, sizeof *w->manifest.tensor);
    w->manifest.file = ft_calloc(w->items, sizeof *w->manifest.file);
    if (w->plan == NULL || w->manifest.tensor == NULL || w->manifest.file == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu entries", label(w), w->items);
    w->manifest.header = *header;
    for (size_t i = 0; i < w->items; i++) {
        item *it = &w->item[i];
        w->plan[i] = (ft_zip_item){ .name = it->entry, .bytes = it->bytes };
        if (it->bytes == 0 && !ft_sha256_digest("", 0, it->sha256)) /* no data is read for it */
            return ft_fail(err, FT_ENOMEM, "%s: cannot compute SHA-256", label(w));
    }
    bool ok = ft_zip_plan(w->plan, w->items, &w->end);
    if (ok) {
        FT_TRY(format_manifest(w, err));
        w->plan[w->items - 1].bytes = manifest_item->bytes;
        ok = ft_zip_plan(w->plan, w->items, &w->end);
    }
    return ok ? FT_OK : ft_fail(err, FT_ELIMIT, "%s: too large", label(w));
}

ft_status ft_artifact_write(ft_artifact_writer *w, const ft_artifact_header *header, ft_error *err)
{
    int fd = ft_atomic_file_fd(w->output);
    FT_TRY(check_head(w, header, err));
    FT_TRY(plan_entries(w, header, err));
    FT_TRY(ft_atomic_file_reserve(w->output, w->end, err));
    FT_TRY(ft_zip_write(fd, label(w), w->plan, w->items, read_for_zip, w, err));

    /* The reader's checks define the format: reject a file that it would reject. */
    ft_artifact *written;
    FT_TRY(ft_artifact_open_fd(&written, label(w), fd, FT_VERIFY_STRUCTURE, err));
    ft_artifact_close(written);
    return FT_OK;
}

char *ft_artifact_temp_path(const ft_artifact_writer *w)
{
    return ft_atomic_file_temp_path(w->output);
}

ft_status ft_artifact_commit(ft_artifact_writer *w, ft_error *err)
{
    return ft_atomic_file_commit(w->output, err);
}

ft_status ft_artifact_finish(ft_artifact_writer *w, const ft_artifact_header *header, ft_error *err)
{
    FT_TRY(ft_artifact_write(w, header, err));
    return ft_artifact_commit(w, err);
}

void ft_artifact_discard(ft_artifact_writer *w)
{
    if (w == NULL)
        return;
    for (size_t i = 0; i < w->items; i++)
        free(w->item[i].entry);
    free(w->item);
    free(w->plan);
    free(w->manifest_text);
    ft_manifest_fini(&w->manifest);
    ft_sha256_free(w->hash);
    free(w->block);
    ft_atomic_file_close(w->output);
    free(w);
}
