/*
 * quantizers.h - ranges from the _amax tensors of quantizers in a safetensors checkpoint.
 *
 * ModelOpt and pytorch-quantization store the range of a quantizer as the tensor
 * MODULE.QUANTIZER._amax, where MODULE is the linear layer as the checkpoint of the float model
 * names it:
 *
 *   input_quantizer, _input_quantizer      the value that the linear reads
 *   output_quantizer, _output_quantizer    its result
 *   weight_quantizer, _weight_quantizer    its weights: one range, or one per output channel
 *
 * and, in the module above the query, key and value linears of an encoder:
 *
 *   matmul_q_input_quantizer, q_bmm_quantizer, and so on for k and v    queries, keys, values
 *   matmul_a_input_quantizer, softmax_quantizer                         attention probabilities
 *
 * Source: pytorch-quantization 2.2.1, tensor_quantizer.py; QDQBERT of transformers 4.30; ModelOpt,
 * torch/quantization.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_AMAX_IN_QUANTIZERS_H
#define FT_CALIBRATE_AMAX_IN_QUANTIZERS_H

#include "calibrate/amax_in/given_ranges.h"
#include "runtime/container/safetensors.h"

/*
 * Adds the ranges of a checkpoint of the artifact's architecture, and sets the scales of int8
 * matrices whose weights have one range per row. Other ranges of weights are ignored with a note;
 * ranges that belong to nothing that is quantized, with a warning that names them. FT_EFORMAT if no
 * tensor is a range, or if one has an unexpected shape or value.
 */
FT_MUST_USE ft_status ft_quantizers_read(ft_given_ranges *ranges, const ft_safetensors *tensors,
                                         ft_error *err);

#endif
