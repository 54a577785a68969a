/*
 * refuse.c - detect quantized weights and adapters by config.json and by the names of files and
 * tensors.
 *
 * Sources: transformers' QuantizationMethod and the formats of AutoGPTQ, AutoAWQ, bitsandbytes,
 * compressed-tensors and peft.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/refuse.h"

#include "convert/checkpoint/text_file.h"
#include "convert/config/config_reader.h"
#include "runtime/base/affix.h"
#include "runtime/base/file_name.h"
#include "runtime/mem.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Quantized weights ---------------------------------------------------------------------- */

/* `calibrate_options` are those of ft-calibrate that quantize a float model comparably. */
static const struct {
    const char *method, *name, *calibrate_options;
} methods[] = {
    { "gptq", "GPTQ", "--scheme w4a16 --round gptq -d DATA" },
    { "awq", "AWQ", "--scheme w4a16 --scale awq -d DATA" },
    { "bitsandbytes", "bitsandbytes", "--scheme w4a16" },
    { "bitsandbytes_4bit", "bitsandbytes", "--scheme w4a16" },
    { "bitsandbytes_8bit", "bitsandbytes", "--scheme w8a16" },
    { "compressed-tensors", "compressed-tensors", "--scheme w8a8-dynamic" },
    { "fp8", "FP8", "--scheme w8a8-dynamic" },
    { "fbgemm_fp8", "FP8 (FBGEMM)", "--scheme w8a8-dynamic" },
    { "mxfp4", "MXFP4", "--scheme w4a16" },
};

static ft_status reject_method(const char *label, const char *name, const char *calibrate_options,
                               ft_messages *problems)
{
    return ft_messages_add(
        problems, FT_EUNSUPPORTED,
        "%s: weights quantized by %s are not supported; convert the float checkpoint "
        "that they were made from, then quantize it with ft-calibrate %s",
        label, name, calibrate_options);
}

static const char *method_of(const json_t *config)
{
    const char *method = json_string_value(json_object_get(config, "quant_method"));
    if (method != NULL)
        return method;
    bool is_bitsandbytes = json_is_true(json_object_get(config, "load_in_4bit")) ||
                           json_is_true(json_object_get(config, "load_in_8bit"));
    return is_bitsandbytes ? "bitsandbytes" : NULL;
}

ft_status ft_reject_quantized(const json_t *config, const char *label, ft_messages *problems)
{
    char text[FT_JSON_SNIPPET_SIZE];
    if (config == NULL || ft_json_is_empty(config))
        return FT_OK;
    const char *method = method_of(config);
    for (size_t i = 0; method != NULL && i < FT_COUNT(methods); i++)
        if (strcmp(methods[i].method, method) == 0)
            return reject_method(label, methods[i].name, methods[i].calibrate_options, problems);
    if (method != NULL)
        return reject_method(label, method, "--scheme w4a16", problems);
    return ft_messages_add(
        problems, FT_EUNSUPPORTED,
        "%s: quantization_config is %s, but quantized weights are not supported; "
        "convert the float checkpoint that they were made from, then quantize it with "
        "ft-calibrate",
        label, ft_json_snippet(text, config));
}

/* ---- Adapters ------------------------------------------------------------------------------- */

static ft_status reject_adapter(const char *label, const char *base, ft_messages *problems)
{
    return ft_messages_add(problems, FT_EUNSUPPORTED,
                           "%s: an adapter (LoRA) of %s, not a model; merge them in Python with "
                           "PeftModel.from_pretrained(base, folder).merge_and_unload() of peft, "
                           "save_pretrained() that, and convert it",
                           label, base);
}

/* ---- Files ---------------------------------------------------------------------------------- */

typedef struct {
    char path[PATH_MAX];
    int length; /* of the folder, including its slash */
} folder;

/* The folder that `path` is, or the folder of the file `path`. */
static bool find_folder(folder *out, const char *path)
{
    struct stat file_stat;
    const char *slash = strrchr(path, '/');
    if (stat(path, &file_stat) == 0 && S_ISDIR(file_stat.st_mode))
        out->length = snprintf(out->path, sizeof out->path, "%s/", path);
    else
        out->length = snprintf(out->path, sizeof out->path, "%.*s",
                               slash == NULL ? 0 : (int) (slash - path + 1), path);
    return out->length < (int) sizeof out->path;
}

