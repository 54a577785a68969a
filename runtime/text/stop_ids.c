/*
 * stop_ids.c - read eos_token_id from generation_config.json and config.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/stop_ids.h"

#include "runtime/error.h"
#include "runtime/base/json_reader.h"

#include <stdio.h>

static const char key[] = "eos_token_id";

static bool is_known(const ft_stop_ids *ids, int64_t id)
{
    for (size_t i = 0; i < ids->count; i++)
        if (ids->id[i] == id)
            return true;
    return false;
}

static ft_status add(ft_stop_ids *out, const ft_json_reader *in, const json_t *value,
                     int32_t vocabulary)
{
    int64_t id;
    FT_TRY(ft_json_read_integer(in, key, value, vocabulary - 1, &id));
    if (is_known(out, id))
        return FT_OK;
    if (out->count == FT_MAX_STOP_IDS)
        return ft_fail(in->err, FT_ELIMIT, "%s: %s: more than %d different ids", in->file, key,
                       FT_MAX_STOP_IDS);
    out->id[out->count++] = (int32_t) id;
    return FT_OK;
}

static ft_status add_all(ft_stop_ids *out, const ft_json_reader *in, int32_t vocabulary)
{
    const json_t *value = json_object_get(in->json, key);
    if (value == NULL || json_is_null(value))
        return FT_OK;
    if (!json_is_array(value))
        return add(out, in, value, vocabulary);
    for (size_t i = 0; i < json_array_size(value); i++)
        FT_TRY(add(out, in, json_array_get(value, i), vocabulary));
    return FT_OK;
}

static ft_status add_from(ft_stop_ids *out, const ft_artifact *artifact, const char *name,
                          const char *label, int32_t vocabulary, ft_error *err)
{
    char file[512];
    const ft_artifact_entry *entry = ft_artifact_find_file(artifact, name);
    if (entry == NULL)
        return FT_OK;
    snprintf(file, sizeof file, "%.400s: %s", label, name);
    json_t *json = json_loadb(entry->data, entry->bytes, JSON_REJECT_DUPLICATES, NULL);
    const ft_json_reader in = { .json = json, .file = file, .err = err };
    ft_status status = json_is_object(json)
                           ? add_all(out, &in, vocabulary)
                           : ft_fail(err, FT_EFORMAT, "%s: expected a JSON object", file);
    json_decref(json);
    return status;
}

ft_status ft_stop_ids_read(ft_stop_ids *out, const ft_artifact *artifact, const char *label,
                           int32_t vocabulary, ft_error *err)
{
    *out = (ft_stop_ids){ 0 };
    FT_TRY(add_from(out, artifact, "generation_config.json", label, vocabulary, err));
    return out->count > 0 ? FT_OK : add_from(out, artifact, "config.json", label, vocabulary, err);
}
