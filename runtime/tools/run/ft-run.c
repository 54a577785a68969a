/*
 * ft-run.c - run a model on token ids, text or images: classify, embed, generate or translate.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/run/interrupt.h"
#include "runtime/tools/run/run.h"
#include "runtime/cli/signals.h"

/* Open the output first, so that an error shows before any work is done. */
static ft_status open_output(ft_atomic_file **out, const ft_run *run, ft_error *err)
{
    return run->output == NULL ? FT_OK : ft_atomic_file_open(out, run->output, run->force, err);
}

/* Decoders generate text, unless intermediate values are requested. */
static bool is_single_run(const ft_run *run, const ft_model *model)
{
    return !ft_model_generates(model) || run->outputs != NULL || run->num_keep > 0 ||
           run->images.count > 0;
}

/* Options for embeddings: the model must have one, that prompt, and so many values. */
static ft_status check_embedding(const ft_run *run, const ft_model *model, ft_error *err)
{
    int32_t size = ft_config_embedding_size(&model->config);
    ft_embedding_prompts prompts;
    const char *prompt;
    if (run->dim == 0 && run->prompt_name == NULL)
        return FT_OK;
    if (size == 0)
        return ft_fail(err, FT_EARG, "--%s applies to embeddings, but %s has none%s",
                       run->dim > 0 ? "dim" : "prompt-name", model->path,
                       model->has_cache ? "; --embed makes one" : "");
    if (run->dim > (size_t) size)
        return ft_fail(err, FT_EARG, "--dim: found %zu, expected at most the %d values of %s",
                       run->dim, size, model->path);
    ft_status status =
        ft_embedding_prompts_open_model(&prompts, &prompt, model, run->prompt_name, err);
    ft_embedding_prompts_fini(&prompts);
    return status;
}

/* Reject options that do not apply to the model's type: FT_EARG, a usage error. */
static ft_status check_use(const ft_run *run, const ft_model *model, ft_error *err)
{
    const char *kind = ft_kind_name(model->config.kind);
    const char *writing =
        run->generation_option != NULL ? run->generation_option : run->cache_option;
    if (!model->has_cache && (writing != NULL || run->session.all_logits))
        return ft_fail(err, FT_EARG, "--%s applies to decoders and encoder-decoders, but %s is %s",
                       writing != NULL ? writing : "every-logits", model->path, kind);
    FT_TRY(check_embedding(run, model, err));
    if (model->has_cache && !ft_model_generates(model) && run->generation_option != NULL)
        return ft_fail(err, FT_EARG, "--%s applies to text generation, but %s embeds texts",
                       run->generation_option, model->path);
    if (run->has_forced_bos && !ft_config_is_encoder_decoder(&model->config))
        return ft_fail(err, FT_EARG, "--forced-bos applies to encoder-decoders, but %s is %s",
                       model->path, kind);
    if (!is_single_run(run, model))
        return run->single_run_option == NULL
                   ? FT_OK
                   : ft_fail(err, FT_EARG, "--%s: needs --outputs or --keep, an encoder or --embed",
                             run->single_run_option);
    if (run->generation_option != NULL)
        return ft_fail(err, FT_EARG,
                       "--%s: does not apply with --outputs or --keep, which do not generate",
                       run->generation_option);
    return FT_OK;
}

static ft_status run_model(const ft_run *run, const ft_model *model, ft_atomic_file *output,
                           ft_error *err)
{
    if (is_single_run(run, model))
        return ft_run_forward(run, model, output, err);
    return run->search.beams > 0 ? ft_run_beam_search(run, model, output, err)
                                 : ft_run_generate(run, model, output, err);
}

/* Threads that loading starts must not take the interrupts of an interactive chat. */
static ft_status open_model(ft_model **out, const ft_run *run, ft_error *err)
{
    if (run->chat)
        ft_interrupt_hold();
    ft_status status = (run->embed ? ft_model_open_for_embedding : ft_model_open)(out, run->input,
                                                                                  &run->model, err);
    if (run->chat)
        ft_interrupt_allow();
    return status;
}

/* Returns the exit status. */
static int open_and_run(const ft_run *run)
{
    ft_atomic_file *output = NULL;
    ft_model *model = NULL;
    ft_error err;
    bool misused = false;
    ft_status status = open_output(&output, run, &err);
    if (status == FT_OK)
        status = open_model(&model, run, &err);
    if (status == FT_OK) {
        ft_tool_warn(&ft_run_tool, model->tuning_note);
        status = check_use(run, model, &err);
        misused = status != FT_OK;
    }
    if (status == FT_OK)
        status = run_model(run, model, output, &err);
    ft_model_close(model);
    ft_atomic_file_close(output);
    if (status == FT_OK)
        return 0;
    ft_tool_error(&ft_run_tool, err.text);
    return misused ? FT_EXIT_USAGE : FT_EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    ft_run run;
    ft_tool_cleanup_on_signals();
    ft_run_parse(&run, argc, argv);
    int status = open_and_run(&run);
    ft_run_free(&run);
    return ft_tool_exit_status(&ft_run_tool, status);
}
