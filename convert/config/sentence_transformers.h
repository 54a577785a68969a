/*
 * sentence_transformers.h - read the modules that sentence-transformers applies to the encoder's
 * last hidden state.
 *
 * modules.json lists them: a Transformer, a Pooling, and optionally a Normalize. Mean pooling and
 * CLS (first token) pooling are supported; any other module or mode is rejected by name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONFIG_SENTENCE_TRANSFORMERS_H
#define FT_CONVERT_CONFIG_SENTENCE_TRANSFORMERS_H

#include "convert/checkpoint/checkpoint.h"
#include "runtime/base/messages.h"
#include "runtime/families/family.h"

typedef struct ft_modules {
    char pooling[128]; /* the folder with the Pooling's config.json */
    bool normalize;
} ft_modules;

/* Parse the text of modules.json. out->pooling is empty when there are problems. */
void ft_modules_parse(ft_modules *out, const void *text, size_t bytes, ft_messages *problems);

/*
 * Parse the text of the Pooling's config.json; `label` names it. Sets config->embedding, and checks
 * the dimension against config->hidden.
 */
void ft_pooling_parse(ft_config *config, const void *text, size_t bytes, const char *label,
                      ft_messages *problems);

/*
 * Read both from the checkpoint's folder and set embedding, normalize and max_seq_length; without
 * modules.json this does nothing. Text preprocessing of sentence-transformers is not part of an
 * artifact: `notes` mentions it.
 */
void ft_sentence_transformers_read(ft_config *config, ft_checkpoint *checkpoint, ft_messages *notes,
                                   ft_messages *problems);

#endif
