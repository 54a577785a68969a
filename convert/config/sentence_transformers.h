/*
 * sentence_transformers.h - what sentence-transformers computes from the encoder's last hidden state.
 *
 * Its folders say so in modules.json: a Transformer, a Pooling, and perhaps a Normalize.  Pooling
 * by the mean or by the first token is done here; any other module or mode is refused by name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONFIG_SENTENCE_TRANSFORMERS_H
#define FT_CONVERT_CONFIG_SENTENCE_TRANSFORMERS_H

#include "convert/checkpoint/checkpoint.h"
#include "convert/checkpoint/messages.h"
#include "runtime/families/family.h"

typedef struct ft_modules {
    char pooling[128]; /* the folder with the Pooling's config.json */
    bool normalize;
} ft_modules;

/* The text of modules.json.  out->pooling is empty where problems leave none. */
void ft_modules_parse(ft_modules *out, const void *text, size_t bytes, ft_messages *problems);

/*
 * The text of the Pooling's config.json; `label` names it.  Sets config->embedding, and checks the
 * width against config->hidden.
 */
void ft_pooling_parse(ft_config *config, const void *text, size_t bytes, const char *label,
                      ft_messages *problems);

/*
 * Read both from the checkpoint's folder and set embedding, normalize and max_seq_length; without
 * modules.json there is nothing to set.  What sentence-transformers does to texts before they are
 * tokens is not part of an artifact: notes tell of it.
 */
void ft_sentence_read(ft_config *config, ft_checkpoint *checkpoint, ft_messages *notes,
                      ft_messages *problems);

#endif
