/*
 * hf_config.h - from config.json to a family and its configuration.
 *
 * Nothing that could change the result is ignored: a key is known to be used, known to be without
 * influence on inference, switched off, or the checkpoint is refused by the name of that key.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONFIG_HF_CONFIG_H
#define FT_CONVERT_CONFIG_HF_CONFIG_H

#include "convert/checkpoint/messages.h"
#include "runtime/families/family.h"

/* What a checkpoint says of itself. */
typedef struct ft_origin {
    const ft_family *family;
    int dialect;              /* index into family->dialect */
    const char *architecture; /* one of the dialect's, or NULL where config.json names none */
    ft_config config;         /* see below */
} ft_origin;

/*
 * Read config.json's text; `label` names it in messages, `ignored` (NULL-terminated, or NULL) names
 * unknown keys that may be ignored.  Every problem is noted, and the first one's code returned.
 *
 * Some members of config are for others to settle: `pooler` is true only where the head needs one,
 * and `head_bias` in all encoder-decoders, for whether there is one is known from the tensors;
 * `embedding` is none, for that is said by sentence-transformers' own files; and what
 * generation_config.json may say otherwise, convert/config/generation.h.
 */
FT_MUST_USE ft_status ft_origin_read(ft_origin *out, const void *text, size_t bytes,
                                     const char *label, const char *const *ignored,
                                     ft_messages *problems);

#endif
