/*
 * protect_checkpoint.h - the files of a checkpoint stay, whether they are read or not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_PROTECT_CHECKPOINT_H
#define FT_CONVERT_PROTECT_CHECKPOINT_H

#include "runtime/ft.h"

/*
 * FT_EARG when a file written at `output` would take the place of a file of the checkpoint that
 * `paths` name, under whatever name and through whatever links: one of the files in its folders and
 * in the folders of these.  Artifacts that lie there are no part of it.
 */
FT_MUST_USE ft_status ft_checkpoint_spare(const char *const *paths, size_t count,
                                          const char *output, ft_error *err);

#endif
