/*
 * module_names.c - the modules of a checkpoint that own the weights of a model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/amax_in/module_names.h"

#include "runtime/base/affix.h"
#include "runtime/error.h"

#include <stdlib.h>
#include <string.h>

static ft_status find_architecture(const ft_architecture **out, const ft_model *model,
                                   ft_error *err)
{
    ft_json_reader config = { .file = model->path, .err = err };
    FT_TRY(ft_artifact_load_json(model->artifact, "config.json", &config));
    const char *type = json_string_value(json_object_get(config.json, "model_type"));
    *out = type != NULL ? ft_architecture_find(type) : NULL;
    ft_status status =
        *out != NULL
            ? FT_OK
            : ft_fail(err, FT_EUNSUPPORTED,
                      "%s: config.json: model_type is %s, so the names of its modules are unknown",
                      model->path, type != NULL ? type : "missing");
    json_decref(config.json);
    return status;
}

ft_status ft_module_names_init(ft_module_names *names, const ft_model *model, ft_error *err)
{
    *names = (ft_module_names){ 0 };
    FT_TRY(find_architecture(&names->architecture, model, err));
    return ft_family_weights(model->family, names->architecture, &model->config, &names->spec,
                             &names->count, err);
}

void ft_module_names_fini(ft_module_names *names)
{
    free(names->spec);
    *names = (ft_module_names){ 0 };
}

static const char *source_of(const ft_module_names *names, const char *weight)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->spec[i].name, weight) == 0)
            return names->spec[i].source;
    return "";
}

bool ft_module_name(const ft_module_names *names, const char *weight, size_t index,
                    char module[FT_MODULE_NAME])
{
    const char *source = source_of(names, weight), *prefix = names->architecture->prefix;
    bool has_prefix = source[0] == '~' && prefix != NULL;
    if (source[0] == '\0' || index > (size_t) has_prefix)
        return false;
    source += source[0] == '~';
    int length = (int) strcspn(source, "|");
    snprintf(module, FT_MODULE_NAME, "%s%.*s", has_prefix && index == 0 ? prefix : "", length,
             source);
    if (ft_ends_with(module, ".weight"))
        module[strlen(module) - strlen(".weight")] = '\0';
    return true;
}
