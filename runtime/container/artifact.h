/*
 * artifact.h - the .ft file: one format, three states, weights used where they lie.
 *
 * An artifact is a zip archive of stored, aligned entries; ft-artifact(5) describes them.  It is
 * written by streaming: entries are announced, then ft_artifact_finish() asks for their bytes one
 * after the other and moves the complete, checked file under its name.  It is read by mapping:
 * opening looks at headers, the manifest and the scales, not at the weights.
 *
 * The map is shared with the file.  Replacing an artifact by another one is safe while it is open;
 * shortening the file in place is not: touching the lost pages ends the program (SIGBUS).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_ARTIFACT_H
#define FT_RUNTIME_CONTAINER_ARTIFACT_H

#include "kernels/groupwise.h"
#include "runtime/container/amax.h"
#include "runtime/base/sha256.h"

#include <jansson.h>

enum {
    FT_ARTIFACT_VERSION = 1,
    FT_ARTIFACT_NAME_MAX = 253,                 /* bytes of a tensor's name */
    FT_ARTIFACT_WORD_MAX = 31,                  /* bytes of a role, a family, a tool's name */
    FT_ARTIFACT_MANIFEST_MAX = 64 * 1024 * 1024 /* bytes */
};

typedef enum ft_state {
    FT_STATE_FLOAT,
    FT_STATE_BLOCKS, /* some matrices are codes in blocks, none is I8: computed with in float */
    FT_STATE_INT8,   /* some matrices are I8 */
} ft_state;

/* "float", "blocks", "int8". */
const char *ft_state_name(ft_state state);

/* What an artifact says of itself: given to the writer, given back by the reader. */
typedef struct ft_artifact_head {
    ft_state state;
    const char *family; /* "bert" */
    const char *tool;   /* that wrote it: "ft-convert" */
    json_t *config;     /* an object of the family's making */
    json_t *recipe;     /* how it was quantized, an object; NULL in state float */
} ft_artifact_head;

typedef struct ft_artifact_tensor {
    const char *name; /* of visible ASCII characters; its entries are w/, s/ and z/NAME */
    const char *role; /* "linear", "table", "vector": a word for the family */
    ft_dtype dtype;
    ft_layout layout; /* other than FT_ROW only for matrices of codes, with its padding */
    int ndim;
    int64_t dim[FT_MAX_DIMS];
    const float *scale; /* I8: dim[0] of them, one per output channel; else NULL */

    /* FT_PANEL32, which U4 always is and U8 may be.  The reader sets the pointers of `blocks`. */
    ft_blocks blocks;
    bool zeros; /* groups have zeros of their own */

    /* Set by the reader. */
    const void *data; /* into the map */
    size_t bytes;     /* of the stored data */
    size_t offset;    /* in the file */
    uint8_t sha256[FT_SHA256_BYTES];
} ft_artifact_tensor;

/* Every other entry except the manifest: config.json, amax.tsv, s/NAME, ... */
typedef struct ft_artifact_entry {
    const char *name;
    const void *data; /* into the map */
    size_t bytes;
    uint8_t sha256[FT_SHA256_BYTES];
} ft_artifact_entry;

/*
 * Bytes of a tensor as stored: shape x dtype, with the padding of the layout.
 * FT_EFORMAT for a layout that the dtype or shape cannot have or a dimension below 1, FT_ELIMIT
 * when it does not fit; texts begin with `label` and the tensor's name.
 */
ft_status ft_artifact_tensor_bytes(const char *label, const ft_artifact_tensor *tensor,
                                   size_t *bytes, ft_error *err);

/* ---- Writing ------------------------------------------------------------------------------ */

typedef struct ft_artifact_writer ft_artifact_writer;

/*
 * Fill buffer[0..bytes), which is 64-byte aligned, with the next bytes of an entry: at least one,
 * *produced in all.  Called in the order of the file until the entry is complete.
 */
typedef ft_status (*ft_produce)(void *user, void *buffer, size_t bytes, size_t *produced,
                                ft_error *err);

typedef void (*ft_progress)(void *user, uint64_t done, uint64_t total);

/*
 * Begin an artifact: a temporary file beside `path` (see runtime/base/atomic_file.h).  What can fail for
 * reasons of the path fails here: a file that exists (unless `force`), a folder, no permission.
 */
ft_status ft_artifact_create(ft_artifact_writer **out, const char *path, bool force, ft_error *err);

/*
 * Announce entries; they are written in this order.  `user`, `data` and `scale` are borrowed until
 * ft_artifact_finish() returns, everything else is copied.  A scale is read after its tensor's
 * producer has ended, so that producer may fill it in.
 *
 *   add         a plain file, whose `bytes` come from a producer
 *   add_memory  a plain file, whose bytes are there
 *   add_tensor  w/NAME, and s/NAME where it has a scale; the producer gives the stored bytes.
 *               Of one in blocks it goes on with those of s/NAME, and of z/NAME if there are zeros
 *
 * FT_EARG for a name that is taken, reserved or no name.
 */
