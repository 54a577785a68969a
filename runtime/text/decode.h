/*
 * decode.h - token ids to text, as a tokenizer.json says.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_DECODE_H
#define FT_RUNTIME_TEXT_DECODE_H

#include "runtime/base/strbuf.h"

enum { FT_DECODING_MAX_REPLACE = 4 };

typedef enum ft_decoding_kind {
    FT_DECODING_BLANKS,    /* no decoder: a blank between tokens */
    FT_DECODING_BYTES,     /* ByteLevel: characters stand for bytes */
    FT_DECODING_METASPACE, /* one character stands for blanks */
    FT_DECODING_WORDPIECE, /* a blank before tokens without the prefix of those that continue */
    FT_DECODING_STEPS,     /* Replace, ByteFallback, Fuse, Strip, as far as there are */
    FT_DECODING_UNKNOWN,   /* `problem` says why */
} ft_decoding_kind;

typedef struct ft_decoding {
    ft_decoding_kind kind;
    char *blank;     /* METASPACE: what stands for a blank; STRIP: what goes; its own */
    bool keep_first; /* METASPACE: the first token's blanks stay */
    char *prefix;    /* WORDPIECE: "##"; its own */
    bool cleanup;    /* WORDPIECE: no blank before punctuation */
    struct {
        char *pattern, *content; /* their own */
    } replace[FT_DECODING_MAX_REPLACE];
    size_t replaces;
    bool bytes;    /* STEPS: tokens such as <0xE2> are bytes */
    bool fuse;     /* STEPS: what follows sees all tokens as one */
    int64_t strip; /* STEPS: so many `blank`s at most go at the start */
    ft_error problem;
} ft_decoding;

void ft_decoding_fini(ft_decoding *decoding);

/* Text that comes out of tokens that come one by one.  Start with { .decoding = ... }. */
typedef struct ft_decode_stream {
    const ft_decoding *decoding;
    ft_text out;   /* ready; the caller takes it and sets bytes to 0 */
    ft_text word;  /* of the token, while it is worked on */
    ft_text wait;  /* bytes that are no whole character yet, or of byte tokens */
    size_t tokens; /* so far */
    int64_t stripped;
    bool past_start; /* text has begun: nothing more is stripped */
} ft_decode_stream;

/*
 * Append what is ready with one more token, and what is left at the end; false without memory, or
 * when the token grows by more than ft_text_growth() and stream->word is full.
 */
FT_MUST_USE bool ft_decode_token(ft_decode_stream *stream, const char *text, size_t bytes);
FT_MUST_USE bool ft_decode_finish(ft_decode_stream *stream);
/* Begin another text; memory is kept. */
void ft_decode_stream_restart(ft_decode_stream *stream);
void ft_decode_stream_fini(ft_decode_stream *stream);

#endif
