/*
 * module_names.h - the modules of a checkpoint that own the weights of a model.
 *
 * The architectures' tables of tensor names (runtime/families/family.h), which ft-convert uses,
 * name them; the artifact's config.json names the architecture.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_AMAX_IN_MODULE_NAMES_H
#define FT_CALIBRATE_AMAX_IN_MODULE_NAMES_H

#include "runtime/model/model.h"

enum { FT_MODULE_NAME = 192 };

typedef struct ft_module_names {
    const ft_architecture *architecture;
    ft_weight_spec *spec; /* [count], owned */
    size_t count;
} ft_module_names;

/*
 * FT_EUNSUPPORTED if the artifact has no config.json, or one whose model_type is unknown;
 * FT_ENOMEM. fini also accepts a failed or zeroed one.
 */
FT_MUST_USE ft_status ft_module_names_init(ft_module_names *names, const ft_model *model,
                                           ft_error *err);
void ft_module_names_fini(ft_module_names *names);

/*
 * Name `index` of the module that owns a weight, "bert.encoder.layer.0.output.dense": with the
 * prefix of the architecture and without it. False if there is no further one.
 */
bool ft_module_name(const ft_module_names *names, const char *weight, size_t index,
                    char module[FT_MODULE_NAME]);

#endif
