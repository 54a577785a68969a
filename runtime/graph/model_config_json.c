/*
 * model_config_json.c - writes a configuration as JSON for the manifest, and reads it back.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/model_config_members.h"

#include "runtime/base/json_reader.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <string.h>

/* ---- Members -------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    size_t field;
} flags[] = {
    { "qkv_bias", offsetof(ft_config, qkv_bias) },
    { "out_bias", offsetof(ft_config, out_bias) },
    { "ffn_bias", offsetof(ft_config, ffn_bias) },
    { "qk_norm", offsetof(ft_config, qk_norm) },
    { "rotated", offsetof(ft_config, rotated) },
    { "tied", offsetof(ft_config, tied) },
    { "scale_words", offsetof(ft_config, scale_embeddings) },
    { "head_bias", offsetof(ft_config, head_bias) },
};

static void *member(ft_config *config, size_t field)
{
    return (char *) config + field;
}

/* ---- Writing -------------------------------------------------------------------------------- */

static bool put(json_t *json, const char *key, json_t *value)
{
    return json_object_set_new(json, key, value) == 0;
}

static bool put_problem(json_t *json, const ft_config *config)
{
    return config->labels == 0 ||
           put(json, "problem_type", json_string(ft_problem_name(config->problem_type)));
}

static bool put_strings(json_t *json, const ft_config *config)
{
    return put(json, "eps", json_real((double) config->eps)) &&
           put(json, "activation", json_string(ft_activation_name(config->activation))) &&
           put(json, "pooler", json_boolean(config->pooler)) &&
           put(json, "head", json_string(ft_head_name(config->head))) &&
           put_problem(json, config) &&
           put(json, "embedding", json_string(ft_embedding_name(config->embedding))) &&
           put(json, "normalize", json_boolean(config->normalize)) &&
           ft_config_put_dense(json, config);
}

/* Whether a model has the members of this kind. */
static bool has_kind(const ft_config *config, ft_member_kind whose)
{
    return whose == FT_MEMBER_ENCODER_DECODER ? ft_config_is_encoder_decoder(config)
           : whose == FT_MEMBER_VISION        ? ft_config_is_vision(config)
           : whose == FT_MEMBER_TEXT_ONLY     ? !ft_config_is_vision(config)
                                              : true;
}

/* What texts or images have is written among the members of every model. */
static bool is_written_with(ft_member_kind member, ft_member_kind whose)
{
    return member == whose || (whose == FT_MEMBER_ALL_MODELS &&
                               (member == FT_MEMBER_TEXT_ONLY || member == FT_MEMBER_VISION));
}

static bool put_numbers(json_t *json, ft_config *config, ft_member_kind whose)
{
    bool fine = true;
    for (size_t i = 0; i < FT_COUNT(ft_config_ints); i++) {
        int32_t value = *(int32_t *) member(config, ft_config_ints[i].field);
        if (is_written_with(ft_config_ints[i].whose, whose) &&
            has_kind(config, ft_config_ints[i].whose) &&
            (value != 0 || whose != FT_MEMBER_OPTIONAL))
            fine = fine && put(json, ft_config_ints[i].key, json_integer(value));
    }
    return fine;
}

static bool put_decoder(json_t *json, ft_config *config)
{
    bool fine = put_numbers(json, config, FT_MEMBER_OPTIONAL);
    if (config->rope != FT_ROPE_NONE)
        fine = fine && put(json, "rope", json_string(ft_rope_name(config->rope)));
    for (size_t i = 0; i < FT_COUNT(ft_config_doubles); i++) {
        double value = *(double *) member(config, ft_config_doubles[i].field);
        if (value != 0.0)
            fine = fine && put(json, ft_config_doubles[i].key, json_real(value));
    }
    for (size_t i = 0; i < FT_COUNT(flags); i++)
        if (*(bool *) member(config, flags[i].field))
            fine = fine && put(json, flags[i].key, json_true());
    return fine;
}

static bool put_source(json_t *json, ft_config *config)
{
    if (!ft_config_is_encoder_decoder(config))
        return true;
    json_t *banned = json_array();
    bool fine = put(json, "sinusoids", json_string(ft_sinusoids_name(config->sinusoids))) &&
                put_numbers(json, config, FT_MEMBER_ENCODER_DECODER);
    for (int i = 0; i < config->num_banned; i++)
        fine = fine && json_array_append_new(banned, json_integer(config->banned[i])) == 0;
    return put(json, "banned", banned) && fine;
}

json_t *ft_config_to_json(const ft_config *config)
{
    json_t *json = json_object();
    ft_config copy = *config;
    if (json != NULL && put_numbers(json, &copy, FT_MEMBER_ALL_MODELS) &&
        put_strings(json, config) && put_decoder(json, &copy) && put_source(json, &copy))
        return json;
    json_decref(json);
    return NULL;
}

/* ---- Reading -------------------------------------------------------------------------------- */

