/*
 * artifact_verify.c - verify the checksums of an artifact.
 *
 * libzip computes CRC-32, libcrypto SHA-256.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/artifact_private.h"

#include "runtime/error.h"

#include <string.h>

ft_status ft_artifact_open_zip(const ft_artifact *a, zip_t **out, ft_error *err)
{
    zip_error_t why;
    zip_error_init(&why);
    zip_source_t *source = zip_source_buffer_create(a->map, a->bytes, 0, &why);
    *out = source != NULL ? zip_open_from_source(source, ZIP_RDONLY, &why) : NULL;
    ft_status rc = FT_OK;
    if (*out == NULL) {
        zip_source_free(source);
        rc = ft_fail(err, FT_EFORMAT, "%s: %s", a->label, zip_error_strerror(&why));
    }
    zip_error_fini(&why);
    return rc;
}

/* libzip compares the CRC-32 when the entry is read to its end. */
static bool read_to_end(zip_file_t *file)
{
    char buffer[16 * 1024];
    zip_int64_t got;
    do
        got = zip_fread(file, buffer, sizeof buffer);
    while (got > 0);
    return got == 0;
}

ft_status ft_artifact_check_crc(const ft_artifact *a, zip_t *zip, const ft_zip_entry *entry,
                                ft_error *err)
{
    zip_uint64_t index = (zip_uint64_t) (entry - a->dir.entry);
    const char *name = zip_get_name(zip, index, ZIP_FL_ENC_RAW);
    if (name == NULL || strcmp(name, entry->name) != 0)
        return ft_fail(err, FT_EFORMAT, "%s: %s: libzip reads a different directory", a->label,
                       entry->name);
    zip_file_t *file = zip_fopen_index(zip, index, 0);
    if (file == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: %s: %s", a->label, entry->name, zip_strerror(zip));
    ft_status rc = FT_OK;
    if (!read_to_end(file))
        rc = ft_fail(err, FT_EFORMAT, "%s: %s: altered: CRC-32 is not %08x", a->label, entry->name,
                     (unsigned) entry->crc);
    zip_fclose(file);
    return rc;
}

static ft_status check_sha256(const ft_artifact *a, const ft_zip_entry *entry,
                              const uint8_t *expected, ft_error *err)
{
    uint8_t found[FT_SHA256_BYTES];
    char text[2][FT_SHA256_HEX_SIZE];
    if (!ft_sha256_digest(entry->data, entry->bytes, found))
        return ft_fail(err, FT_ENOMEM, "%s: %s: cannot compute SHA-256", a->label, entry->name);
    if (memcmp(found, expected, sizeof found) == 0)
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "%s: %s: altered: SHA-256 is %s, expected %s", a->label,
                   entry->name, ft_sha256_to_hex(text[0], found),
                   ft_sha256_to_hex(text[1], expected));
}

static ft_status check_entry(const ft_artifact *a, zip_t *zip, size_t index, ft_verify level,
                             ft_error *err)
{
    const ft_zip_entry *entry = &a->dir.entry[index];
    const uint8_t *digest = a->digest[index];
    if (level >= FT_VERIFY_CRC)
        FT_TRY(ft_artifact_check_crc(a, zip, entry, err));
    if (level >= FT_VERIFY_SHA256 && digest != NULL)
        FT_TRY(check_sha256(a, entry, digest, err));
    return FT_OK;
}

ft_status ft_artifact_verify(const ft_artifact *a, ft_verify level, ft_verify_callback report,
                             void *user, ft_error *err)
{
    zip_t *zip;
    FT_TRY(ft_artifact_open_zip(a, &zip, err));
    ft_status first = FT_OK;
    for (size_t i = 0; i < a->dir.count; i++) {
        const ft_zip_entry *entry = &a->dir.entry[i];
        ft_error why;
        ft_status rc = check_entry(a, zip, i, level, &why);
        if (first == FT_OK && rc != FT_OK)
            first = ft_fail(err, rc, "%s", why.text);
        bool proceed = report != NULL
                           ? report(user, entry->name, entry->bytes, rc == FT_OK ? NULL : why.text)
                           : rc == FT_OK;
        if (!proceed)
            break;
    }
    zip_discard(zip);
    return first;
}
