/*
 * rope.c - read the RoPE scaling of config.json.
 *
 * transformers 5 writes all of it into "rope_parameters". Before, "rope_theta" was a key of its own
 * and "rope_scaling" was an object, or null without scaling; the scaling type was its "type" first
 * and its "rope_type" later. A member that the scaling type does not define is rejected, because
 * the author of the file expected it to have an effect.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/config_reader.h"

#include "runtime/mem.h"

#include <stddef.h>
#include <string.h>

/* ---- Numbers -------------------------------------------------------------------------------- */

static void read_double(const ft_config_reader *r, const char *key, size_t field)
{
    double low, high;
    ft_config_real_bounds(field, &low, &high);
    ft_json_to_number(&r->in, key, json_object_get(r->in.json, key), low, high,
                      (double *) (void *) ((char *) &r->out->config + field));
}

static void read_required(const ft_config_reader *s, const char *key, size_t field)
{
    if (ft_json_get(&s->in, key) != NULL)
        read_double(s, key, field);
    else
        ft_json_fail(&s->in, FT_EFORMAT, "no %s%s, which rope type %s needs", s->in.path, key,
                     ft_rope_name(s->out->config.rope));
}

/* The context length of pretraining; defaults to the model's max_position_embeddings. */
static void read_original_positions(const ft_config_reader *s)
{
    ft_config *config = &s->out->config;
    int32_t low, high;
    ft_config_int_bounds(offsetof(ft_config, rope_positions), &low, &high);
    config->rope_positions = config->positions;
    if (config->rope != FT_ROPE_DYNAMIC)
        ft_json_read_optional_int32(&s->in, "original_max_position_embeddings", 1, high,
                                    config->positions, &config->rope_positions);
}

/* ---- Scaling type --------------------------------------------------------------------------- */

/* rope_type takes precedence over type. */
static bool read_type(const ft_config_reader *s)
{
    const char *key = ft_json_get(&s->in, "rope_type") != NULL ? "rope_type" : "type";
    const json_t *value = ft_json_get(&s->in, key);
    ft_rope *rope = &s->out->config.rope;
    char text[FT_JSON_SNIPPET_SIZE];
    *rope = FT_ROPE_DEFAULT;
    if (value == NULL)
        return true;
    if (json_is_string(value) && ft_rope_parse(json_string_value(value), rope) &&
        *rope != FT_ROPE_NONE)
        return true;
    ft_json_fail(&s->in, FT_EUNSUPPORTED,
                 "%s%s is %s; supported are default, linear, llama3, dynamic", s->in.path, key,
                 ft_json_snippet(text, value));
    return false;
}

/* Whether a scaling type defines this member. */
static bool is_member_of_type(ft_rope_use use, ft_rope rope, const char *key)
{
    static const char *const always[] = { "rope_type", "type", "rope_theta",
                                          "partial_rotary_factor" };
    for (size_t i = 0; i < FT_COUNT(always); i++)
        if (strcmp(key, always[i]) == 0)
            return true;
    if (strcmp(key, "factor") == 0)
        return use.factor;
    if (strcmp(key, "low_freq_factor") == 0 || strcmp(key, "high_freq_factor") == 0)
        return use.band;
    /* Dynamic scaling uses max_position_embeddings. */
    return strcmp(key, "original_max_position_embeddings") == 0 && use.positions &&
           rope != FT_ROPE_DYNAMIC;
}

static void reject_other_members(const ft_config_reader *s, ft_rope_use use)
{
    const char *key;
    json_t *value;
    json_object_foreach(s->in.json, key, value)
    {
        if (!is_member_of_type(use, s->out->config.rope, key))
            ft_config_reject_unknown(s, key, value);
    }
    const json_t *partial = ft_json_get(&s->in, "partial_rotary_factor");
    char text[FT_JSON_SNIPPET_SIZE];
    if (partial != NULL && json_number_value(partial) != 1.0)
        ft_json_fail(&s->in, FT_EUNSUPPORTED, "%spartial_rotary_factor is %s, only 1 is supported",
                     s->in.path, ft_json_snippet(text, partial));
}

static void read_scaling(const ft_config_reader *s)
{
    ft_config *config = &s->out->config;
    if (!read_type(s))
        return;
    ft_rope_use use = ft_rope_uses(config->rope);
    if (use.factor)
        read_required(s, "factor", offsetof(ft_config, rope_factor));
    if (use.band) {
        read_required(s, "low_freq_factor", offsetof(ft_config, rope_low));
        read_required(s, "high_freq_factor", offsetof(ft_config, rope_high));
    }
    if (use.positions)
        read_original_positions(s);
    reject_other_members(s, use);
}

/* ---- Reading -------------------------------------------------------------------------------- */

/*
 * The base of the frequencies: a member of the scaling object, or before transformers 5 a key of
 * its own.
 */
static void read_theta(const ft_config_reader *r, const ft_config_reader *s)
{
    static const char key[] = "rope_theta";
    const json_t *inside = ft_json_get(&s->in, key), *outside = ft_json_get(&r->in, key);
    char text[FT_JSON_SNIPPET_SIZE];
    r->out->config.rope_theta = 10000.0;
    if (inside != NULL && outside != NULL && !ft_json_equal(inside, outside))
        ft_json_fail(&r->in, FT_EFORMAT, "%s is %s, but %s%s says otherwise", key,
                     ft_json_snippet(text, outside), s->in.path, key);
    else if (inside != NULL || outside != NULL)
        read_double(inside != NULL ? s : r, key, offsetof(ft_config, rope_theta));
}

/*
 * One of the two objects, or neither. If both are present they must be equal, because their
 * precedence is undefined.
 */
static bool find_scaling(const ft_config_reader *r, ft_config_reader *s)
{
    const json_t *legacy = ft_json_get(&r->in, "rope_scaling");
    const json_t *current = ft_json_get(&r->in, "rope_parameters");
    const char *name = current != NULL ? "rope_parameters" : "rope_scaling";
    *s = *r;
    if (current != NULL && legacy != NULL && !ft_json_equal(current, legacy)) {
        ft_json_fail(&r->in, FT_EFORMAT, "rope_parameters and rope_scaling disagree");
        return false;
    }
    if (current != NULL || legacy != NULL)
        return ft_json_read_object(&r->in, name, &s->in) == FT_OK;
    s->in.json = NULL;
    return true;
}

void ft_config_read_rope(const ft_config_reader *reader)
{
    ft_config_reader scaling;
    if (!find_scaling(reader, &scaling))
        return;
    read_theta(reader, &scaling);
    read_scaling(&scaling);
}