ft_status ft_artifact_add(ft_artifact_writer *writer, const char *entry, size_t bytes,
                          ft_produce produce, void *user, ft_error *err);
ft_status ft_artifact_add_memory(ft_artifact_writer *writer, const char *entry, const void *data,
                                 size_t bytes, ft_error *err);
ft_status ft_artifact_add_tensor(ft_artifact_writer *writer, const ft_artifact_tensor *tensor,
                                 ft_produce produce, void *user, ft_error *err);

/* Bytes that the file will have, to within its directory. */
uint64_t ft_artifact_planned_bytes(const ft_artifact_writer *writer);

/* Have `progress` called now and then while the file is written, and once at its end. */
void ft_artifact_set_progress(ft_artifact_writer *writer, ft_progress progress, void *user);

/*
 * Run the producers, write the manifest, check the file by opening it, and move it under its name.
 * A failing producer's own text arrives in `err`.  On failure nothing is left under the name that
 * was not there before.
 */
ft_status ft_artifact_finish(ft_artifact_writer *writer, const ft_artifact_head *head,
                             ft_error *err);

/*
 * The same in two steps, for those who look at the artifact before it gets its name: in between it
 * is complete and checked, in a file of this other name.  free() that; NULL: no memory.
 */
ft_status ft_artifact_write(ft_artifact_writer *writer, const ft_artifact_head *head,
                            ft_error *err);
char *ft_artifact_hidden(const ft_artifact_writer *writer);
ft_status ft_artifact_commit(ft_artifact_writer *writer, ft_error *err);

/* Free the writer; unless finished, also the temporary file.  Takes NULL. */
void ft_artifact_discard(ft_artifact_writer *writer);

/* ---- Reading ------------------------------------------------------------------------------ */

typedef struct ft_artifact ft_artifact;

/*
 * Map an artifact and check it: the whole structure always; CRC-32 of what that reads (manifest,
 * scales, amax.tsv); with FT_VERIFY_CRC that of every entry; with FT_VERIFY_SHA256 also the
 * SHA-256 of every tensor and file.  FT_EFORMAT names the entry, what was found and what was
 * expected; FT_EUNSUPPORTED for a format version that is not ours.
 * May be used by many threads at once; everything it gives lives until it is closed.
 */
ft_status ft_artifact_open(ft_artifact **out, const char *path, ft_verify verify, ft_error *err);

/* The same for data[0..bytes), borrowed and 64-byte aligned; `label` stands for the path. */
ft_status ft_artifact_open_memory(ft_artifact **out, const char *label, const void *data,
                                  size_t bytes, ft_verify verify, ft_error *err);
void ft_artifact_close(ft_artifact *artifact); /* takes NULL */

const ft_artifact_head *ft_artifact_get_head(const ft_artifact *artifact);

/* manifest.json as parsed, and the size of the file. */
const json_t *ft_artifact_manifest(const ft_artifact *artifact);
size_t ft_artifact_bytes(const ft_artifact *artifact);

/* Tensors in the order of the file; find returns NULL for a name that is not there. */
size_t ft_artifact_count(const ft_artifact *artifact);
const ft_artifact_tensor *ft_artifact_at(const ft_artifact *artifact, size_t index);
const ft_artifact_tensor *ft_artifact_find(const ft_artifact *artifact, const char *name);

/* Files in the order of the file.  ft_artifact_file() is for those that must be there. */
size_t ft_artifact_file_count(const ft_artifact *artifact);
const ft_artifact_entry *ft_artifact_file_at(const ft_artifact *artifact, size_t index);
const ft_artifact_entry *ft_artifact_find_file(const ft_artifact *artifact, const char *name);
ft_status ft_artifact_file(const ft_artifact *artifact, const char *name, const void **data,
                           size_t *bytes, ft_error *err);

/* amax.tsv; NULL where no range was calibrated. */
const ft_amax *ft_artifact_amax(const ft_artifact *artifact);

/* Told of each entry; `problem` is NULL where there is none.  False stops the verification. */
typedef bool (*ft_verify_report)(void *user, const char *entry, size_t bytes, const char *problem);

/*
 * Check every entry to the given level, after opening.  Without a report (NULL) the first problem
 * ends it; with one all problems are told, and the first is the error.
 */
ft_status ft_artifact_verify(const ft_artifact *artifact, ft_verify level, ft_verify_report report,
                             void *user, ft_error *err);

#endif
