/*
 * bert.h - shared by the architectures of the BERT family.  Their family is ft_family_bert; their
 * base is ft_architecture_bert if they share its names of tensors and keys, else ft_bert_encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_FAMILIES_BERT_H
#define FT_RUNTIME_FAMILIES_BERT_H

#include "runtime/families/families.h"

/* A base without a model_type: rejects the keys that would change the encoder graph. */
extern const ft_architecture ft_bert_encoder;

#endif
