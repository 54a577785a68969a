/*
 * ft-run.c - run an artifact on token ids, text or images: classify, embed, continue or translate.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/products.h"
#include "runtime/tools/run.h"
#include "runtime/tools/signals.h"

#include <string.h>

/* The output comes first: where it cannot be written, no work is started. */
static ft_status open_output(ft_output **out, const ft_run *run, ft_error *err)
{
    return run->output == NULL ? FT_OK : ft_output_open(out, run->output, run->force, err);
}

/* Decoders continue texts, unless values of the plan are asked for. */
static ft_status run_model(const ft_run *run, const ft_model *model, ft_output *output,
                           ft_error *err)
{
    bool forward = run->outputs != NULL || run->nkeep > 0 || run->nimage > 0;
    if (model->has_cache && !forward && run->running != NULL)
        return ft_fail(err, FT_EARG, "--%s: is for --outputs and --keep, or for encoders",
                       run->running);
    if (model->has_cache && !forward)
        return run->search.beams > 0 ? ft_run_search(run, model, output, err)
                                     : ft_run_generate(run, model, output, err);
    if (run->generating != NULL && !model->has_cache)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: --%s: a model of family %s does not generate",
                       model->path, run->generating, model->family->name);
    if (run->generating != NULL)
        return ft_fail(err, FT_EARG, "--%s: --outputs and --keep do not generate", run->generating);
    if (run->data == NULL && run->text == NULL && run->noperand == 0 && run->nimage == 0)
        return ft_fail(err, FT_EARG, "there is nothing to run");
    return ft_run_forward(run, model, output, err);
}

static ft_status open_and_run(const ft_run *run, ft_error *err)
{
    ft_output *output = NULL;
    ft_model *model = NULL;
    ft_status status = open_output(&output, run, err);
    if (status == FT_OK)
        status = ft_model_open(&model, run->input, &run->model, err);
    if (status == FT_OK)
        status = run_model(run, model, output, err);
    ft_model_close(model);
    ft_output_close(output);
    return status;
}

ft_status ft_run_texts(ft_texts *out, const ft_run *run, ft_error *err)
{
    if (run->text == NULL)
        return ft_texts_copy(out, run->operand, run->noperand, err);
    return ft_texts_read(out, run->text, run->whole, err);
}

/* The plan, and how its int8 products are computed in runs of up to the size of this session's. */
ft_status ft_run_explain(const ft_run *run, ft_session *session, ft_error *err)
{
    ft_batch runs[FT_USUAL_RUNS];
    if (!run->verbose)
        return FT_OK;
    FT_TRY(ft_model_write_plan(session->model, stderr, err));
    return ft_products_write(session, runs, ft_products_usual(session, runs), stderr, err);
}

int main(int argc, char **argv)
{
    ft_run run;
    ft_error err;
    ft_tool_tidy_on_signals();
    ft_run_parse(&run, argc, argv);
    int status = open_and_run(&run, &err) == FT_OK ? 0 : ft_tool_fail(&ft_run_tool, err.text);
    ft_run_free(&run);
    return ft_tool_end(&ft_run_tool, status);
}
