/*
 * forge.c - parses and rebuilds artifacts in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/forge.h"

#include "runtime/container/manifest.h"
#include "runtime/mem.h"
#include "runtime/base/sha256.h"
#include "runtime/container/zip_directory.h"
#include "runtime/container/zip_writer.h"

#include <stdlib.h>
#include <string.h>

/* Sizes of the fixed parts of zip records. */
enum { LOCAL = 30, CENTRAL = 46, END = 22, EXTRA = 4 };

/* ---- Entries ------------------------------------------------------------------------------ */

forge_entry *forge_find(const forge *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->entry[i].name, name) == 0)
            return &f->entry[i];
    return NULL;
}

/* A copy that may be empty but is never NULL. */
static unsigned char *copy(const void *data, size_t bytes)
{
    unsigned char *out = ft_calloc(bytes, 1);
    if (out == NULL)
        abort();
    if (bytes > 0)
        memcpy(out, data, bytes);
    return out;
}

static void append(forge *f, const char *name, const void *data, size_t bytes)
{
    if (f->count == f->room) {
        f->entry = ft_array_grow(f->entry, &f->room, 64, sizeof *f->entry);
        if (f->entry == NULL)
            abort();
    }
    f->entry[f->count++] = (forge_entry){ ft_strdup(name), copy(data, bytes), bytes };
}

void forge_put(forge *f, const char *name, const void *data, size_t bytes, bool listed)
{
    forge_entry *old = forge_find(f, name);
    if (old != NULL) {
        free(old->data);
        old->data = copy(data, bytes);
        old->bytes = bytes;
        return;
    }
    append(f, name, data, bytes);
    if (listed)
        json_array_append_new(json_object_get(f->manifest, "files"),
                              json_pack("{ss, si, ss}", "name", name, "bytes", 0, "sha256", ""));
}

void forge_resize(forge_entry *entry, size_t bytes, unsigned char fill)
{
    unsigned char *data = realloc(entry->data, bytes > 0 ? bytes : 1);
    if (data == NULL)
        abort();
    if (bytes > entry->bytes)
        memset(data + entry->bytes, fill, bytes - entry->bytes);
    entry->data = data;
    entry->bytes = bytes;
}

/* Removes the element whose `key` is `name` from a list of the manifest. */
static void unlist(const forge *f, const char *list, const char *key, const char *name)
{
    json_t *array = json_object_get(f->manifest, list);
    for (size_t i = json_array_size(array); i-- > 0;) {
        const char *found = json_string_value(json_object_get(json_array_get(array, i), key));
        if (found != NULL && strcmp(found, name) == 0)
            json_array_remove(array, i);
    }
}

void forge_drop(forge *f, size_t index, bool unlisted)
{
    forge_entry *entry = &f->entry[index];
    if (unlisted) {
        unlist(f, "files", "name", entry->name);
        unlist(f, "tensors", "entry", entry->name);
    }
    free(entry->name);
    free(entry->data);
    memmove(entry, entry + 1, (f->count - index - 1) * sizeof *entry);
    f->count--;
}

/* ---- Manifest ----------------------------------------------------------------------------- */

/* The value of a key, or the element of an index. */
static json_t *step(json_t *json, const char *key)
{
    return json_is_array(json) ? json_array_get(json, strtoul(key, NULL, 10))
                               : json_object_get(json, key);
}

bool forge_set(forge *f, const char *path, json_t *value)
{
    char name[256];
    json_t *json = f->manifest;
    for (const char *slash; (slash = strchr(path, '/')) != NULL; path = slash + 1) {
        snprintf(name, sizeof name, "%.*s", (int) (slash - path), path);
        json = step(json, name);
    }
    if (value == NULL)
        return json_object_del(json, path) == 0;
    return (json_is_array(json) ? json_array_set_new(json, strtoul(path, NULL, 10), value)
                                : json_object_set_new(json, path, value)) == 0;
}

/* Updates the manifest's fields of the entry that an element names by `key`. */
static void seal(const forge *f, const ft_zip_item *item, json_t *element, const char *key)
{
    uint8_t digest[FT_SHA256_BYTES];
    char text[FT_SHA256_HEX_SIZE];
    const char *name = json_string_value(json_object_get(element, key));
    const forge_entry *entry = name != NULL ? forge_find(f, name) : NULL;
    if (entry == NULL || !ft_sha256_digest(entry->data, entry->bytes, digest))
        return;
    json_object_set_new(element, "bytes", json_integer((json_int_t) entry->bytes));
    json_object_set_new(element, "sha256", json_string(ft_sha256_to_hex(text, digest)));
    if (strcmp(key, "entry") == 0)
        json_object_set_new(element, "offset",
                            json_integer((json_int_t) item[entry - f->entry].offset));
}

static void seal_all(const forge *f, const ft_zip_item *item, json_t *manifest)
{
    size_t i;
    json_t *element;
    json_array_foreach(json_object_get(manifest, "tensors"), i, element)
        seal(f, item, element, "entry");
    json_array_foreach(json_object_get(manifest, "files"), i, element)
        seal(f, item, element, "name");
}

/* ---- Reading ------------------------------------------------------------------------------ */

