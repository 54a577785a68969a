/*
 * protect_checkpoint.h - refuse an output path that would overwrite a file of the checkpoint.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_PROTECT_CHECKPOINT_H
#define FT_CONVERT_PROTECT_CHECKPOINT_H

#include "runtime/ft.h"

/*
 * FT_EARG when writing `output` would replace a file of the checkpoint that `paths` name, under any
 * name and through any links. The files of the checkpoint are those in its folders and one level
 * below. Artifacts stored there may be replaced.
 */
FT_MUST_USE ft_status ft_checkpoint_check_output(const char *const *paths, size_t count,
                                                 const char *output, ft_error *err);

#endif
