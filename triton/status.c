/*
 * status.c - errors of Triton as errors of the library, and the other way round.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "triton/ft_triton.h"

ft_status ft_triton_check(TRITONSERVER_Error *error, ft_error *err)
{
    if (error == NULL)
        return FT_OK;
    bool invalid = TRITONSERVER_ErrorCode(error) == TRITONSERVER_ERROR_INVALID_ARG;
    ft_status status =
        ft_fail(err, invalid ? FT_EARG : FT_EIO, "%s", TRITONSERVER_ErrorMessage(error));
    TRITONSERVER_ErrorDelete(error);
    return status;
}

void ft_triton_ignore(TRITONSERVER_Error *error)
{
    if (error != NULL)
        TRITONSERVER_ErrorDelete(error);
}

TRITONSERVER_Error *ft_triton_error(const ft_error *err)
{
    static const TRITONSERVER_Error_Code code_of[] = {
        [FT_ENOMEM] = TRITONSERVER_ERROR_UNAVAILABLE,
        [FT_EFORMAT] = TRITONSERVER_ERROR_INVALID_ARG,
        [FT_ESHAPE] = TRITONSERVER_ERROR_INVALID_ARG,
        [FT_EUNSUPPORTED] = TRITONSERVER_ERROR_UNSUPPORTED,
        [FT_EARG] = TRITONSERVER_ERROR_INVALID_ARG,
        [FT_ELIMIT] = TRITONSERVER_ERROR_UNAVAILABLE,
        [FT_ECANCELLED] = TRITONSERVER_ERROR_CANCELLED,
        [FT_ETIMEOUT] = TRITONSERVER_ERROR_UNAVAILABLE,
    };
    TRITONSERVER_Error_Code code = code_of[err->code];
    return TRITONSERVER_ErrorNew(code != 0 ? code : TRITONSERVER_ERROR_INTERNAL, err->text);
}
