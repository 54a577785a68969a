/*
 * forge.h - parses an artifact, modifies it, and writes it with correct checksums.
 *
 * Checksums do not protect against deliberate changes, because the attacker also updates the CRC-32
 * and the SHA-256: a reader must validate the contents.  Tests and the fuzzer make such files here.
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

/* Parses data[0..bytes); false, and an empty forge, if it is no archive with a manifest. */
bool forge_read(forge *out, const void *data, size_t bytes);
void forge_fini(forge *f); /* accepts an empty one */

/*
 * The modified artifact: the manifest has the offset, size and SHA-256 of every entry that it
 * names, the archive their CRC-32.  64-byte aligned, exactly *bytes, for free(); NULL: out of
 * memory.
 */
unsigned char *forge_write(const forge *f, size_t *bytes);

/* The same, but the manifest keeps its offsets, sizes and digests. */
unsigned char *forge_write_as_is(const forge *f, size_t *bytes);

/* The checksum of zip archives. */
uint32_t forge_crc32(const unsigned char *data, size_t bytes);

/* NULL where there is no such entry. */
forge_entry *forge_find(const forge *f, const char *name);

/* Replace or append an entry.  The manifest lists a new one under "files" if `listed`. */
void forge_put(forge *f, const char *name, const void *data, size_t bytes, bool listed);

/* Changes the size of an entry; new bytes are `fill`. */
void forge_resize(forge_entry *entry, size_t bytes, unsigned char fill);

/* Removes an entry, and its element in the manifest if `unlisted`. */
void forge_drop(forge *f, size_t index, bool unlisted);

/*
 * Sets a value of the manifest and takes ownership of it: "recipe/activations", "tensors/3/role".
 * NULL removes the key.  False if the path does not exist.
 */
bool forge_set(forge *f, const char *path, json_t *value);

#endif
