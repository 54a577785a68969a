/*
 * instance.c - a model on a device, with the engine that all its calls share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/serving/serving.h"

#include "runtime/mem.h"

#include <stdlib.h>

static ft_status open_on_gpu(ft_serving_instance *i, int gpu, ft_error *err)
{
    ft_model_options options = i->shared->options.model;
    char device[32];
    snprintf(device, sizeof device, "cuda:%d", gpu);
    options.device = device;
    options.verify = FT_VERIFY_STRUCTURE; /* the rest has been verified for the CPU */
    return (i->shared->options.embed ? ft_model_open_for_embedding
                                     : ft_model_open)(&i->model, i->shared->path, &options, err);
}

/* A pass of an encoder, or of the encoder of a translator, holds the longest text. */
static ft_status open_engine(ft_serving_instance *i, ft_error *err)
{
    ft_engine_options options = i->shared->options.engine;
    const ft_config *config = &i->model->config;
    const int64_t positions = config->positions - config->position_offset;
    const bool is_long = config->kind == FT_KIND_ENCODER && positions > 4096;
    options.tokenizer = i->shared->tokenizers.target;
    if (options.chunk == 0 && (i->shared->signature.translates || is_long))
        options.chunk = positions;
    i->context = (size_t) (options.context != 0 ? options.context
                           : positions < 4096   ? positions
                                                : 4096);
    return ft_engine_open(&i->engine, i->model, &options, err);
}

ft_status ft_serving_instance_open(ft_serving_instance **out, ft_serving_model *model, int gpu,
                                   ft_error *err)
{
    ft_serving_instance *i = *out = ft_calloc(1, sizeof *i);
    if (i == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for an instance");
    pthread_mutex_init(&i->lock, NULL);
    i->shared = model;
    i->model = model->cpu;
    if (gpu >= 0)
        FT_TRY(open_on_gpu(i, gpu, err));
    return open_engine(i, err);
}

void ft_serving_instance_close(ft_serving_instance *i)
{
    if (i == NULL)
        return;
    (void) ft_engine_close(i->engine, NULL);
    if (i->model != i->shared->cpu)
        ft_model_close(i->model);
    pthread_mutex_destroy(&i->lock);
    free(i);
}
