/*
 * model_config_members.c - the numbers of a configuration and their bounds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/model_config_members.h"

#include "runtime/mem.h"

#include <assert.h>

const ft_int_member ft_config_ints[FT_CONFIG_INTS] = {
    { "channels", offsetof(ft_config, channels), 1, 1024, FT_MEMBER_VISION },
    { "image_height", offsetof(ft_config, image_height), 1, 65536, FT_MEMBER_VISION },
    { "image_width", offsetof(ft_config, image_width), 1, 65536, FT_MEMBER_VISION },
    { "patch_height", offsetof(ft_config, patch_height), 1, 65536, FT_MEMBER_VISION },
    { "patch_width", offsetof(ft_config, patch_width), 1, 65536, FT_MEMBER_VISION },
    { "leading", offsetof(ft_config, prefix_tokens), 1, 2, FT_MEMBER_VISION },
    { "layers", offsetof(ft_config, layers), 1, 1000, FT_MEMBER_ALL_MODELS },
    { "hidden", offsetof(ft_config, hidden), 1, 65536, FT_MEMBER_ALL_MODELS },
    { "heads", offsetof(ft_config, heads), 1, 65536, FT_MEMBER_ALL_MODELS },
    { "ffn", offsetof(ft_config, ffn), 1, 65536, FT_MEMBER_ALL_MODELS },
    { "vocabulary", offsetof(ft_config, vocabulary), 1, 1 << 24, FT_MEMBER_TEXT_ONLY },
    { "positions", offsetof(ft_config, positions), 1, 1 << 24, FT_MEMBER_ALL_MODELS },
    { "types", offsetof(ft_config, types), 0, 1 << 16, FT_MEMBER_ALL_MODELS },
    { "labels", offsetof(ft_config, labels), 0, 1 << 20, FT_MEMBER_ALL_MODELS },
    { "position_offset", offsetof(ft_config, position_offset), 0, 1 << 24, FT_MEMBER_ALL_MODELS },
    { "padding_id", offsetof(ft_config, padding_id), -1, 1 << 24, FT_MEMBER_ALL_MODELS },
    { "max_seq_length", offsetof(ft_config, max_seq_length), 0, 1 << 24, FT_MEMBER_OPTIONAL },
    { "kv_heads", offsetof(ft_config, kv_heads), 0, 65536, FT_MEMBER_OPTIONAL },
    { "head_size", offsetof(ft_config, head_size), 0, 65536, FT_MEMBER_OPTIONAL },
    { "window", offsetof(ft_config, window), 0, 1 << 24, FT_MEMBER_OPTIONAL },
    { "window_from", offsetof(ft_config, window_first_layer), 0, 999, FT_MEMBER_OPTIONAL },
    { "rope_positions", offsetof(ft_config, rope_positions), 0, 1 << 24, FT_MEMBER_OPTIONAL },
    { "encoder_head_size", offsetof(ft_config, encoder_head_size), 0, 65536, FT_MEMBER_OPTIONAL },
    { "encoder_layers", offsetof(ft_config, encoder_layers), 1, 1000, FT_MEMBER_ENCODER_DECODER },
    { "encoder_heads", offsetof(ft_config, encoder_heads), 1, 65536, FT_MEMBER_ENCODER_DECODER },
    { "encoder_ffn", offsetof(ft_config, encoder_ffn), 1, 65536, FT_MEMBER_ENCODER_DECODER },
    { "start_id", offsetof(ft_config, decoder_start_id), 0, 1 << 24, FT_MEMBER_ENCODER_DECODER },
    { "pad_id", offsetof(ft_config, pad_id), 0, 1 << 24, FT_MEMBER_ENCODER_DECODER },
    { "first_id", offsetof(ft_config, forced_bos_id), -1, 1 << 24, FT_MEMBER_ENCODER_DECODER },
    { "last_id", offsetof(ft_config, forced_eos_id), -1, 1 << 24, FT_MEMBER_ENCODER_DECODER },
};

const ft_double_member ft_config_doubles[FT_CONFIG_DOUBLES] = {
    { "rope_theta", offsetof(ft_config, rope_theta), 1, 1e12 },
    { "rope_factor", offsetof(ft_config, rope_factor), 1, 1e6 },
    { "rope_low", offsetof(ft_config, rope_low), 1e-6, 1e6 },
    { "rope_high", offsetof(ft_config, rope_high), 1e-6, 1e6 },
};

void ft_config_int_bounds(size_t field, int32_t *low, int32_t *high)
{
    size_t i = 0;
    while (i < FT_COUNT(ft_config_ints) && ft_config_ints[i].field != field)
        i++;
    assert(i < FT_COUNT(ft_config_ints));
    *low = ft_config_ints[i].low;
    *high = ft_config_ints[i].high;
}

void ft_config_real_bounds(size_t field, double *low, double *high)
{
    size_t i = 0;
    while (i < FT_COUNT(ft_config_doubles) && ft_config_doubles[i].field != field)
        i++;
    assert(i < FT_COUNT(ft_config_doubles));
    *low = ft_config_doubles[i].low;
    *high = ft_config_doubles[i].high;
}
