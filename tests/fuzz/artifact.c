/*
 * artifact.c - fuzz target: any bytes as an artifact, and as a manifest.
 *
 * An altered byte hardly ever gets past the CRC-32 of its entry, so the bytes are tried a second
 * time with checksums that are right.  The parser of manifests also gets the bytes as they are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/family.h"
#include "runtime/manifest.h"
#include "runtime/mem.h"
#include "runtime/stop_ids.h"
#include "runtime/zipdir.h"
#include "tests/lib/forge.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Read everything that an opened artifact promises is there. */
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

/* Read what models are made from: a configuration that passes has weights with elements. */
static void use_model(const ft_artifact *a)
{
    const ft_artifact_head *head = ft_artifact_get_head(a);
    const ft_family *family = ft_family_find(head->family);
    ft_stop_ids ids;
    ft_config config;
    ft_weight_spec *spec;
    size_t count;
    if (ft_stop_ids_read(&ids, a, "fuzz", 100, NULL) == FT_OK && ids.count > FT_MAX_STOP_IDS)
        abort();
    if (family == NULL || ft_config_from_json(&config, head->config, "fuzz", NULL) != FT_OK ||
        config.layers > 20 || ft_family_weights(family, -1, &config, &spec, &count, NULL) != FT_OK)
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

/* Put the right CRC-32 into both headers of every entry; false where there is no directory. */
static bool seal(unsigned char *data, size_t bytes)
{
    ft_zipdir dir;
    if (ft_zipdir_read(&dir, "fuzz", data, bytes, NULL) != FT_OK)
        return false;
    size_t local = 0;
    unsigned char *central =
        data + dir.entry[dir.count - 1].offset + dir.entry[dir.count - 1].bytes;
    for (size_t i = 0; i < dir.count; i++) {
        const ft_zip_entry *e = &dir.entry[i];
        uint32_t crc = forge_crc32(e->data, e->bytes);
        ft_put_le32(data + local + 14, crc);
        ft_put_le32(central + 16, crc);
        local = e->offset + e->bytes;
        central += 46 + ft_le16(central + 28) + ft_le16(central + 30) + ft_le16(central + 32);
    }
    ft_zipdir_fini(&dir);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    void *copy; /* aligned, and not a byte longer, so that a sanitizer sees reads beyond */
    if (posix_memalign(&copy, 64, bytes > 0 ? bytes : 1) != 0)
        return 0;
    memcpy(copy, data, bytes);
    open_it(copy, bytes, FT_VERIFY_CRC);
    if (seal(copy, bytes))
        open_it(copy, bytes, FT_VERIFY_STRUCTURE);
    free(copy);

    ft_manifest manifest;
    if (ft_manifest_parse(&manifest, "fuzz", data, bytes, NULL) == FT_OK)
        ft_manifest_fini(&manifest);
    return 0;
}
