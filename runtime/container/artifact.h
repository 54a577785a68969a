/*
 * artifact.h - the .ft file: one format for float, groupwise and int8 models, with weights used in
 * place.
 *
 * An artifact is a zip archive of stored, aligned entries; ft-artifact(5) describes them. Writing
 * streams: the caller announces the entries, then ft_artifact_finish() requests their bytes one
 * after the other and renames the complete, verified file to its final name. Reading maps the file:
 * opening reads headers, the manifest and the scales, but not the weights.
 *
 * The mapping is shared with the file. Replacing an artifact by another one is safe while it is
 * open. Truncating the file in place is not: accessing the lost pages terminates the program
 * (SIGBUS).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_ARTIFACT_H
#define FT_RUNTIME_CONTAINER_ARTIFACT_H

#include "kernels/groupwise.h"
#include "runtime/container/amax.h"
#include "runtime/base/json_reader.h"
#include "runtime/base/sha256.h"

#include <jansson.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

enum {
    FT_ARTIFACT_VERSION = 1,
    FT_ARTIFACT_NAME_MAX = 253,                       /* bytes of a tensor's name */
    FT_ARTIFACT_IDENTIFIER_MAX = 31,                  /* bytes of a role, a family, a tool's name */
    FT_ARTIFACT_MANIFEST_MAX_BYTES = 64 * 1024 * 1024 /* bytes */
};

typedef enum ft_artifact_state {
    FT_ARTIFACT_FLOAT,
    FT_ARTIFACT_GROUPWISE, /* weight-only: some matrices are groupwise U4 or U8, none is I8 */
    FT_ARTIFACT_INT8,      /* some matrices are I8 */
} ft_artifact_state;

/* "float", "blocks", "int8". */
const char *ft_artifact_state_name(ft_artifact_state state);

/* Metadata of an artifact: an input of the writer and an output of the reader. */
typedef struct ft_artifact_header {
    ft_artifact_state state;
    const char *family; /* "bert" */
    const char *tool;   /* that wrote it: "ft-convert" */
    json_t *config;     /* an object of the family's making */
    json_t *recipe;     /* how it was quantized, an object; NULL in state float */
    json_t *required;   /* features that older readers lack, an array of ft_features; NULL: none */
    json_t *provenance; /* where it comes from, an object (provenance.h); NULL: unknown */
} ft_artifact_header;

typedef struct ft_artifact_tensor {
    const char *name; /* visible ASCII characters; its entries are w/, s/ and z/NAME */
    const char *role; /* "linear", "table", "vector": interpreted by the family */
    ft_dtype dtype;
    ft_layout layout; /* other than FT_ROW only for quantized matrices; may pad */
    int ndim;
    int64_t dim[FT_MAX_DIMS];
    const float *scale; /* I8: [dim[0]], one per output channel; else NULL */

    /*
     * Group-wise parameters, for FT_PANEL32: always for U4, optional for U8. The reader sets the
     * pointers.
     */
    ft_groupwise groupwise;
    bool has_zero_points; /* each group has its own zero point */

    /* Set by the reader. */
    const void *data; /* into the mapping */
    size_t bytes;     /* of the stored data */
    size_t offset;    /* in the file */
    uint8_t sha256[FT_SHA256_BYTES];
} ft_artifact_tensor;

/* Every other entry except the manifest: config.json, amax.tsv, s/NAME, ... */
typedef struct ft_artifact_entry {
    const char *name;
    const void *data; /* into the mapping */
    size_t bytes;
    uint8_t sha256[FT_SHA256_BYTES];
} ft_artifact_entry;

/*
 * Size of a tensor as stored: shape x dtype, with the padding of the layout. FT_EFORMAT for a
 * layout that the dtype or shape does not allow or a dimension below 1, FT_ELIMIT on overflow;
 * messages start with `label` and the tensor's name.
 */
ft_status ft_artifact_tensor_bytes(const char *label, const ft_artifact_tensor *tensor,
                                   size_t *bytes, ft_error *err);

/* ---- Writing ------------------------------------------------------------------------------ */

typedef struct ft_artifact_writer ft_artifact_writer;

/*
 * Fill buffer[0..bytes), which is 64-byte aligned, with the next bytes of an entry: at least one
 * byte, *produced in total. Called sequentially until the entry is complete.
 */
typedef ft_status (*ft_read_callback)(void *user, void *buffer, size_t bytes, size_t *produced,
                                      ft_error *err);

typedef void (*ft_progress_callback)(void *user, uint64_t done, uint64_t total);

/*
 * Create an artifact as a temporary file in the folder of `path` (see runtime/base/atomic_file.h).
 * All errors of the path are reported here: an existing file (unless `force`), a folder, missing
 * permissions.
 */
ft_status ft_artifact_create(ft_artifact_writer **out, const char *path, bool force, ft_error *err);

/*
 * Announce entries; they are written in this order. `user`, `data` and `scale` are borrowed until
 * ft_artifact_finish() returns, everything else is copied. A scale is read after the callback of
 * its tensor has delivered all bytes, so that callback may fill it in.
 *
 *   add         a plain file, whose `bytes` come from a callback
 *   add_memory  a plain file from memory
 *   add_tensor  w/NAME, and s/NAME if it has a scale; the callback delivers the stored bytes.
 *               For a groupwise tensor it continues with s/NAME, and z/NAME if it has zero points
 *
 * FT_EARG for a duplicate, reserved or invalid name.
 */
