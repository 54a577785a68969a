/*
 * window.c - read the layers with sliding window attention, as in Qwen2's config.json.
 *
 * The configuration has a switch, a window size, and either a list of layer types or the index of
 * the first layer with a window. Only models whose last layers have the window are supported; any
 * other order is rejected.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/config_reader.h"

#include <string.h>

/* Defaults of Qwen2Config. */
enum { DEFAULT_WINDOW = 4096, DEFAULT_FIRST_LAYER = 28, MAX_VALUE = 1 << 24 };

/* An integer key with a default; null counts as absent. */
static int32_t read_int_or(const ft_config_reader *r, const char *key, int32_t low,
                           int32_t fallback)
{
    int32_t number;
    ft_json_read_optional_int32(&r->in, key, low, MAX_VALUE, fallback, &number);
    return number;
}

/*
 * The window size, 0 for none: null means none, an absent key the default.  A switch that is
 * neither true nor false is one problem, and not also a missing window.
 */
static int32_t read_window(const ft_config_reader *r)
{
    bool is_null = json_is_null(json_object_get(r->in.json, "sliding_window")), enabled;
    ft_status status = ft_json_read_optional_bool(&r->in, "use_sliding_window", false, &enabled);
    if (is_null || (status == FT_OK && !enabled))
        return 0;
    return read_int_or(r, "sliding_window", 1, DEFAULT_WINDOW);
}

static bool is_type(const json_t *types, int32_t layer, const char *name)
{
    const char *found = json_string_value(json_array_get(types, (size_t) layer));
    return found != NULL && strcmp(found, name) == 0;
}

/*
 * The first layer with a window, if all later layers have one too; `layers` where no layer has one.
 * -1 for any other list.
 */
static int32_t first_windowed_layer(const json_t *types, int32_t layers)
{
    int32_t i = 0;
    if (!json_is_array(types) || json_array_size(types) != (size_t) layers)
        return -1;
    while (i < layers && is_type(types, i, "full_attention"))
        i++;
    int32_t first = i;
    while (i < layers && is_type(types, i, "sliding_attention"))
        i++;
    return i == layers ? first : -1;
}

static int32_t read_types(const ft_config_reader *r, const json_t *types)
{
    char expected[128];
    int32_t layers = r->out->config.layers, first = first_windowed_layer(types, layers);
    if (first >= 0)
        return first;
    snprintf(expected, sizeof expected,
             "%d names, full_attention first and sliding_attention for all layers after those",
             layers);
    ft_json_fail_value(&r->in, FT_EFORMAT, "layer_types", types, expected);
    return layers;
}

void ft_config_read_sliding_window(const ft_config_reader *reader)
{
    ft_config *config = &reader->out->config;
    const json_t *types = ft_json_get(&reader->in, "layer_types");
    int32_t window = read_window(reader);
    int32_t from = types != NULL ? read_types(reader, types)
                                 : read_int_or(reader, "max_window_layers", 0, DEFAULT_FIRST_LAYER);
    if (from >= config->layers)
        return;
    if (window > 0) {
        config->window = window;
        config->window_first_layer = from;
    } else if (types != NULL) {
        ft_json_fail(&reader->in, FT_EFORMAT,
                     "layer_types has sliding_attention, but there is no sliding_window");
    }
}
