/*
 * refuse.h - checkpoints that are known, and cannot be converted: by their names, and what to do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONFIG_REFUSE_H
#define FT_CONVERT_CONFIG_REFUSE_H

#include "convert/checkpoint/checkpoint.h"
#include "convert/checkpoint/messages.h"

#include <jansson.h>

/*
 * Weights that config.json says to be quantized, by its "quantization_config", which may be NULL;
 * `label` names the file.  FT_EUNSUPPORTED, and a problem, unless it is empty.
 */
ft_status ft_refuse_quantized(const json_t *config, const char *label, ft_messages *problems);

/*
 * Before any weights are opened, since those of other programs may have types that no reader knows:
 * what the files beside `path`, or in it, say.  Files that cannot be read are left to their readers.
 */
ft_status ft_refuse_folder(const char *path, ft_messages *problems);

/* What the names of tensors say: quantized weights, adapters. */
ft_status ft_refuse_tensors(const ft_checkpoint *checkpoint, ft_messages *problems);

#endif