ft_status ft_artifact_add(ft_artifact_writer *writer, const char *entry, size_t bytes,
                          ft_read_callback read_bytes, void *user, ft_error *err);
ft_status ft_artifact_add_memory(ft_artifact_writer *writer, const char *entry, const void *data,
                                 size_t bytes, ft_error *err);
ft_status ft_artifact_add_tensor(ft_artifact_writer *writer, const ft_artifact_tensor *tensor,
                                 ft_read_callback read_bytes, void *user, ft_error *err);

/* Size that the file will have, without the zip directory. */
uint64_t ft_artifact_planned_bytes(const ft_artifact_writer *writer);

/* Call `progress` periodically while the file is written, and once at its end. */
void ft_artifact_set_progress(ft_artifact_writer *writer, ft_progress_callback progress,
                              void *user);

/*
 * Call `hook` when all entries but the manifest are written. It may change strings in the header's
 * provenance to others of the same length.
 */
typedef ft_status (*ft_manifest_hook)(void *user, ft_error *err);
void ft_artifact_set_manifest_hook(ft_artifact_writer *writer, ft_manifest_hook hook, void *user);

/*
 * Call the callbacks, write the manifest, verify the file by opening it, and rename it to its final
 * name. The error text of a failing callback is passed on in `err`. On failure the target path is
 * unchanged.
 */
ft_status ft_artifact_finish(ft_artifact_writer *writer, const ft_artifact_header *header,
                             ft_error *err);

/*
 * The same in two steps, for callers that inspect the artifact before it is renamed: between the
 * steps it is complete and verified under the path that ft_artifact_temp_path() returns. The caller
 * frees that path; NULL when out of memory.
 */
ft_status ft_artifact_write(ft_artifact_writer *writer, const ft_artifact_header *header,
                            ft_error *err);
char *ft_artifact_temp_path(const ft_artifact_writer *writer);
ft_status ft_artifact_commit(ft_artifact_writer *writer, ft_error *err);

/* Free the writer; unless finished, also delete the temporary file. Accepts NULL. */
void ft_artifact_discard(ft_artifact_writer *writer);

/* ---- Reading ------------------------------------------------------------------------------ */

typedef struct ft_artifact ft_artifact;

/*
 * Map an artifact and verify it: the whole structure always; CRC-32 of everything that this reads
 * (manifest, scales, amax.tsv); with FT_VERIFY_CRC that of every entry; with FT_VERIFY_SHA256 also
 * the SHA-256 of every tensor and file. FT_EFORMAT names the entry, what was found and what was
 * expected; FT_EUNSUPPORTED for another format version.
 *
 * Thread-safe for concurrent reading; everything it returns is valid until it is closed.
 */
ft_status ft_artifact_open(ft_artifact **out, const char *path, ft_verify verify, ft_error *err);

/* The two steps of that; after a failed read, nothing but ft_artifact_close() is allowed. */
ft_status ft_artifact_map(ft_artifact **out, const char *path, ft_error *err);
ft_status ft_artifact_read(ft_artifact *artifact, ft_verify verify, ft_error *err);

/* The mapped file, of ft_artifact_bytes() bytes. */
const void *ft_artifact_data(const ft_artifact *artifact);

/*
 * The same for data[0..bytes), borrowed and 64-byte aligned; `label` replaces the path in messages.
 */
ft_status ft_artifact_open_memory(ft_artifact **out, const char *label, const void *data,
                                  size_t bytes, ft_verify verify, ft_error *err);
void ft_artifact_close(ft_artifact *artifact); /* accepts NULL */

const ft_artifact_header *ft_artifact_get_header(const ft_artifact *artifact);

/* manifest.json as parsed, and the size of the file. */
const json_t *ft_artifact_manifest(const ft_artifact *artifact);
size_t ft_artifact_bytes(const ft_artifact *artifact);

/* Tensors in file order; find returns NULL for an unknown name. */
size_t ft_artifact_count(const ft_artifact *artifact);
const ft_artifact_tensor *ft_artifact_at(const ft_artifact *artifact, size_t index);
const ft_artifact_tensor *ft_artifact_find(const ft_artifact *artifact, const char *name);

/* Files in file order. ft_artifact_file() is for required files. */
size_t ft_artifact_file_count(const ft_artifact *artifact);
const ft_artifact_entry *ft_artifact_file_at(const ft_artifact *artifact, size_t index);
const ft_artifact_entry *ft_artifact_find_file(const ft_artifact *artifact, const char *name);

/*
 * ft_json_load() of a file that must be a JSON object; in->json is NULL, too, if the artifact has
 * no such file.
 */
ft_status ft_artifact_load_json(const ft_artifact *artifact, const char *name, ft_json_reader *in);
ft_status ft_artifact_file(const ft_artifact *artifact, const char *name, const void **data,
                           size_t *bytes, ft_error *err);

/* amax.tsv; NULL where no range was calibrated. */
const ft_amax_table *ft_artifact_amax(const ft_artifact *artifact);

/*
 * Called for each entry; `problem` is NULL when it is intact. Returning false stops the
 * verification.
 */
typedef bool (*ft_verify_callback)(void *user, const char *entry, size_t bytes,
                                   const char *problem);

/*
 * Verify every entry to the given level, after opening. Without a callback (NULL) it stops at the
 * first problem; with one all problems are reported, and the first one is the error.
 */
ft_status ft_artifact_verify(const ft_artifact *artifact, ft_verify level,
                             ft_verify_callback report, void *user, ft_error *err);

#pragma GCC visibility pop

#endif
