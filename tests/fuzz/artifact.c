/*
 * artifact.c - fuzz target: arbitrary bytes opened as an artifact and parsed as a manifest.
 *
 * A mutated byte rarely passes the CRC-32 of its entry, so the bytes are tried a second time with
 * correct checksums.  An artifact that opens is planned and run.  The manifest parser also gets the
 * unchanged bytes.
 *
 * The mutator changes the manifest and the contents of entries, then reassembles the artifact with
 * correct offsets, sizes and checksums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/family.h"
#include "runtime/container/manifest.h"
#include "runtime/mem.h"
#include "runtime/text/stop_ids.h"
#include "runtime/container/zip_directory.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/model.h"
#include "tests/fuzz/mutate.h"
#include "tests/lib/forge.h"

#include <stdlib.h>
#include <string.h>

/* Reads all data that an opened artifact refers to. */
static void use(const ft_artifact *a)
{
    unsigned sum = 0;
    for (size_t i = 0; i < ft_artifact_count(a); i++) {
        const ft_artifact_tensor *t = ft_artifact_at(a, i);
        const unsigned char *tensor = t->data;
        for (size_t k = 0; k < t->bytes; k++)
            sum += tensor[k];
        for (int64_t k = 0; t->scale != NULL && k < t->dim[0]; k++)
            sum += t->scale[k] > 0.0f;
        if (ft_artifact_find(a, t->name) != t)
            abort();
    }
    for (size_t i = 0; i < ft_artifact_file_count(a); i++) {
        const ft_artifact_entry *file = ft_artifact_file_at(a, i);
        const unsigned char *content = file->data;
        for (size_t k = 0; k < file->bytes; k++)
            sum += content[k];
    }
    volatile unsigned used = sum;
    (void) used;
}

/* Reads the configuration of the model: the weights of a valid one have elements. */
static void use_model(const ft_artifact *a)
{
    const ft_artifact_header *head = ft_artifact_get_header(a);
    const ft_family *family = ft_family_find(head->family);
    ft_stop_ids ids;
    ft_config config;
    ft_weight_spec *spec;
    size_t count;
    if (ft_stop_ids_read(&ids, a, "fuzz", 100, NULL) == FT_OK && ids.count > FT_MAX_STOP_IDS)
        abort();
    if (family == NULL ||
        ft_config_from_json(&config, head->config, family->kind, "fuzz", NULL) != FT_OK ||
        config.layers > 20 ||
        ft_family_weights(family, NULL, &config, &spec, &count, NULL) != FT_OK)
        return;
    for (size_t i = 0; i < count; i++)
        if (spec[i].dim[0] < 1 || (spec[i].ndim == 2 && spec[i].dim[1] < 1))
            abort();
    free(spec);
}

static void open_it(const unsigned char *data, size_t bytes, ft_verify verify)
{
    ft_artifact *a;
    ft_error err;
    if (ft_artifact_open_memory(&a, "fuzz", data, bytes, verify, &err) == FT_OK) {
        use(a);
        use_model(a);
    }
    ft_artifact_close(a);
}

/* Writes the correct CRC-32 to both headers of every entry; false without a valid directory. */
static bool seal(unsigned char *data, size_t bytes)
{
    ft_zip_directory dir;
    if (ft_zip_directory_read(&dir, "fuzz", data, bytes, NULL) != FT_OK)
        return false;
    size_t local = 0;
    unsigned char *central =
        data + dir.entry[dir.count - 1].offset + dir.entry[dir.count - 1].bytes;
    for (size_t i = 0; i < dir.count; i++) {
        const ft_zip_entry *e = &dir.entry[i];
        uint32_t crc = forge_crc32(e->data, e->bytes);
        ft_store_le32(data + local + 14, crc);
        ft_store_le32(central + 16, crc);
        local = e->offset + e->bytes;
        central += 46 + ft_load_le16(central + 28) + ft_load_le16(central + 30) +
                   ft_load_le16(central + 32);
    }
    ft_zip_directory_fini(&dir);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    void *copy; /* aligned and of the exact size, so that a sanitizer detects reads beyond it */
    if (posix_memalign(&copy, 64, bytes > 0 ? bytes : 1) != 0)
        return 0;
    memcpy(copy, data, bytes);
    open_it(copy, bytes, FT_VERIFY_CRC);
    if (seal(copy, bytes)) {
        open_it(copy, bytes, FT_VERIFY_STRUCTURE);
        fuzz_model(copy, bytes);
    }
    free(copy);

    ft_manifest manifest;
    if (ft_manifest_parse(&manifest, "fuzz", data, bytes, NULL) == FT_OK)
        ft_manifest_fini(&manifest);
    return 0;
}

