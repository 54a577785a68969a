# language_tokenizer.sh - the tokenizer of a translator between four languages.
# SPDX-License-Identifier: Apache-2.0

# added ID TEXT [,]: the JSON of a special token.
added () {
    printf '{"id": %d, "content": "%s", "single_word": false, "lstrip": false, "rstrip": false, ' "$1" "$2"
    printf '"normalized": false, "special": true}%s' "$3"
}

# write_language_tokenizer FOLDER: the words w4 to w92, and de, en, fr and zh as the tokens 93 to 96.
write_language_tokenizer () {
    {
        printf '{"version": "1.0", "truncation": null, "padding": null, "added_tokens": ['
        added 0 '<s>' ,; added 1 '<pad>' ,; added 2 '</s>' ,; added 3 '<unk>' ,
        added 93 __de__ ,; added 94 __en__ ,; added 95 __fr__ ,; added 96 __zh__
        printf '], "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"},
"post_processor": {"type": "TemplateProcessing",
  "single": [{"SpecialToken": {"id": "__en__", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
             {"SpecialToken": {"id": "</s>", "type_id": 0}}],
  "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
  "special_tokens": {"__en__": {"id": "__en__", "ids": [94], "tokens": ["__en__"]},
                     "</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}},
"decoder": null, "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {
"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3'
        i=4
        while test "$i" -le 92; do printf ', "w%d": %d' "$i" "$i"; i=$((i + 1)); done
        echo '}}}'
    } >"$1/tokenizer.json"
    echo '{"tokenizer_class": "M2M100Tokenizer", "src_lang": "en"}' >"$1/tokenizer_config.json"
}
