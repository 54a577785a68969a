/*
 * generation.h - special tokens of an encoder-decoder's generation configuration.
 *
 * A decoder-only model continues its prompt. The decoder of a translation model starts with an
 * empty sequence, so its checkpoint must name the start token. The other generation settings
 * (number of beams, lengths) are options of each run; the checkpoint's defaults for them are not
 * stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONFIG_GENERATION_H
#define FT_CONVERT_CONFIG_GENERATION_H

#include "convert/config/hf_config.h"

/* The text of a file of the checkpoint, with its name for messages. */
typedef struct ft_text_source {
    const char *name;
    const char *text;
    size_t bytes;
} ft_text_source;

/*
 * Set the decoder start token, the padding, forced BOS and forced EOS tokens and the suppressed
 * tokens of an encoder-decoder whose config.json has been read. As in transformers, all of them
 * come from generation_config.json where it exists (`generation` not NULL), and from config.json
 * otherwise. A start or padding token that generation_config.json does not name comes from
 * config.json. A key that may change the result and is not supported here is rejected by name
 * unless it is among `ignored`. Every problem is added to `problems`.
 */
void ft_generation_config_read(ft_hf_model *hf, const ft_text_source *config,
                               const ft_text_source *generation, const char *const *ignored,
                               ft_messages *problems);

#endif
