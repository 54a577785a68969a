/*
 * families.h - the registry's entries: one line a family.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_FAMILIES_FAMILIES_H
#define FT_RUNTIME_FAMILIES_FAMILIES_H

#include "runtime/families/family.h"

extern const ft_family ft_family_bert;
extern const ft_family ft_family_llama;
extern const ft_family ft_family_m2m100;
extern const ft_family ft_family_marian;
extern const ft_family ft_family_vit;

#endif