static const char *path_in(folder *f, const char *name)
{
    size_t capacity = sizeof f->path - (size_t) f->length;
    int length = snprintf(f->path + f->length, capacity, "%s", name);
    return length < (int) capacity ? f->path : "";
}

static bool has_file(folder *f, const char *name)
{
    struct stat file_stat;
    return stat(path_in(f, name), &file_stat) == 0 && S_ISREG(file_stat.st_mode);
}

/* NULL when the file is missing or not a JSON object. */
static json_t *read_object(folder *f, const char *name)
{
    char *text;
    size_t bytes;
    if (!has_file(f, name) || ft_text_file_read(path_in(f, name), &text, &bytes, NULL) != FT_OK)
        return NULL;
    ft_json_reader in = { .file = name };
    (void) ft_json_load(&in, JSON_OBJECT, text, bytes, FT_JSON_MAX_BYTES);
    free(text);
    return in.json;
}

static ft_status reject_config(folder *f, ft_messages *problems)
{
    json_t *config = read_object(f, "config.json");
    const json_t *settings = json_object_get(config, "quantization_config");
    if (settings == NULL)
        settings = json_object_get(config, "compression_config"); /* old compressed-tensors */
    ft_status rc = ft_reject_quantized(settings, "config.json", problems);
    json_decref(config);
    return rc;
}

/* Files that quantization tools wrote before config.json had a quantization_config. */
static ft_status reject_tool_settings(const folder *f, ft_messages *problems)
{
    static const struct {
        const char *file, *name, *calibrate_options;
    } known[] = {
        { "quantize_config.json", "GPTQ", "--scheme w4a16 --round gptq -d DATA" },
        { "quant_config.json", "AWQ", "--scheme w4a16 --scale awq -d DATA" },
        { "hf_quant_config.json", "NVIDIA ModelOpt", "--scheme w8a8-dynamic" },
    };
    folder copy = *f;
    for (size_t i = 0; i < FT_COUNT(known); i++)
        if (has_file(&copy, known[i].file))
            return reject_method(known[i].file, known[i].name, known[i].calibrate_options,
                                 problems);
    return FT_OK;
}

/* An adapter next to complete weights is rejected later, together with them. */
static ft_status reject_lone_adapter(folder *f, const char *path, ft_messages *problems)
{
    bool is_adapter_file = strncmp(ft_file_name(path), "adapter_model.", 14) == 0;
    bool has_model =
        has_file(f, "model.safetensors") || has_file(f, "model.safetensors.index.json") ||
        has_file(f, "pytorch_model.bin") || has_file(f, "pytorch_model.bin.index.json");
    if (!has_file(f, "adapter_config.json") || (has_model && !is_adapter_file))
        return FT_OK;
    json_t *config = read_object(f, "adapter_config.json");
    const char *base = json_string_value(json_object_get(config, "base_model_name_or_path"));
    ft_status rc =
        reject_adapter("adapter_config.json", base != NULL ? base : "some base model", problems);
    json_decref(config);
    return rc;
}

ft_status ft_reject_folder(const char *path, ft_messages *problems)
{
    folder f;
    if (!find_folder(&f, path))
        return FT_OK;
    ft_status rc = reject_lone_adapter(&f, path, problems);
    if (rc == FT_OK)
        rc = reject_config(&f, problems);
    return rc == FT_OK ? reject_tool_settings(&f, problems) : rc;
}

/* ---- Tensors -------------------------------------------------------------------------------- */

ft_status ft_reject_tensors(const ft_checkpoint *checkpoint, ft_messages *problems)
{
    static const struct {
        const char *end, *name;
    } known[] = {
        { ".qweight", "GPTQ or AWQ" },  { ".weight.absmax", "bitsandbytes" },
        { ".SCB", "bitsandbytes" },     { ".weight_packed", "compressed-tensors" },
        { ".weight_scale_inv", "FP8" }, { ".weight_scale", "FP8 or compressed-tensors" },
        { ".weight_blocks", "MXFP4" },
    };
    for (size_t i = 0; i < ft_checkpoint_count(checkpoint); i++) {
        const char *name = ft_checkpoint_at(checkpoint, i)->name;
        if (ft_ends_with(name, ".lora_A.weight"))
            return reject_adapter(name, "some base model", problems);
        for (size_t k = 0; k < FT_COUNT(known); k++)
            if (ft_ends_with(name, known[k].end))
                return reject_method(name, known[k].name, "--scheme w4a16", problems);
    }
    return FT_OK;
}
