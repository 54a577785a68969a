/*
 * llama.h - what the near kin of Llama share: an architecture names ft_family_llama, has
 * ft_llama_decoder as its base, and says what differs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_FAMILIES_LLAMA_H
#define FT_RUNTIME_FAMILIES_LLAMA_H

#include "runtime/families/families.h"

/* No model_type: the keys and the names of tensors that all of them have. */
extern const ft_architecture ft_llama_decoder;

#endif