bool forge_read(forge *out, const void *data, size_t bytes)
{
    ft_zip_directory dir;
    *out = (forge){ 0 };
    if (ft_zip_directory_read(&dir, "forge", data, bytes, NULL) != FT_OK)
        return false;
    for (size_t i = 0; i < dir.count; i++) {
        const ft_zip_entry *e = &dir.entry[i];
        if (strcmp(e->name, FT_MANIFEST_ENTRY) != 0)
            append(out, e->name, e->data, e->bytes);
        else
            out->manifest = json_loadb((const char *) e->data, e->bytes, 0, NULL);
    }
    ft_zip_directory_fini(&dir);
    if (json_is_object(out->manifest))
        return true;
    forge_fini(out);
    return false;
}

void forge_fini(forge *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->entry[i].name);
        free(f->entry[i].data);
    }
    free(f->entry);
    json_decref(f->manifest);
    *f = (forge){ 0 };
}

/* ---- Writing ------------------------------------------------------------------------------ */

uint32_t forge_crc32(const unsigned char *data, size_t bytes)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void put16(unsigned char *at, size_t value)
{
    at[0] = (unsigned char) value;
    at[1] = (unsigned char) (value >> 8);
}

/* The fields that both headers of an entry share, from their version field on. */
static void put_common(unsigned char *at, const forge_entry *entry, uint32_t crc)
{
    put16(at, 10);       /* version 1.0 is needed */
    put16(at + 8, 0x21); /* 1980-01-01 */
    ft_store_le32(at + 10, crc);
    ft_store_le32(at + 14, (uint32_t) entry->bytes);
    ft_store_le32(at + 18, (uint32_t) entry->bytes);
    put16(at + 22, strlen(entry->name));
}

/* An entry at `at` with its data at `offset`, and its central header, whose end is returned. */
static size_t put_entry(unsigned char *file, size_t at, size_t offset, size_t central,
                        const forge_entry *entry)
{
    size_t name = strlen(entry->name), extra = offset - at - LOCAL - name;
    uint32_t crc = forge_crc32(entry->data, entry->bytes);
    ft_store_le32(file + at, 0x04034b50);
    put_common(file + at + 4, entry, crc);
    put16(file + at + 28, extra);
    memcpy(file + at + LOCAL, entry->name, name);
    put16(file + at + LOCAL + name, FT_ZIP_ALIGN_EXTRA_ID);
    put16(file + at + LOCAL + name + 2, extra - EXTRA);
    if (entry->bytes > 0)
        memcpy(file + offset, entry->data, entry->bytes);

    ft_store_le32(file + central, 0x02014b50);
    put16(file + central + 4, 0x031e);
    put_common(file + central + 6, entry, crc);
    ft_store_le32(file + central + 42, (uint32_t) at);
    memcpy(file + central + CENTRAL, entry->name, name);
    return central + CENTRAL + name;
}

static size_t directory_bytes(const forge_entry *entry, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += CENTRAL + strlen(entry[i].name);
    return bytes;
}

/* An archive of entries that have been planned. */
static unsigned char *archive(const forge_entry *entry, const ft_zip_item *item, size_t count,
                              size_t end, size_t *bytes)
{
    void *memory;
    size_t directory = directory_bytes(entry, count), at = 0, central = end;
    *bytes = end + directory + END;
    if (posix_memalign(&memory, FT_ZIP_ALIGN, *bytes) != 0)
        return NULL;
    unsigned char *file = memset(memory, 0, *bytes);
    for (size_t i = 0; i < count; i++) {
        central = put_entry(file, at, item[i].offset, central, &entry[i]);
        at = item[i].offset + item[i].bytes;
    }
    ft_store_le32(file + central, 0x06054b50);
    put16(file + central + 8, count);
    put16(file + central + 10, count);
    ft_store_le32(file + central + 12, (uint32_t) directory);
    ft_store_le32(file + central + 16, (uint32_t) end);
    return file;
}

static unsigned char *write_all(const forge *f, bool sealed, size_t *bytes)
{
    size_t end, count = f->count + 1;
    char name[] = FT_MANIFEST_ENTRY;
    forge_entry *entry = ft_calloc(count, sizeof *entry);
    ft_zip_item *item = ft_calloc(count, sizeof *item);
    json_t *manifest = json_deep_copy(f->manifest);
    unsigned char *file = NULL;
    for (size_t i = 0; i < f->count && entry != NULL && item != NULL; i++) {
        entry[i] = f->entry[i];
        item[i] = (ft_zip_item){ entry[i].name, entry[i].bytes, 0 };
    }
    if (entry != NULL && item != NULL && ft_zip_plan(item, f->count, &end)) {
        if (sealed)
            seal_all(f, item, manifest);
        char *text = json_dumps(manifest, JSON_INDENT(1));
        size_t length = text != NULL ? strlen(text) : 0;
        entry[f->count] = (forge_entry){ name, (unsigned char *) text, length };
        item[f->count] = (ft_zip_item){ name, length, 0 };
        if (text != NULL && ft_zip_plan(item, count, &end))
            file = archive(entry, item, count, end, bytes);
        free(text);
    }
    json_decref(manifest);
    free(entry);
    free(item);
    return file;
}

unsigned char *forge_write(const forge *f, size_t *bytes)
{
    return write_all(f, true, bytes);
}

unsigned char *forge_write_as_is(const forge *f, size_t *bytes)
{
    return write_all(f, false, bytes);
}
