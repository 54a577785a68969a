/*
 * dtype_convert.h - the values of one tensor on their way from the mapped checkpoint into an artifact.
 *
 * A feed holds no values: it reads a block, checks it, writes it as the wanted dtype, and lets the
 * pages that it has read leave the process.  So memory does not grow with the model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_DTYPE_CONVERT_H
#define FT_CONVERT_DTYPE_CONVERT_H

#include "convert/checkpoint/checkpoint.h"

typedef struct ft_feed {
    const ft_checkpoint *checkpoint;
    const char *source;      /* name in the checkpoint */
    const char *name;        /* and in the artifact */
    const ft_tensor *tensor; /* F64, F32, F16 or BF16 */
    ft_dtype dtype;          /* wanted: F32, F16 or BF16 */
    size_t done;             /* elements */
} ft_feed;

/* Whether values of this dtype can be read: F64, F32, F16 and BF16. */
bool ft_feed_takes(ft_dtype dtype);

/*
 * An ft_produce (runtime/container/artifact.h) whose user is an ft_feed.  Rounds half to even; F64 becomes
 * F32 first.  `buffer` is aligned for its elements, and `bytes` are whole elements.
 *
 * FT_EFORMAT: infinity or NaN.  FT_ELIMIT: a finite value that is infinite in the wanted dtype.
 * Both name the tensor and the index.
 */
ft_status ft_feed_produce(void *feed, void *buffer, size_t bytes, size_t *produced, ft_error *err);

#endif
