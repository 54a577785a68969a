/*
 * checkpoint_chat.h - the chat template of a checkpoint that has not been converted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_CHECKPOINT_CHAT_H
#define FT_CONVERT_TOKENIZER_CHECKPOINT_CHAT_H

#include "runtime/text/chat_template.h"

/*
 * Open the chat template in the files of `folder`. FT_EUNSUPPORTED: it has none; other errors as of
 * ft_chat_template_read(). Close with ft_chat_template_close().
 */
FT_MUST_USE ft_status ft_chat_template_open_checkpoint(ft_chat_template **out, const char *folder,
                                                       ft_error *err);

#endif
