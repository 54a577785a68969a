/*
 * sentence_transformers.h - read the modules that sentence-transformers applies to a model's last
 * hidden state, and how it prepares texts.
 *
 * modules.json lists them: a Transformer, a Pooling, and then any Dense and Normalize. Any other
 * module or setting that changes the embedding is rejected by name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONFIG_SENTENCE_TRANSFORMERS_H
#define FT_CONVERT_CONFIG_SENTENCE_TRANSFORMERS_H

#include "convert/checkpoint/checkpoint.h"
#include "runtime/base/messages.h"
#include "runtime/families/family.h"

enum { FT_MODULE_FOLDER_SIZE = 128 };

typedef struct ft_modules {
    char pooling[FT_MODULE_FOLDER_SIZE];             /* the folder with the Pooling's config.json */
    char dense[FT_MAX_DENSE][FT_MODULE_FOLDER_SIZE]; /* the same of each Dense, in order */
    bool normalize_input[FT_MAX_DENSE];              /* a Normalize stands before that Dense */
    int num_dense;
    bool normalize; /* a Normalize is the last module */
} ft_modules;

/* What a checkpoint has beside the configuration of its model. Zero-initialized: nothing. */
typedef struct ft_sentence_files {
    ft_modules modules;
    bool lowercase;   /* texts are lowercased */
    bool has_prompts; /* FT_PROMPTS_FILE is part of the artifact */
    bool uses_prompt; /* texts get a prompt by default */
} ft_sentence_files;

/* Parse the text of modules.json. out->pooling is empty when there are problems. */
void ft_modules_parse(ft_modules *out, const void *text, size_t bytes, ft_messages *problems);

/*
 * Parse the text of the Pooling's config.json; `label` names it. Sets config->embedding, and checks
 * the dimension against config->hidden.
 */
void ft_pooling_parse(ft_config *config, const void *text, size_t bytes, const char *label,
                      ft_messages *problems);

/*
 * Parse the text of a Dense's config.json, and append the layer to config->dense; its input is the
 * embedding so far.
 */
void ft_dense_parse(ft_config *config, const void *text, size_t bytes, const char *label,
                    ft_messages *problems);

/* How texts are prepared: max_seq_length, do_lower_case and prompts. */
void ft_sentence_text_read(ft_config *config, ft_sentence_files *out,
                           const ft_checkpoint *checkpoint, ft_messages *problems);

/*
 * Read all of it from the checkpoint's folder; without modules.json this does nothing. Sets
 * embedding, normalize, dense and max_seq_length of the configuration.
 */
void ft_sentence_transformers_read(ft_config *config, ft_sentence_files *out,
                                   const ft_checkpoint *checkpoint, ft_messages *problems);

#endif
