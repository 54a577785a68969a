/*
 * artifact_copy.h - add all entries of an artifact to a writer.
 *
 * What a manifest says of a finished model, such as its accuracy, is known only after the model has
 * been written: the artifact is then written again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_ARTIFACT_COPY_H
#define FT_RUNTIME_CONTAINER_ARTIFACT_COPY_H

#include "runtime/container/artifact.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

typedef struct ft_artifact_copy ft_artifact_copy;

/*
 * Adds the tensors and files of `from` to a writer, in the same order. The artifact and *out must
 * stay until the writer has written. FT_ENOMEM, and the errors of ft_artifact_add(); *out is NULL
 * then.
 */
FT_MUST_USE ft_status ft_artifact_copy_new(ft_artifact_copy **out, ft_artifact_writer *writer,
                                           const ft_artifact *from, ft_error *err);
void ft_artifact_copy_free(ft_artifact_copy *copy); /* accepts NULL */

#pragma GCC visibility pop

#endif
