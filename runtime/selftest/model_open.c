/*
 * model_open.c - the public call that opens a model, and its self-test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/read_options.h"
#include "runtime/error.h"
#include "runtime/model/model.h"
#include "runtime/selftest/selftest.h"

/* Values outside the enums are errors, not defaults. */
static ft_status check_options(const ft_model_options *options, ft_error *err)
{
    if ((unsigned) options->verify > FT_VERIFY_SHA256)
        return ft_fail(err, FT_EARG, "options: verify is %d, expected 0 to %d",
                       (int) options->verify, FT_VERIFY_SHA256);
    if ((unsigned) options->kv > FT_KV_DTYPE_INT8)
        return ft_fail(err, FT_EARG, "options: kv is %d, expected 0 to %d", (int) options->kv,
                       FT_KV_DTYPE_INT8);
    return FT_OK;
}

/* FT_EDEVICE unless the device computes what the artifact says. */
static ft_status check_computation(const ft_model *model, ft_error *err)
{
    ft_selftest_result result;
    char text[FT_SELFTEST_TEXT];
    FT_TRY(ft_selftest_run(&result, model, err));
    return result.passed ? FT_OK
                         : ft_fail(err, FT_EDEVICE, "%s: self-test: %s", model->path,
                                   ft_selftest_describe(text, &result));
}

ft_status ft_model_open(ft_model **out, const char *path, const ft_model_options *options,
                        ft_error *err)
{
    FT_REQUIRE(out, err);
    *out = NULL;
    FT_REQUIRE(path, err);
    ft_model_options known;
    FT_TRY(FT_READ_OPTIONS(&known, ft_model_options, fake, options, err));
    FT_TRY(check_options(&known, err));
    FT_TRY(ft_model_open_with_config(out, path, &known, NULL, err));
    ft_status status = known.selftest != 0 ? check_computation(*out, err) : FT_OK;
    if (status != FT_OK) {
        ft_model_close(*out);
        *out = NULL;
    }
    return status;
}
