/*
 * hf_config.h - read config.json into a family and its configuration.
 *
 * No key that could change the result is ignored: a key is used, known not to affect inference, or
 * switched off; otherwise the checkpoint is rejected and the message names the key.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONFIG_HF_CONFIG_H
#define FT_CONVERT_CONFIG_HF_CONFIG_H

#include "runtime/base/messages.h"
#include "runtime/families/family.h"

/* The model that config.json describes. */
typedef struct ft_hf_model {
    const ft_family *family; /* the architecture's */
    const ft_architecture *architecture;
    const char *class_name; /* one of the architecture's, or NULL where config.json names none */
    bool is_base_model;     /* that class has no language modeling head */
    ft_config config;       /* see below */
} ft_hf_model;

/*
 * Read the text of config.json. `label` names it in messages; `ignored` (NULL-terminated, or NULL)
 * lists unknown keys that may be ignored. Every problem is added to `problems`, and the code of the
 * first one is returned.
 *
 * Some members of config are set elsewhere. Whether there is a pooler or a head bias depends on the
 * tensors: `pooler` is true here only where the head needs one, and `head_bias` in all
 * encoder-decoders. `embedding` is none here; the sentence-transformers files set it.
 * generation_config.json may override the special tokens, see convert/config/generation.h.
 */
FT_MUST_USE ft_status ft_hf_model_read(ft_hf_model *out, const void *text, size_t bytes,
                                       const char *label, const char *const *ignored,
                                       ft_messages *problems);

#endif
