/*
 * model_config_text.c - describes a configuration in words, for the tools.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/model_config.h"

static void write_heads(const ft_config *c, FILE *file)
{
    fprintf(file, ", %d heads", c->heads);
    if (c->head_size > 0)
        fprintf(file, " of %d", c->head_size);
    if (c->kv_heads > 0 && c->kv_heads != c->heads)
        fprintf(file, " (%d key/value heads)", c->kv_heads);
}

/* Layers, heads and ffn of an encoder-decoder, for each stack if they differ. */
static void write_stacks(const ft_config *c, FILE *file)
{
    fprintf(file, "%d + %d layers, hidden %d", c->encoder_layers, c->layers, c->hidden);
    if (c->encoder_heads != c->heads)
        fprintf(file, ", %d + %d heads", c->encoder_heads, c->heads);
    else
        fprintf(file, ", %d heads", c->heads);
    if (c->encoder_ffn != c->ffn)
        fprintf(file, ", ffn %d + %d", c->encoder_ffn, c->ffn);
    else
        fprintf(file, ", ffn %d", c->ffn);
}

static void write_id(const char *name, int32_t id, FILE *file)
{
    if (id >= 0)
        fprintf(file, ", %s %d", name, id);
}

static void write_encoder_decoder(const ft_config *c, FILE *file)
{
    fprintf(file, ", sinusoids %s%s", ft_sinusoids_name(c->sinusoids),
            c->scale_embeddings ? ", scaled embeddings" : "");
    write_id("start", c->decoder_start_id, file);
    write_id("pad", c->pad_id, file);
    write_id("forced bos", c->forced_bos_id, file);
    write_id("forced eos", c->forced_eos_id, file);
    for (int i = 0; i < c->num_banned; i++)
        write_id(i == 0 ? "banned" : "and", c->banned[i], file);
}

static void write_rope(const ft_config *c, FILE *file)
{
    fprintf(file, ", rope theta %g", c->rope_theta);
    if (c->rope != FT_ROPE_DEFAULT)
        fprintf(file, ", scaled %s by %g", ft_rope_name(c->rope), c->rope_factor);
    if (ft_rope_uses(c->rope).positions)
        fprintf(file, " beyond %d", c->rope_positions);
}

static void write_window(const ft_config *c, FILE *file)
{
    fprintf(file, ", window of %d", c->window);
    if (c->window_first_layer > 0)
        fprintf(file, " from layer %d on", c->window_first_layer);
}

static void write_embedding(const ft_config *c, FILE *file)
{
    static const char *const poolings[] = {
        [FT_EMBEDDING_FIRST] = "first token",
        [FT_EMBEDDING_MEAN] = "mean",
        [FT_EMBEDDING_LAST] = "last token",
        [FT_EMBEDDING_MAX] = "maximum",
        [FT_EMBEDDING_MEAN_SQRT_LEN] = "sum over the root of the length",
        [FT_EMBEDDING_WEIGHTED_MEAN] = "position-weighted mean",
    };
    fprintf(file, ", embedding by %s", poolings[c->embedding]);
    for (int i = 0; i < c->num_dense; i++)
        fprintf(file, "%s, dense to %d%s%s", c->dense[i].normalize_input ? ", normalized" : "",
                c->dense[i].size, c->dense[i].activation != FT_ACT_NONE ? " + " : "",
                c->dense[i].activation != FT_ACT_NONE ? ft_activation_name(c->dense[i].activation)
                                                      : "");
    if (c->normalize)
        fputs(", normalized", file);
}

static void write_head(const ft_config *c, FILE *file)
{
    if (ft_head_is_classifier(c->head))
        fprintf(file, ", %d label%s, %s", c->labels, c->labels == 1 ? "" : "s",
                ft_problem_name(c->problem_type));
    if (c->head == FT_HEAD_TOKENS)
        fprintf(file, ", %d label%s of tokens", c->labels, c->labels == 1 ? "" : "s");
    if (c->head == FT_HEAD_SPAN)
        fputs(", question answering", file);
    if (c->head == FT_HEAD_LM)
        fputs(", masked language model,", file);
    if (c->embedding != FT_EMBEDDING_NONE)
        write_embedding(c, file);
    if (c->tied || c->head_bias)
        fprintf(file, ",%s head%s", c->tied ? " tied" : "", c->head_bias ? " with bias" : "");
}

/* Vocabulary and positions, or images and patches. */
static void write_inputs(const ft_config *c, FILE *file)
{
    if (!ft_config_is_vision(c)) {
        fprintf(file, ", vocabulary %d, %d positions", c->vocabulary,
                c->positions - c->position_offset);
        if (c->max_seq_length > 0)
            fprintf(file, ", texts truncated to %d tokens", c->max_seq_length);
        return;
    }
    fprintf(file, ", images of %d x %d x %d in patches of %d x %d, %d positions", c->channels,
            c->image_height, c->image_width, c->patch_height, c->patch_width, c->positions);
}

void ft_config_write(const ft_config *config, FILE *file)
{
    if (ft_config_is_encoder_decoder(config)) {
        write_stacks(config, file);
    } else {
        fprintf(file, "%d layers, hidden %d", config->layers, config->hidden);
        write_heads(config, file);
        fprintf(file, ", ffn %d", config->ffn);
    }
    write_inputs(config, file);
    if (ft_config_is_encoder_decoder(config))
        write_encoder_decoder(config, file);
    if (config->rope != FT_ROPE_NONE)
        write_rope(config, file);
    if (config->qk_norm)
        fputs(", norms of query and key heads", file);
    if (config->window > 0)
        write_window(config, file);
    if (config->rotated)
        fputs(", rotated", file);
    write_head(config, file);
}