static ft_status read_number(ft_config *out, const ft_json_reader *in, size_t i)
{
    const char *key = ft_config_ints[i].key;
    const json_t *value = json_object_get(in->json, key);
    ft_member_kind whose = ft_config_ints[i].whose;
    if (value == NULL && (whose == FT_MEMBER_OPTIONAL || !has_kind(out, whose)))
        return FT_OK;
    return ft_json_to_int32(in, key, value, ft_config_ints[i].low, ft_config_ints[i].high,
                            member(out, ft_config_ints[i].field));
}

static ft_status read_real(ft_config *out, const ft_json_reader *in, size_t i)
{
    const char *key = ft_config_doubles[i].key;
    const json_t *value = json_object_get(in->json, key);
    return value == NULL ? FT_OK
                         : ft_json_to_number(in, key, value, ft_config_doubles[i].low,
                                             ft_config_doubles[i].high,
                                             member(out, ft_config_doubles[i].field));
}

static ft_status read_flag(ft_config *out, const ft_json_reader *in, size_t i)
{
    return json_object_get(in->json, flags[i].key) == NULL
               ? FT_OK
               : ft_json_read_bool(in, flags[i].key, member(out, flags[i].field));
}

static ft_status read_banned(ft_config *out, const ft_json_reader *in)
{
    json_t *list;
    if (json_object_get(in->json, "banned") == NULL)
        return FT_OK;
    FT_TRY(ft_json_read_array(in, "banned", &list));
    if (json_array_size(list) > FT_MAX_BANNED)
        return ft_json_fail(in, FT_EFORMAT, "%sbanned: %zu ids, expected at most %d", in->path,
                            json_array_size(list), FT_MAX_BANNED);
    for (size_t i = 0; i < json_array_size(list); i++)
        FT_TRY(ft_json_to_int32(in, "banned", json_array_get(list, i), 0, out->vocabulary - 1,
                                &out->banned[out->num_banned++]));
    return FT_OK;
}

/* A row of equal values has no variance: what is added to it must be more than 0, in float too. */
static bool is_eps(double value)
{
    return value > 0.0 && value < 1.0 && (float) value > 0.0f;
}

static ft_status read_eps(ft_config *out, const ft_json_reader *in)
{
    double eps = json_number_value(json_object_get(in->json, "eps"));
    out->eps = (float) eps;
    return is_eps(eps) ? FT_OK : ft_json_fail_member(in, "eps", "a float from 0 to 1, exclusive");
}

/* Names of enumerations.  A missing one fails, unless it is optional. */
static ft_status read_names(ft_config *out, const ft_json_reader *in)
{
    const char *activation = json_string_value(json_object_get(in->json, "activation"));
    const char *head = json_string_value(json_object_get(in->json, "head"));
    const char *embedding = json_string_value(json_object_get(in->json, "embedding"));
    const json_t *rope = json_object_get(in->json, "rope");
    const json_t *sinusoids = json_object_get(in->json, "sinusoids");
    const char *bad =
        activation == NULL || !ft_activation_parse(activation, &out->activation) ? "activation"
        : !ft_head_parse(head, &out->head)                                       ? "head"
        : !ft_embedding_parse(embedding, &out->embedding)                        ? "embedding"
        : rope != NULL && !ft_rope_parse(json_string_value(rope), &out->rope)    ? "rope"
        : sinusoids != NULL && !ft_sinusoids_parse(json_string_value(sinusoids), &out->sinusoids)
            ? "sinusoids"
            : NULL;
    return bad == NULL ? FT_OK : ft_json_fail_member(in, bad, "a name that this version knows");
}

/* Artifacts of classifiers that are older than this key do not have it. */
static ft_status read_problem(ft_config *out, const ft_json_reader *in)
{
    const json_t *problem = json_object_get(in->json, "problem_type");
    out->problem_type = ft_problem_default(out->labels);
    if (problem == NULL || ft_problem_parse(json_string_value(problem), &out->problem_type))
        return FT_OK;
    return ft_json_fail_member(in, "problem_type", "a name that this version knows");
}

ft_status ft_config_from_json(ft_config *out, const json_t *json, ft_kind kind, const char *what,
                              ft_error *err)
{
    const ft_json_reader in = {
        .json = (json_t *) (uintptr_t) json, .file = what, .err = err, .path = "config: "
    };
    memset(out, 0, sizeof *out);
    out->kind = kind; /* which numbers there must be depends on it */
    FT_TRY(read_names(out, &in));
    FT_TRY(read_eps(out, &in));
    FT_TRY(ft_json_read_bool(&in, "pooler", &out->pooler));
    FT_TRY(ft_json_read_bool(&in, "normalize", &out->normalize));
    FT_TRY(ft_config_read_dense(out, &in));
    for (size_t i = 0; i < FT_COUNT(ft_config_ints); i++)
        FT_TRY(read_number(out, &in, i));
    FT_TRY(read_problem(out, &in));
    for (size_t i = 0; i < FT_COUNT(ft_config_doubles); i++)
        FT_TRY(read_real(out, &in, i));
    for (size_t i = 0; i < FT_COUNT(flags); i++)
        FT_TRY(read_flag(out, &in, i));
    FT_TRY(read_banned(out, &in));
    return ft_config_check(out, what, err);
}
