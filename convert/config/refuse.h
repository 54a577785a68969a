/*
 * refuse.h - reject known but unsupported checkpoints by name and say what to do instead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONFIG_REFUSE_H
#define FT_CONVERT_CONFIG_REFUSE_H

#include "convert/checkpoint/checkpoint.h"
#include "runtime/base/messages.h"

#include <jansson.h>

/*
 * Reject quantized weights by the "quantization_config" of config.json, which may be NULL; `label`
 * names the file. FT_EUNSUPPORTED, and a problem, unless it is empty.
 */
ft_status ft_reject_quantized(const json_t *config, const char *label, ft_messages *problems);

/*
 * Check the files in the folder of `path` before any weights are opened, because other formats may
 * use dtypes that the reader does not know. Unreadable files are left to their readers.
 */
ft_status ft_reject_folder(const char *path, ft_messages *problems);

/* Reject quantized weights and adapters by the names of their tensors. */
ft_status ft_reject_tensors(const ft_checkpoint *checkpoint, ft_messages *problems);

#endif
