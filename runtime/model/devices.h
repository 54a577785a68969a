/*
 * devices.h - the backends of this build, and parsing of device names such as "cuda:1".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_DEVICES_H
#define FT_RUNTIME_MODEL_DEVICES_H

#include "kernels/backend.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* Whether "cpu", "cuda" or "cuda:N" is meant, be it there or not; FT_EARG else. */
FT_MUST_USE ft_status ft_device_name_check(const char *name, ft_error *err);

/*
 * Open "cpu", "cuda" or "cuda:N"; NULL means "cpu".
 * FT_EARG for any other name; FT_EDEVICE, with the reason, if the device is not available.
 */
FT_MUST_USE ft_status ft_device_open(const ft_backend **backend, ft_device **device,
                                     const char *name, ft_error *err);

#pragma GCC visibility pop

#endif
