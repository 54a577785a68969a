/*
 * families.h - declares the entries of the registry.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_FAMILIES_FAMILIES_H
#define FT_RUNTIME_FAMILIES_FAMILIES_H

#include "runtime/families/family.h"

#define FAMILY(name) extern const ft_family ft_family_##name;
#define ARCHITECTURE(name) extern const ft_architecture ft_architecture_##name;
#include "runtime/families/families.def"
#undef FAMILY
#undef ARCHITECTURE

#endif
