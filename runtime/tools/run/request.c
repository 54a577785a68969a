/*
 * request.c - the request and the tokenizer of the options.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text/stop_ids.h"
#include "runtime/tools/run/generation.h"

#include <stdlib.h>
#include <string.h>

static ft_status check_stop_ids(const ft_run *run, const ft_model *model, ft_error *err)
{
    for (size_t i = 0; i < run->num_run_stop_ids; i++)
        if (run->stop_id[i] >= model->config.vocabulary)
            return ft_fail(err, FT_EARG, "--stop-id %d: expected a token id from 0 to %d",
                           run->stop_id[i], model->config.vocabulary - 1);
    return FT_OK;
}

ft_status ft_run_request(ft_request *sampling, int32_t **stop_id, const ft_run *run,
                         const ft_model *model, ft_error *err)
{
    ft_stop_ids ends = { .count = 0 };
    *sampling = run->sampling;
    *stop_id = NULL;
    FT_TRY(check_stop_ids(run, model, err));
    if (!run->ignore_end)
        FT_TRY(
            ft_stop_ids_read(&ends, model->artifact, model->path, model->config.vocabulary, err));
    *stop_id = ft_calloc(ends.count + run->num_run_stop_ids, sizeof **stop_id);
    if (*stop_id == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu stop ids",
                       ends.count + run->num_run_stop_ids);
    memcpy(*stop_id, ends.id, ends.count * sizeof *ends.id);
    memcpy(*stop_id + ends.count, run->stop_id, run->num_run_stop_ids * sizeof *run->stop_id);
    sampling->stop_ids = *stop_id;
    sampling->stops = ends.count + run->num_run_stop_ids;
    sampling->stop_strings = run->num_stop > 0 ? run->stop : NULL;
    return FT_OK;
}

int32_t ft_run_forced_bos(const ft_run *run, const ft_model *model, const ft_translator *translator)
{
    if (run->has_forced_bos)
        return run->forced_bos;
    return ft_translator_first_token(translator, model);
}

ft_status ft_run_tokenizers(ft_translator *out, const ft_run *run, const ft_model *model,
                            ft_error *err)
{
    const ft_language_pair *languages = &run->languages;
    bool has_languages = languages->source != NULL || languages->target != NULL;
    bool needed = run->data == NULL || run->num_stop > 0 || has_languages;
    *out = (ft_translator){ .first_id = -1 };
    if (!needed && !run->json && run->output != NULL)
        return FT_OK;
    ft_status status = ft_translator_open_model(out, model, languages, err);
    return status == FT_EUNSUPPORTED && !needed ? FT_OK : status;
}
