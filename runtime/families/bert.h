/*
 * bert.h - what the near kin of BERT share: an architecture names ft_family_bert, and as its base
 * ft_architecture_bert where tensors and keys are called alike, else the rules of all of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_FAMILIES_BERT_H
#define FT_RUNTIME_FAMILIES_BERT_H

#include "runtime/families/families.h"

/* No model_type: the keys that would make something else of an encoder. */
extern const ft_architecture ft_bert_encoder;

#endif
