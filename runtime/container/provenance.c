/*
 * provenance.c - where an artifact comes from: the object "provenance" of its manifest.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/provenance.h"

#include "runtime/base/file_name.h"
#include "runtime/base/sha256.h"
#include "runtime/ft.h"

#include <stdbool.h>

/* Such text is UTF-8, so that only memory can be missing. */
static bool is_ascii(const char *text)
{
    while (*text != '\0' && (unsigned char) *text < 0x80)
        text++;
    return *text == '\0';
}

static json_t *utf8_or_mark(const char *text)
{
    json_t *json = json_string(text);
    return json != NULL || is_ascii(text) ? json : json_string("?");
}

json_t *ft_provenance_name(const char *path)
{
    return path != NULL ? utf8_or_mark(ft_file_name(path)) : NULL;
}

json_t *ft_provenance_tool(const char *tool)
{
    return json_pack("{ss, ss}", "tool", tool, "version", ft_version());
}

json_t *ft_provenance_file(const char *name, uint64_t bytes, const uint8_t *digest)
{
    static const uint8_t unknown[FT_SHA256_BYTES];
    char hex[FT_SHA256_HEX_SIZE];
    return json_pack("{so, sI, ss}", "name", utf8_or_mark(name), "bytes", (json_int_t) bytes,
                     "sha256", ft_sha256_to_hex(hex, digest != NULL ? digest : unknown));
}
