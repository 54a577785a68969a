/*
 * dtype_convert.h - stream the values of one tensor from the mapped checkpoint into an artifact and
 * convert their dtype.
 *
 * A reader buffers no values: it reads a block, checks it, writes it in the target dtype, and
 * releases the pages that it has read. So memory use does not grow with the model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_DTYPE_CONVERT_H
#define FT_CONVERT_DTYPE_CONVERT_H

#include "convert/checkpoint/checkpoint.h"

typedef struct ft_tensor_reader {
    const ft_checkpoint *checkpoint;
    const char *source;      /* name in the checkpoint */
    const char *name;        /* name in the artifact */
    const ft_tensor *tensor; /* F64, F32, F16 or BF16 */
    ft_dtype dtype;          /* target: F32, F16 or BF16 */
    size_t n_read;           /* elements read so far */
} ft_tensor_reader;

/* Whether values of this dtype can be read: F64, F32, F16 and BF16. */
bool ft_dtype_convert_supports(ft_dtype dtype);

/*
 * An ft_read_callback (runtime/container/artifact.h) whose user data is an ft_tensor_reader. Rounds
 * half to even; F64 is cast to F32 first. `buffer` is aligned for the elements, and `bytes` is a
 * multiple of the element size.
 *
 * FT_EFORMAT: infinity or NaN. FT_ELIMIT: a finite value that overflows the target dtype. Both
 * messages name the tensor and the index.
 */
ft_status ft_tensor_reader_read(void *reader, void *buffer, size_t bytes, size_t *produced,
                                ft_error *err);

/*
 * Round n floats half to even to `dtype` and return the index of the first one that overflows or is
 * not finite, or n.
 */
size_t ft_dtype_convert_floats(void *out, ft_dtype dtype, const float *in, size_t n);

/* FT_ELIMIT: element `index` of the reader's tensor has become `value`, which overflows `dtype`. */
ft_status ft_tensor_reader_fail_overflow(const ft_tensor_reader *reader, ft_dtype dtype,
                                         double value, size_t index, ft_error *err);

#endif
