/*
 * stop_ids.c - read eos_token_id from generation_config.json and config.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/stop_ids.h"

#include "runtime/base/json_reader.h"
#include "runtime/error.h"

#include <stdio.h>

static const char key[] = "eos_token_id";

static bool is_known(const ft_stop_ids *ids, int32_t id)
{
    for (size_t i = 0; i < ids->count; i++)
        if (ids->id[i] == id)
            return true;
    return false;
}

static ft_status add(ft_stop_ids *out, const ft_json_reader *in, const json_t *value,
                     int32_t vocabulary)
{
    int32_t id;
    FT_TRY(ft_json_to_int32(in, key, value, 0, vocabulary - 1, &id));
    if (is_known(out, id))
        return FT_OK;
    if (out->count == FT_MAX_STOP_IDS)
        return ft_json_fail(in, FT_ELIMIT, "%s: more than %d different ids", key, FT_MAX_STOP_IDS);
    out->id[out->count++] = id;
    return FT_OK;
}

static ft_status add_all(ft_stop_ids *out, const ft_json_reader *in, int32_t vocabulary)
{
    const json_t *value = ft_json_get(in, key);
    for (size_t i = 0; i < ft_json_list_size(value); i++)
        FT_TRY(add(out, in, ft_json_list_at(value, i), vocabulary));
    return FT_OK;
}

static ft_status add_from(ft_stop_ids *out, const ft_artifact *artifact, const char *name,
                          const char *label, int32_t vocabulary, ft_error *err)
{
    char file[512];
    ft_json_reader in = { .file = file, .err = err };
    snprintf(file, sizeof file, "%.400s: %s", label, name);
    FT_TRY(ft_artifact_load_json(artifact, name, &in));
    ft_status status = add_all(out, &in, vocabulary);
    json_decref(in.json);
    return status;
}

ft_status ft_stop_ids_read(ft_stop_ids *out, const ft_artifact *artifact, const char *label,
                           int32_t vocabulary, ft_error *err)
{
    *out = (ft_stop_ids){ 0 };
    FT_TRY(add_from(out, artifact, "generation_config.json", label, vocabulary, err));
    return out->count > 0 ? FT_OK : add_from(out, artifact, "config.json", label, vocabulary, err);
}
