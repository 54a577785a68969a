/*
 * model_config_text.c - a configuration in words, for the tools.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model_config.h"

static void write_heads(const ft_config *c, FILE *file)
{
    fprintf(file, ", %d heads", c->heads);
    if (c->head_size > 0)
        fprintf(file, " of %d", c->head_size);
    if (c->kv_heads > 0 && c->kv_heads != c->heads)
        fprintf(file, " (%d of keys and values)", c->kv_heads);
}

static void write_rope(const ft_config *c, FILE *file)
{
    fprintf(file, ", rotary with theta %g", c->rope_theta);
    if (c->rope != FT_ROPE_DEFAULT)
        fprintf(file, ", scaled %s by %g", ft_rope_name(c->rope), c->rope_factor);
    if (ft_rope_uses(c->rope).positions)
        fprintf(file, " beyond %d", c->rope_positions);
}

static void write_window(const ft_config *c, FILE *file)
{
    fprintf(file, ", window of %d", c->window);
    if (c->window_from > 0)
        fprintf(file, " from layer %d on", c->window_from);
}

static void write_head(const ft_config *c, FILE *file)
{
    if (c->labels > 0)
        fprintf(file, ", %d labels", c->labels);
    if (c->embedding != FT_EMBEDDING_NONE)
        fprintf(file, ", embedding by %s%s",
                c->embedding == FT_EMBEDDING_MEAN ? "mean" : "first token",
                c->normalize ? ", normalized" : "");
    if (c->tied)
        fputs(", tied head", file);
}

void ft_config_write(const ft_config *config, FILE *file)
{
    fprintf(file, "%d layers, hidden %d", config->layers, config->hidden);
    write_heads(config, file);
    fprintf(file, ", ffn %d, vocabulary %d, %d positions", config->ffn, config->vocabulary,
            config->positions - config->position_offset);
    if (config->rope != FT_ROPE_NONE)
        write_rope(config, file);
    if (config->window > 0)
        write_window(config, file);
    write_head(config, file);
}
