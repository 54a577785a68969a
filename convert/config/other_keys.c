/*
 * other_keys.c - keys of config.json without a rule: known to be harmless, or rejected.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/config_reader.h"

#include "convert/config/refuse.h"
#include "runtime/mem.h"

#include <string.h>

/*
 * Keys that do not change inference, unless the architecture has a rule for them: training,
 * bookkeeping, special tokens, text generation, optional outputs, and the pooler_* keys of old
 * checkpoints, which nothing reads.
 */
/* clang-format off */
static const char *const harmless[] = {
    "model_type", "architectures", "id2label", "label2id", "num_labels", "_num_labels",

    "_name_or_path", "_commit_hash", "name_or_path", "transformers_version", "torch_dtype",
    "dtype", "transformers.js_config", "finetuning_task", "problem_type", "task_specific_params",
    "tokenizer_class", "language", "vocab_file", "sentence_transformers",
    "sbert_ce_default_activation_function", "sbert_ce_default_activation_fn",
    "_attn_implementation", "_attn_implementation_autoset", "attn_implementation",
    "unsloth_fixed", "unsloth_version",

    "attention_probs_dropout_prob", "hidden_dropout_prob", "classifier_dropout",
    "initializer_range", "initializer_factor", "layerdrop", "gradient_checkpointing",
    "keys_to_ignore_at_inference", "chunk_size_feed_forward", "tie_word_embeddings",
    "tie_encoder_decoder", "torchscript", "tf_legacy_loss", "use_bfloat16", "xla_device",

    "bos_token_id", "eos_token_id", "eos_token_ids", "sep_token_id", "cls_token_id",
    "mask_token_id", "unk_token_id", "decoder_start_token_id", "prefix",

    "use_cache", "output_past", "output_attentions", "output_hidden_states", "output_scores",
    "return_dict", "return_dict_in_generate",

    "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
    "diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty",
    "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids",
    "num_return_sequences", "remove_invalid_values", "forced_bos_token_id", "forced_eos_token_id",
    "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens",

    "directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
    "pooler_size_per_head", "pooler_type",
};
/* clang-format on */

static bool is_harmless(const char *key)
{
    for (size_t i = 0; i < FT_COUNT(harmless); i++)
        if (strcmp(harmless[i], key) == 0)
            return true;
    return false;
}

static bool has_rule(const ft_config_reader *r, const char *key)
{
    const ft_config_rule *rule;
    for (size_t i = 0; (rule = ft_architecture_rule(r->architecture, i)) != NULL; i++)
        if (strcmp(rule->key, key) == 0)
            return true;
    return false;
}

bool ft_config_is_ignored(const ft_config_reader *reader, const char *key)
{
    for (const char *const *name = reader->ignored; name != NULL && *name != NULL; name++)
        if (strcmp(*name, key) == 0)
            return true;
    return false;
}

void ft_config_reject_unknown(const ft_config_reader *reader, const char *key, const json_t *value)
{
    char text[FT_JSON_SNIPPET_SIZE], path[sizeof reader->in.path + 64];
    snprintf(path, sizeof path, "%s%.64s", reader->in.path, key);
    if (!ft_json_is_empty(value) && !ft_config_is_ignored(reader, path))
        ft_json_fail(&reader->in, FT_EUNSUPPORTED,
                     "%s is %s, which may change the result; pass --ignore-key %s if it does not",
                     path, ft_json_snippet(text, value), path);
}

void ft_config_check_other_keys(const ft_config_reader *reader)
{
    const char *key;
    json_t *value;
    json_object_foreach(reader->in.json, key, value)
    {
        if (strcmp(key, "quantization_config") == 0)
            ft_reject_quantized(value, reader->in.file, reader->in.problems);
        else if (!is_harmless(key) && !has_rule(reader, key))
            ft_config_reject_unknown(reader, key, value);
    }
}
