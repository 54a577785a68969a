/*
 * features.c - what an artifact needs of its reader.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/features.h"

#include "runtime/container/artifact.h"
#include "runtime/container/identifier.h"
#include "runtime/error.h"

#include <stdio.h>
#include <string.h>

/* ft-artifact(5) describes each. */
const char *const ft_features[] = { FT_FEATURE_DENSE, FT_FEATURE_PROMPTS, FT_FEATURE_FOLDED,
                                    FT_FEATURE_ROTATED, NULL };

static bool is_known(const char *name, const char *const *known)
{
    while (*known != NULL && strcmp(*known, name) != 0)
        known++;
    return *known != NULL;
}

static const char *name_at(const json_t *required, size_t index)
{
    return json_string_value(json_array_get(required, index));
}

static ft_status check_array(const json_t *required, const char *label, ft_error *err)
{
    if (!json_is_array(required) || json_array_size(required) > FT_FEATURES_MAX)
        return ft_fail(err, FT_EFORMAT,
                       "%s: " FT_MANIFEST_ENTRY
                       ": \"requires\": expected an array of at most %d names",
                       label, FT_FEATURES_MAX);
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = name_at(required, i);
        /* jansson refuses NUL in strings, so this is the whole name. */
        if (name == NULL || !ft_identifier_is_valid(name))
            return ft_fail(err, FT_EFORMAT,
                           "%s: " FT_MANIFEST_ENTRY
                           ": \"requires\"[%zu]: expected at most %d visible ASCII characters",
                           label, i, FT_ARTIFACT_IDENTIFIER_MAX);
        for (size_t k = 0; k < i; k++)
            if (strcmp(name_at(required, k), name) == 0)
                return ft_fail(err, FT_EFORMAT,
                               "%s: " FT_MANIFEST_ENTRY ": \"requires\": %s is listed twice", label,
                               name);
    }
    return FT_OK;
}

ft_status ft_features_check(const json_t *required, const char *const *known, const char *label,
                            const char *writer, ft_error *err)
{
    char missing[FT_FEATURES_MAX * (FT_ARTIFACT_IDENTIFIER_MAX + 2) + 1];
    size_t used = 0;
    if (required == NULL)
        return FT_OK;
    FT_TRY(check_array(required, label, err));
    for (size_t i = 0; i < json_array_size(required); i++)
        if (!is_known(name_at(required, i), known))
            used += (size_t) snprintf(missing + used, sizeof missing - used, "%s%s",
                                      used > 0 ? ", " : "", name_at(required, i));
    if (used == 0)
        return FT_OK;
    if (writer == NULL || !ft_identifier_is_valid(writer) || strcmp(writer, ft_version()) == 0)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: requires %s, which version %s does not have; install a later version",
                       label, missing, ft_version());
    return ft_fail(
        err, FT_EUNSUPPORTED,
        "%s: requires %s, which version %s does not have; install version %s, which wrote "
        "it, or a later one",
        label, missing, ft_version(), writer);
}

ft_status ft_features_add(json_t **out, const json_t *required, const char *feature, ft_error *err)
{
    *out = required != NULL ? json_deep_copy(required) : json_array();
    bool is_listed = false;
    for (size_t i = 0; i < json_array_size(*out); i++)
        is_listed = is_listed || strcmp(name_at(*out, i), feature) == 0;
    if (*out != NULL && (is_listed || json_array_append_new(*out, json_string(feature)) == 0))
        return FT_OK;
    json_decref(*out);
    *out = NULL;
    return ft_fail(err, FT_ENOMEM, "no memory for the manifest");
}
