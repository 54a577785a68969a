/*
 * generation.h - with which tokens the texts of an encoder-decoder begin and end.
 *
 * A decoder continues what it is given; one that translates begins with nothing, so its checkpoint
 * must say the token that stands there.  The rest of what a generation configuration can say (how
 * many beams, how long) is the caller's choice at each run, and its defaults are not the model's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONFIG_GENERATION_H
#define FT_CONVERT_CONFIG_GENERATION_H

#include "convert/config/hf_config.h"

/* A file of the checkpoint, for messages by its name. */
typedef struct ft_named_text {
    const char *name;
    const char *text;
    size_t bytes;
} ft_named_text;

/*
 * Settle start_id, pad_id, first_id, last_id and banned of an encoder-decoder whose config.json has
 * been read.  As in transformers, generation_config.json says all of that where it is there
 * (`generation` not NULL), and config.json otherwise.  A start or a padding that it does not name
 * is config.json's.  What may change the result and has no counterpart here is refused by its key
 * unless that is among `ignored`.  Every problem is noted.
 */
void ft_generation_read(ft_origin *origin, const ft_named_text *config,
                        const ft_named_text *generation, const char *const *ignored,
                        ft_messages *problems);

#endif
