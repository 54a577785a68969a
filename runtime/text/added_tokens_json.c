/*
 * added_tokens_json.c - parse the section "added_tokens".
 *
 * The `tokenizers` library gives an added token the id of the same word in the vocabulary, or else
 * the next free id, and ignores the "id" in the file. A file in which they differ is therefore
 * rejected. The library does not know "at_start", which ft-convert writes for languages that Marian
 * reads at the start of a text only.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer_json.h"

#include "runtime/error.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    const char *content; /* owned by the JSON value */
    ft_added_token token;
    bool normalized, special;
} added_token;

static ft_status read_added_token(added_token *out, const ft_json_reader *in)
{
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "id", "content", "single_word", "lstrip", "rstrip",
                                  "normalized", "special", "at_start"));
    FT_TRY(ft_json_read_string(in, "content", &out->content));
    FT_TRY(
        ft_json_to_int32(in, "id", json_object_get(in->json, "id"), 0, INT32_MAX, &out->token.id));
    FT_TRY(ft_json_read_bool(in, "single_word", &out->token.single_word));
    FT_TRY(ft_json_read_bool(in, "lstrip", &out->token.lstrip));
    FT_TRY(ft_json_read_bool(in, "rstrip", &out->token.rstrip));
    FT_TRY(ft_json_read_bool(in, "normalized", &out->normalized));
    FT_TRY(ft_json_read_optional_bool(in, "at_start", false, &out->token.at_start));
    if (out->token.at_start && out->normalized)
        return ft_json_fail_value(in, FT_EUNSUPPORTED, "normalized", json_true(),
                                  "false, which at_start needs");
    return ft_json_read_bool(in, "special", &out->special);
}

/* The id must be the one in the vocabulary, or else the next free one. */
static ft_status check_added_id(const added_token *added, const ft_vocabulary_token *existing,
                                int64_t next_id, const ft_json_reader *in)
{
    int64_t expected = existing == NULL ? next_id : existing->id;
    if (added->token.id != expected)
        return ft_fail(in->err, FT_EUNSUPPORTED,
                       "%s: %sid: found %" PRId32 ", expected %" PRId64 ", %s", in->file, in->path,
                       added->token.id, expected,
                       existing == NULL ? "the next free one" : "as in the vocabulary");
    if (existing != NULL && existing->added)
        return ft_fail(in->err, FT_EUNSUPPORTED, "%s: %scontent: \"%.64s\" is added twice",
                       in->file, in->path, added->content);
    return FT_OK;
}

/* Add it to the vocabulary unless it is there; *next_id is the next free id. */
static ft_status add_to_vocabulary(ft_vocabulary *vocabulary, const added_token *added,
                                   int64_t *next_id, const ft_json_reader *in)
{
    size_t bytes = strlen(added->content);
    ft_vocabulary_token *token = ft_vocabulary_find(vocabulary, added->content, bytes);
    FT_TRY(check_added_id(added, token, *next_id, in));
    if (token == NULL) {
        if (ft_vocabulary_add(vocabulary, added->content, bytes, added->token.id) != FT_OK)
            return ft_json_fail_no_memory(in);
        token = &vocabulary->token[vocabulary->count - 1];
        token->foreign = true;
        ++*next_id;
    }
    token->added = true;
    token->special = added->special;
    return FT_OK;
}

/*
 * Empty contents match everywhere, and among equal ones the library picks an arbitrary one: reject
 * both.
 */
static ft_status add_content(ft_added_tokens *set, const char *content, size_t bytes,
                             const added_token *added, const ft_json_reader *in)
{
    int32_t other;
    if (bytes == 0)
        return ft_json_fail(in, FT_EUNSUPPORTED, "%scontent: \"%.64s\" is empty%s", in->path,
                            added->content, added->normalized ? " when normalized" : "");
    if (ft_trie_longest_prefix(&set->trie, FT_TRIE_ROOT, content, bytes, &other) == bytes)
        return ft_json_fail(in, FT_EUNSUPPORTED,
                            "%scontent: \"%.64s\" normalizes to the same text as another", in->path,
                            added->content);
    ft_status rc = ft_added_tokens_add(set, content, bytes, added->token);
    if (rc == FT_ELIMIT)
        return ft_json_fail(in, rc, "added_tokens: more than 2^24 prefixes");
    return rc == FT_OK ? FT_OK : ft_json_fail_no_memory(in);
}

/* Decoding returns the normalized form of a token that is matched in normalized text. */
static ft_status set_decoded_normalized(ft_vocabulary *vocabulary, const added_token *added,
                                        const char *text, size_t bytes, const ft_json_reader *in)
{
    ft_vocabulary_token *token =
        ft_vocabulary_find(vocabulary, added->content, strlen(added->content));
    if (ft_vocabulary_token_equals(vocabulary, token, text, bytes))
        return FT_OK;
    return ft_vocabulary_set_decoded(vocabulary, token, text, bytes) ? FT_OK
                                                                     : ft_json_fail_no_memory(in);
}

/* A token that is matched in normalized text is normalized itself. */
static ft_status add_token(ft_tokenizer *t, const added_token *added, const ft_json_reader *in)
{
    const char *text = added->content;
    const size_t content = strlen(text), growth = ft_strbuf_growth_limit(content);
    size_t bytes = content;
    ft_normalizer_run run;
    ft_aligned_text normal = { .text = text, .bytes = bytes };
    if (!added->normalized || bytes == 0)
        return add_content(added->normalized ? &t->normalized : &t->raw, text, bytes, added, in);
    ft_normalizer_run_init(&run, content, false);
    ft_status rc = ft_normalizer_apply(&t->normalizer, &run, &normal);
    text = normal.text;
    bytes = normal.bytes;
    if (rc == FT_OK)
        rc = add_content(&t->normalized, text, bytes, added, in);
    else if (rc == FT_ELIMIT)
        rc = ft_json_fail(in, rc, "%scontent: normalizer: adds more than %zu bytes to its %zu",
                          in->path, growth, content);
    else
        rc = ft_json_fail_no_memory(in);
    if (rc == FT_OK)
        rc = set_decoded_normalized(&t->model.vocabulary, added, text, bytes, in);
    ft_normalizer_run_fini(&run);
    return rc;
}

/* Where the vocabulary's ids have gaps, the next free id may be in use. */
static ft_status check_duplicate_ids(ft_vocabulary *vocabulary, const ft_json_reader *file)
{
    if (!ft_vocabulary_sort(vocabulary))
        return ft_json_fail_no_memory(file);
    const ft_vocabulary_token *duplicate = ft_vocabulary_find_duplicate_id(vocabulary);
    if (duplicate == NULL)
        return FT_OK;
    return ft_json_fail(file, FT_EUNSUPPORTED,
                        "added_tokens: id %" PRId32 " is used by a word of the vocabulary",
                        duplicate->id);
}

ft_status ft_json_read_added_tokens(ft_tokenizer *t, const ft_json_reader *file)
{
    json_t *list;
    int64_t next_id = (int64_t) t->model.vocabulary.count;
    if (json_object_get(file->json, "added_tokens") == NULL)
        return FT_OK;
    FT_TRY(ft_json_read_array(file, "added_tokens", &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        ft_json_reader in = ft_json_read_element(file, "added_tokens", i);
        added_token added;
        FT_TRY(read_added_token(&added, &in));
        FT_TRY(add_to_vocabulary(&t->model.vocabulary, &added, &next_id, &in));
        FT_TRY(add_token(t, &added, &in));
    }
    return check_duplicate_ids(&t->model.vocabulary, file);
}
