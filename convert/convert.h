/*
 * convert.h - a Hugging Face checkpoint becomes a float artifact.
 *
 * Opening finds every weight of the family's table in the checkpoint and checks everything that can
 * be known without reading weights; after that only their values, or the disk, can stand in the
 * way.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONVERT_H
#define FT_CONVERT_CONVERT_H

#include "convert/config/hf_config.h"
#include "convert/dtype_convert.h"
#include "runtime/container/artifact.h"

typedef struct ft_convert_options {
    bool round;                      /* store matrices as `dtype`; else as they are, F64 as F32 */
    ft_dtype dtype;                  /* F32, F16 or BF16 */
    const char *const *ignored_keys; /* of config.json; NULL-terminated, or NULL */
} ft_convert_options;

/* One weight, where it comes from and what becomes of it. */
enum { FT_SOURCE_NAME = 160 };
typedef struct ft_converted {
    ft_weight_spec spec;         /* our name, role and shape */
    char source[FT_SOURCE_NAME]; /* the checkpoint's name */
    const ft_tensor *tensor;     /* there, in the map */
    ft_dtype dtype;              /* to store */
    size_t bytes;                /* to store */
} ft_converted;

/* A file that is carried along as it is. */
typedef struct ft_carried {
    const char *name;
    char *text;
    size_t bytes;
} ft_carried;

enum { FT_CARRIED = 4 }; /* at most */

typedef struct ft_conversion {
    ft_checkpoint *checkpoint;
    ft_origin origin; /* config complete */
    ft_converted *weight;
    size_t weights;
    size_t bytes; /* of all weights, to store */
    ft_carried file[FT_CARRIED];
    size_t files;
    const char **unused; /* names of tensors that are no weight of the model */
    size_t unuseds;
    ft_messages notes; /* what the user should know although nothing is wrong */
} ft_conversion;

/*
 * Open a checkpoint: a folder, an index or a file (see convert/checkpoint/checkpoint.h), or several files.
 * On failure *out is NULL, `problems` tells what is wrong, as far as it could be looked at, and the
 * first one's code is returned.
 */
FT_MUST_USE ft_status ft_conversion_open(ft_conversion **out, const char *const *paths,
                                         size_t count, const ft_convert_options *options,
                                         ft_messages *problems);
void ft_conversion_close(ft_conversion *conversion); /* takes NULL */

/* Read and round all values as for writing, but write nothing. */
FT_MUST_USE ft_status ft_conversion_check(const ft_conversion *conversion, ft_progress progress,
                                          void *user, ft_error *err);

/* Write the artifact, which ft_artifact_commit() then gives its name.  The writer stays the
 * caller's. */
FT_MUST_USE ft_status ft_conversion_write(const ft_conversion *conversion,
                                          ft_artifact_writer *writer, ft_error *err);

#endif