/* ---- Mutation ----------------------------------------------------------------------------- */

enum { LARGEST = 1 << 20 };

/* The number of bytes that the shape of a tensor needs, or 0. */
static size_t wanted_bytes(const json_t *tensor)
{
    static const struct {
        const char *name;
        size_t bytes;
    } dtypes[] = { { "F32", 4 }, { "F16", 2 }, { "BF16", 2 }, { "I8", 1 } };
    const char *dtype = json_string_value(json_object_get(tensor, "dtype"));
    const json_t *dim;
    size_t i, bytes = 0;
    for (i = 0; dtype != NULL && i < FT_COUNT(dtypes); i++)
        bytes = strcmp(dtypes[i].name, dtype) == 0 ? dtypes[i].bytes : bytes;
    json_array_foreach(json_object_get(tensor, "shape"), i, dim)
    {
        json_int_t n = json_integer_value(dim);
        if (n < 0 || n > LARGEST || (bytes *= (size_t) n) > LARGEST)
            return 0;
    }
    return bytes;
}

static void fit(forge *f, const char *name, size_t bytes)
{
    forge_entry *entry = name != NULL ? forge_find(f, name) : NULL;
    if (entry != NULL && bytes > 0)
        forge_resize(entry, bytes, 0x3c);
}

/* Resizes tensors to their current shapes. */
static void fit_tensors(forge *f)
{
    size_t i;
    const json_t *tensor;
    json_array_foreach(json_object_get(f->manifest, "tensors"), i, tensor)
    {
        size_t bytes = wanted_bytes(tensor);
        json_int_t rows = json_integer_value(json_array_get(json_object_get(tensor, "shape"), 0));
        fit(f, json_string_value(json_object_get(tensor, "entry")), bytes);
        if (bytes > 0)
            fit(f, json_string_value(json_object_get(tensor, "scale")), (size_t) rows * 4);
    }
}

static void change_entry(forge *f, uint64_t *state)
{
    enum { ROOM = 256 };
    forge_entry *entry = &f->entry[mutate_below(state, f->count)];
    size_t bytes = entry->bytes;
    forge_resize(entry, bytes + ROOM, 0);
    bytes = mutate_text(entry->data, bytes, bytes + ROOM, state);
    forge_resize(entry, bytes, 0);
}

static void change(forge *f, uint64_t *state)
{
    size_t kind = mutate_below(state, 8);
    if (kind == 0 && f->count > 0)
        forge_drop(f, mutate_below(state, f->count), mutate_below(state, 4) > 0);
    else if (kind < 3 && f->count > 0)
        change_entry(f, state);
    else
        mutate_json(f->manifest, state);
    if (kind != 7)
        fit_tensors(f);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    uint64_t state = seed;
    forge f;
    size_t bytes = 0;
    if (size > 0 && data[0] == '{')
        return mutate_text(data, size, room, &state);
    if (mutate_below(&state, 16) == 0 || !forge_read(&f, data, size))
        return mutate_bytes(data, size, room, &state);
    change(&f, &state);
    unsigned char *changed = json_is_object(f.manifest) ? forge_write(&f, &bytes) : NULL;
    forge_fini(&f);
    if (changed != NULL && bytes <= room)
        memcpy(data, changed, bytes);
    else
        bytes = mutate_bytes(data, size, room, &state);
    free(changed);
    return bytes;
}
