/*
 * vocabulary.c - one text buffer, one array of tokens, one hash table with linear probing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/models/vocabulary.h"

#include "runtime/mem.h"

#include <stdlib.h>
#include <unistd.h>

enum { MIN_SLOTS = 1024 };

void ft_random_hash_key(uint64_t key[2])
{
    if (getentropy(key, 2 * sizeof *key) != 0) { /* a fixed key only allows crafted collisions */
        key[0] = 0x9e3779b97f4a7c15;
        key[1] = 0xd1b54a32d192ed03;
    }
    key[1] |= 1;
}

static uint32_t hash_of(const ft_vocabulary *v, const char *text, size_t bytes)
{
    uint64_t hash = v->key[0] ^ bytes, word64;
    for (; bytes > 8; bytes -= 8, text += 8) {
        memcpy(&word64, text, 8);
        hash = ft_hash_mix(hash ^ word64, v->key[1]);
    }
    word64 = 0;
    memcpy(&word64, text, bytes);
    hash = ft_hash_mix(hash ^ word64, v->key[1]);
    return (uint32_t) (hash ^ hash >> 32);
}

/* The slot of the token with this text, or the free slot where it belongs. */
static ft_vocabulary_slot *find_slot(const ft_vocabulary *v, const char *text, size_t bytes,
                                     uint32_t hash)
{
    for (size_t i = hash;; i++) {
        ft_vocabulary_slot *slot = &v->slot[i & (v->n_slots - 1)];
        if (slot->token == 0 ||
            (slot->hash == hash &&
             ft_vocabulary_token_equals(v, &v->token[slot->token - 1], text, bytes)))
            return slot;
    }
}

static bool grow_slots(ft_vocabulary *v)
{
    size_t n_slots = v->n_slots == 0 ? MIN_SLOTS : v->n_slots * 2;
    ft_vocabulary_slot *slot = ft_calloc(n_slots, sizeof *slot);
    if (slot == NULL)
        return false;
    for (size_t i = 0; i < v->n_slots; i++) {
        size_t to = v->slot[i].hash;
        if (v->slot[i].token == 0)
            continue;
        while (slot[to & (n_slots - 1)].token != 0)
            to++;
        slot[to & (n_slots - 1)] = v->slot[i];
    }
    if (v->n_slots == 0)
        ft_random_hash_key(v->key);
    free(v->slot);
    v->slot = slot;
    v->n_slots = n_slots;
    return true;
}

static bool grow_tokens(ft_vocabulary *v)
{
    ft_vocabulary_token *token =
        ft_array_grow(v->token, &v->capacity, MIN_SLOTS / 2, sizeof *token);
    if (token != NULL)
        v->token = token;
    return token != NULL;
}

/* Whether offsets into the text still fit 32 bits with `bytes` more bytes. */
static bool fits_offsets(const ft_vocabulary *v, size_t bytes)
{
    return bytes <= UINT32_MAX && v->text.bytes <= UINT32_MAX - bytes;
}

/* Make room for one more token. */
static bool reserve_token(ft_vocabulary *v)
{
    return (v->count < v->n_slots / 2 || grow_slots(v)) &&
           (v->count < v->capacity || grow_tokens(v));
}

/* Append a token, to which the slot of its text then leads. */
static ft_status append_token(ft_vocabulary *v, const char *text, size_t bytes, int32_t id,
                              ft_vocabulary_slot *slot, uint32_t hash)
{
    uint32_t start = (uint32_t) v->text.bytes;
    /* One byte more, so that the empty text has an address too. */
    if (!fits_offsets(v, bytes) || !ft_strbuf_reserve(&v->text, bytes + 1) ||
        !ft_strbuf_append(&v->text, text, bytes))
        return FT_ENOMEM;
    v->token[v->count++] = (ft_vocabulary_token){ .start = start,
                                                  .bytes = (uint32_t) bytes,
                                                  .decoded_start = start,
                                                  .decoded_bytes = (uint32_t) bytes,
                                                  .id = id };
    *slot = (ft_vocabulary_slot){ .hash = hash, .token = (uint32_t) v->count };
    return FT_OK;
}

