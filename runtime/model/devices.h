/*
 * devices.h - which backends this build has, and what "cuda:1" means.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_DEVICES_H
#define FT_RUNTIME_MODEL_DEVICES_H

#include "kernels/backend.h"

/* Whether "cpu", "cuda" or "cuda:N" is meant, be it there or not; FT_EARG else. */
FT_MUST_USE ft_status ft_device_name_check(const char *name, ft_error *err);

/*
 * Open "cpu", "cuda" or "cuda:N"; NULL means "cpu".
 * FT_EARG for another word; FT_EDEVICE, with the reason, for a device that is not there.
 */
FT_MUST_USE ft_status ft_device_open(const ft_backend **backend, ft_device **device,
                                     const char *name, ft_error *err);

#endif
