/*
 * quantizer.h - checks of the weight quantizer against the calibration of the CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_CUDA_QUANTIZE_QUANTIZER_H
#define FT_TESTS_CUDA_QUANTIZE_QUANTIZER_H

/* All checks, on device 0 of the CUDA runtime that the program is linked with. */
void check_quantizer(void);

#endif
