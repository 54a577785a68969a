/*
 * llama.h - shared by the architectures of the Llama family.  Their family is ft_family_llama and
 * their base is ft_llama_decoder; each adds its differences.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_FAMILIES_LLAMA_H
#define FT_RUNTIME_FAMILIES_LLAMA_H

#include "runtime/families/families.h"

/* A base without a model_type: the common keys and checkpoint names. */
extern const ft_architecture ft_llama_decoder;

#endif
