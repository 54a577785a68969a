/*
 * provenance.c - where an artifact comes from: the object "provenance" of its manifest.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/provenance.h"

#include "runtime/base/sha256.h"
#include "runtime/ft.h"

#include <string.h>

json_t *ft_provenance_name(const char *path)
{
    if (path == NULL)
        return NULL;
    const char *slash = strrchr(path, '/');
    json_t *name = json_string(slash != NULL ? slash + 1 : path);
    return name != NULL ? name : json_string("?");
}

json_t *ft_provenance_tool(const char *tool)
{
    return json_pack("{ss, ss}", "tool", tool, "version", ft_version());
}

json_t *ft_provenance_file(const char *name, uint64_t bytes, const uint8_t *digest)
{
    static const uint8_t unknown[FT_SHA256_BYTES];
    char hex[FT_SHA256_HEX_SIZE];
    json_t *text = json_string(name);
    return json_pack("{so, sI, ss}", "name", text != NULL ? text : json_string("?"), "bytes",
                     (json_int_t) bytes, "sha256",
                     ft_sha256_to_hex(hex, digest != NULL ? digest : unknown));
}