ft_status ft_vocabulary_add(ft_vocabulary *v, const char *text, size_t bytes, int32_t id)
{
    if (!reserve_token(v))
        return FT_ENOMEM;
    uint32_t hash = hash_of(v, text, bytes);
    ft_vocabulary_slot *slot = find_slot(v, text, bytes, hash);
    return slot->token != 0 ? FT_EARG : append_token(v, text, bytes, id, slot, hash);
}

ft_status ft_vocabulary_add_last(ft_vocabulary *v, const char *text, size_t bytes, int32_t id)
{
    if (!reserve_token(v))
        return FT_ENOMEM;
    uint32_t hash = hash_of(v, text, bytes);
    return append_token(v, text, bytes, id, find_slot(v, text, bytes, hash), hash);
}

bool ft_vocabulary_set_decoded(ft_vocabulary *v, ft_vocabulary_token *token, const char *text,
                               size_t bytes)
{
    if (!fits_offsets(v, bytes))
        return false;
    token->decoded_start = (uint32_t) v->text.bytes;
    token->decoded_bytes = (uint32_t) bytes;
    return ft_strbuf_append(&v->text, text, bytes);
}

ft_vocabulary_token *ft_vocabulary_find(const ft_vocabulary *v, const char *text, size_t bytes)
{
    if (v->n_slots == 0)
        return NULL;
    uint32_t index = find_slot(v, text, bytes, hash_of(v, text, bytes))->token;
    return index == 0 ? NULL : &v->token[index - 1];
}

/* ---- By id -------------------------------------------------------------------------------- */

static const ft_vocabulary_token *token_by_rank(const ft_vocabulary *v, size_t rank)
{
    return &v->token[v->by_id == NULL ? rank : v->by_id[rank]];
}

/* id << 32 | index, which sort by id. */
static int compare_keys(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *) a, right = *(const uint64_t *) b;
    return (left > right) - (left < right);
}

static bool ids_ascending(const ft_vocabulary *v)
{
    size_t i = 1;
    while (i < v->count && v->token[i - 1].id < v->token[i].id)
        i++;
    return i >= v->count;
}

bool ft_vocabulary_sort(ft_vocabulary *v)
{
    free(v->by_id);
    v->by_id = NULL;
    if (ids_ascending(v))
        return true;
    uint64_t *rank = ft_calloc(v->count, sizeof *rank);
    uint32_t *by_id = ft_calloc(v->count, sizeof *by_id);
    if (rank != NULL && by_id != NULL) {
        for (size_t i = 0; i < v->count; i++)
            rank[i] = (uint64_t) v->token[i].id << 32 | i;
        qsort(rank, v->count, sizeof *rank, compare_keys);
        for (size_t i = 0; i < v->count; i++)
            by_id[i] = (uint32_t) rank[i];
        v->by_id = by_id;
        by_id = NULL;
    }
    free(rank);
    free(by_id);
    return v->by_id != NULL;
}

const ft_vocabulary_token *ft_vocabulary_find_duplicate_id(const ft_vocabulary *v)
{
    for (size_t i = 1; i < v->count; i++)
        if (token_by_rank(v, i)->id == token_by_rank(v, i - 1)->id)
            return token_by_rank(v, i);
    return NULL;
}

const ft_vocabulary_token *ft_vocabulary_at(const ft_vocabulary *v, int32_t id)
{
    size_t low = 0, high = v->count;
    /* Without gaps, the usual case, the position of a token is its id. */
    if (id >= 0 && (size_t) id < v->count && token_by_rank(v, (size_t) id)->id == id)
        return token_by_rank(v, (size_t) id);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (token_by_rank(v, middle)->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < v->count && token_by_rank(v, low)->id == id ? token_by_rank(v, low) : NULL;
}

void ft_vocabulary_fini(ft_vocabulary *v)
{
    ft_strbuf_fini(&v->text);
    free(v->token);
    free(v->slot);
    free(v->by_id);
    *v = (ft_vocabulary){ 0 };
}
