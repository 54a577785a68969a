/*
 * forge.h - take an artifact apart, change what it says, and write it with checksums that are
 * right.
 *
 * Whoever alters a file on purpose also writes the CRC-32 and SHA-256 that belong to it, so what a
 * reader believes must not rest on them.  Tests and the fuzzer make such files with this.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_FORGE_H
#define FT_TESTS_LIB_FORGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct forge_entry {
    char *name;
    unsigned char *data;
    size_t bytes;
} forge_entry;

typedef struct forge {
    forge_entry *entry; /* in the order of the file, without the manifest */
    size_t count, room;
    json_t *manifest;
} forge;

/* Take data[0..bytes) apart; false, and an empty forge, where it is no archive with a manifest. */
bool forge_read(forge *out, const void *data, size_t bytes);
void forge_fini(forge *f); /* takes an empty one */

/*
 * The artifact as it is now: the manifest has the place, size and SHA-256 of every entry that it
 * names, the archive their CRC-32.  64-byte aligned, exactly *bytes, for free(); NULL: no memory.
 */
unsigned char *forge_write(const forge *f, size_t *bytes);

/* The same without the manifest's places, sizes and digests: they stay what they are. */
unsigned char *forge_write_as_is(const forge *f, size_t *bytes);

/* The checksum of zip archives. */
uint32_t forge_crc32(const unsigned char *data, size_t bytes);

/* NULL where there is no such entry. */
forge_entry *forge_find(const forge *f, const char *name);

/* Replace or append an entry.  The manifest lists a new one under "files" if `listed`. */
void forge_put(forge *f, const char *name, const void *data, size_t bytes, bool listed);

/* Change the size of an entry; what is new is filled with `fill`. */
void forge_resize(forge_entry *entry, size_t bytes, unsigned char fill);

/* Remove an entry, and what the manifest lists of it if `unlisted`. */
void forge_drop(forge *f, size_t index, bool unlisted);

/*
 * Set a value of the manifest, which is taken over: "recipe/activations", "tensors/3/role".  NULL
 * removes the key.  False where the path leads nowhere.
 */
bool forge_set(forge *f, const char *path, json_t *value);

#endif
