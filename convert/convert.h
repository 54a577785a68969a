/*
 * convert.h - convert a Hugging Face checkpoint to a float artifact.
 *
 * Opening a conversion finds every weight of the family's table in the checkpoint and checks
 * everything that can be checked without reading weights. After that, only bad values or a failing
 * disk can make the conversion fail.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONVERT_H
#define FT_CONVERT_CONVERT_H

#include "convert/config/hf_config.h"
#include "convert/config/sentence_transformers.h"
#include "convert/dtype_convert.h"
#include "convert/rotation.h"
#include "runtime/container/artifact.h"

typedef struct ft_convert_options {
    bool cast;                       /* cast matrices to `dtype`; else keep them, F64 as F32 */
    ft_dtype dtype;                  /* F32, F16 or BF16 */
    const char *const *ignored_keys; /* of config.json; NULL-terminated, or NULL */
    bool no_tokenizer;               /* leave the tokenizer out: the artifact takes token ids */
    bool rotate;                     /* rotate the weights, see convert/rotate_weights.h */
} ft_convert_options;

/* How a weight is rotated: all zero where it is not. */
typedef struct ft_weight_rotation {
    const ft_rotation *rows, *cols;      /* mix blocks of rows, of columns; or NULL */
    const struct ft_mapped_weight *norm; /* whose elements multiply the columns first; or NULL */
    bool is_folded;                      /* the weight of a norm, which becomes 1 */
} ft_weight_rotation;

/* One weight: where it is in the checkpoint and how it is stored in the artifact. */
enum { FT_SOURCE_NAME_SIZE = 160 };
typedef struct ft_mapped_weight {
    ft_weight_spec spec;              /* name, role and shape in the artifact */
    char source[FT_SOURCE_NAME_SIZE]; /* name in the checkpoint */
    const ft_checkpoint *checkpoint;  /* that has the tensor */
    const ft_tensor *tensor;          /* in the mapped checkpoint */
    ft_dtype dtype;                   /* to store */
    size_t bytes;                     /* to store */
    ft_weight_rotation rotation;
} ft_mapped_weight;

/* A file of the checkpoint, or one that is made from its files, in the artifact. */
typedef struct ft_copied_file {
    const char *name;
    char *text;
    size_t bytes;
} ft_copied_file;

enum { FT_MAX_COPIED_FILES = 16 }; /* at most */

typedef struct ft_conversion {
    ft_convert_options options; /* its keys are borrowed */
    ft_checkpoint *checkpoint;
    ft_sentence_files sentence;
    ft_checkpoint *dense[FT_MAX_DENSE]; /* of the Dense layers, in the folders below; or NULL */
    ft_hf_model hf;                     /* config complete */
    ft_mapped_weight *weight;
    size_t n_weights;
    size_t bytes; /* of all weights, to store */
    ft_rotation residual, heads; /* of the residual stream, of values; or zeros */
    ft_copied_file file[FT_MAX_COPIED_FILES];
    size_t n_files;
    const char **unused; /* names of tensors that are not weights of the model */
    size_t n_unused;
    ft_messages notes; /* warnings: the conversion succeeds, but the user should know */
} ft_conversion;

/*
 * Open a checkpoint: a folder, an index or a file (see convert/checkpoint/checkpoint.h), or several
 * files. On failure *out is NULL, `problems` lists every problem that was found, and the code of
 * the first one is returned.
 */
FT_MUST_USE ft_status ft_conversion_open(ft_conversion **out, const char *const *paths,
                                         size_t count, const ft_convert_options *options,
                                         ft_messages *problems);
void ft_conversion_close(ft_conversion *conversion); /* accepts NULL */

/* Read and cast all values as for writing, but write nothing. */
FT_MUST_USE ft_status ft_conversion_check(const ft_conversion *conversion,
                                          ft_progress_callback progress, void *user, ft_error *err);

/*
 * Write the artifact to its temporary file; ft_artifact_commit() then renames it. The caller keeps
 * ownership of the writer.
 */
FT_MUST_USE ft_status ft_conversion_write(const ft_conversion *conversion,
                                          ft_artifact_writer *writer, ft_error *err);

#endif
