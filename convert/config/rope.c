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

#include "convert/config/json.h"
#include "runtime/mem.h"

#include <stddef.h>
#include <string.h>

/* The object that describes the scaling, and its name in messages. */
typedef struct {
    const ft_config_reader *reader;
    const char *name; /* "rope_scaling" */
    const json_t *json;
} rope_scaling;

enum { PATH_SIZE = 96 };

/* "rope_scaling.factor" */
static const char *format_path(char text[PATH_SIZE], const rope_scaling *s, const char *key)
{
    snprintf(text, PATH_SIZE, "%s.%.64s", s->name, key);
    return text;
}

/* A member's value, or NULL where it is absent or null. */
static const json_t *member_of(const rope_scaling *s, const char *key)
{
    const json_t *value = json_object_get(s->json, key);
    return json_is_null(value) ? NULL : value;
}

/* ---- Numbers -------------------------------------------------------------------------------- */

static void read_double(const ft_config_reader *r, const char *name, const json_t *value,
                        size_t field)
{
    double low, high;
    char expected[64];
    ft_config_real_bounds(field, &low, &high);
    double number = json_number_value(value);
    if (json_is_number(value) && number >= low && number <= high) {
        *(double *) (void *) ((char *) &r->out->config + field) = number;
        return;
    }
    snprintf(expected, sizeof expected, "a number from %g to %g", low, high);
    ft_config_fail_value(r, name, value, expected);
}

static void read_member_double(const rope_scaling *s, const char *key, size_t field)
{
    char path[PATH_SIZE];
    const json_t *value = member_of(s, key);
    if (value != NULL)
        read_double(s->reader, format_path(path, s, key), value, field);
    else
        ft_messages_add(s->reader->problems, FT_EFORMAT, "%s: no %s, which rope type %s needs",
                        s->reader->label, format_path(path, s, key),
                        ft_rope_name(s->reader->out->config.rope));
}

/* The context length of pretraining; defaults to the model's max_position_embeddings. */
static void read_original_positions(const rope_scaling *s)
{
    static const char key[] = "original_max_position_embeddings";
    ft_config *config = &s->reader->out->config;
    const json_t *value = member_of(s, key);
    char path[PATH_SIZE];
    int32_t low, high;
    config->rope_positions = config->positions;
    if (value == NULL || config->rope == FT_ROPE_DYNAMIC)
        return;
    ft_config_int_bounds(offsetof(ft_config, rope_positions), &low, &high);
    ft_config_read_int(s->reader, format_path(path, s, key), value, 1, high,
                       &config->rope_positions);
}

/* ---- Scaling type --------------------------------------------------------------------------- */

/* rope_type takes precedence over type. */
static bool read_type(const rope_scaling *s)
{
    const char *key = member_of(s, "rope_type") != NULL ? "rope_type" : "type";
    const json_t *value = member_of(s, key);
    ft_rope *rope = &s->reader->out->config.rope;
    char path[PATH_SIZE], text[FT_JSON_SNIPPET_SIZE];
    *rope = FT_ROPE_DEFAULT;
    if (value == NULL)
        return true;
    if (json_is_string(value) && ft_rope_parse(json_string_value(value), rope) &&
        *rope != FT_ROPE_NONE)
        return true;
    ft_messages_add(s->reader->problems, FT_EUNSUPPORTED,
                    "%s: %s is %s; supported are default, linear, llama3, dynamic",
                    s->reader->label, format_path(path, s, key), ft_json_snippet(text, value));
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

static void reject_other_members(const rope_scaling *s, ft_rope_use use)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *) (uintptr_t) s->json, key, value)
    {
        char path[PATH_SIZE];
        if (!is_member_of_type(use, s->reader->out->config.rope, key))
            ft_config_reject_unknown(s->reader, format_path(path, s, key), value);
    }
    const json_t *partial = member_of(s, "partial_rotary_factor");
    char text[FT_JSON_SNIPPET_SIZE];
    if (partial != NULL && json_number_value(partial) != 1.0)
        ft_messages_add(s->reader->problems, FT_EUNSUPPORTED,
                        "%s: %s.partial_rotary_factor is %s, only 1 is supported", s->reader->label,
                        s->name, ft_json_snippet(text, partial));
}

static void read_scaling(const rope_scaling *s)
{
    ft_config *config = &s->reader->out->config;
    if (!read_type(s))
        return;
    ft_rope_use use = ft_rope_uses(config->rope);
    if (use.factor)
        read_member_double(s, "factor", offsetof(ft_config, rope_factor));
    if (use.band) {
        read_member_double(s, "low_freq_factor", offsetof(ft_config, rope_low));
        read_member_double(s, "high_freq_factor", offsetof(ft_config, rope_high));
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
static void read_theta(const rope_scaling *s)
{
    const ft_config_reader *r = s->reader;
    const size_t field = offsetof(ft_config, rope_theta);
    const json_t *inside = member_of(s, "rope_theta"), *outside = ft_config_get(r, "rope_theta");
    char path[PATH_SIZE], text[FT_JSON_SNIPPET_SIZE];
    r->out->config.rope_theta = 10000.0;
    if (inside != NULL && outside != NULL && !ft_json_equal(inside, outside))
        ft_messages_add(r->problems, FT_EFORMAT, "%s: rope_theta is %s, but %s says otherwise",
                        r->label, ft_json_snippet(text, outside),
                        format_path(path, s, "rope_theta"));
    else if (inside != NULL)
        read_double(r, format_path(path, s, "rope_theta"), inside, field);
    else if (outside != NULL)
        read_double(r, "rope_theta", outside, field);
}

/*
 * One of the two objects, or neither. If both are present they must be equal, because their
 * precedence is undefined.
 */
static bool find_scaling(rope_scaling *s)
{
    const ft_config_reader *r = s->reader;
    const json_t *legacy = ft_config_get(r, "rope_scaling");
    const json_t *current = ft_config_get(r, "rope_parameters");
    s->name = current != NULL ? "rope_parameters" : "rope_scaling";
    s->json = current != NULL ? current : legacy;
    if (current != NULL && legacy != NULL && !ft_json_equal(current, legacy)) {
        ft_messages_add(r->problems, FT_EFORMAT, "%s: rope_parameters and rope_scaling disagree",
                        r->label);
        return false;
    }
    if (s->json == NULL || json_is_object(s->json))
        return true;
    ft_config_fail_value(r, s->name, s->json, "an object or null");
    return false;
}

void ft_config_read_rope(const ft_config_reader *reader)
{
    rope_scaling s = { .reader = reader };
    if (!find_scaling(&s))
        return;
    read_theta(&s);
    read_scaling(&s);
}
