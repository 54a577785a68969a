# truncate.sh - the length of --truncate: the positions, or the limit of sentence-transformers.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
run=$FT_BUILDDIR/ft-run
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

# artifact FILE [SETTINGS]: a sentence encoder with SETTINGS in sentence_bert_config.json.
artifact () {
    rm -rf model
    mkdir -p model/1_Pooling
    cp "$FT_SRCDIR/samples/source-language-bert"/*.json model
    cp "$FT_SRCDIR/samples/source-language-bert/model.safetensors" model
    chmod -R u+w model
    echo '[{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]' \
        >model/modules.json
    echo '{"pooling_mode_mean_tokens": true}' >model/1_Pooling/config.json
    echo "${2:-{\}}" >model/sentence_bert_config.json
    test -z "${3-}" || echo "$3" >model/tokenizer_config.json
    quietly "$FT_BUILDDIR/ft-convert" -f -i model -o "$1"
}

# cut TOKENS SENTENCE ARTIFACT [OPTION...]: a text of 3000 words is truncated to TOKENS tokens.
cut () {
    tokens=$1 sentence=$2 artifact=$3
    shift 3
    is 0 "ft-run $sentence" "$run" -i "$artifact" --text long.txt --json "$@"
    says out "\"tokens\": $tokens," "ft-run $sentence: it keeps $tokens tokens"
}

yes int | head -n 3000 | paste -sd' ' >long.txt
yes int | head -n 30 | paste -sd' ' >short.txt
artifact all.ft '{}' '{"model_max_length": 1000000000000000019884624838656}'
quietly "$FT_BUILDDIR/ft-inspect" all.ft
positions=$(sed -n 's/.* \([0-9]*\) positions.*/\1/p' log)
cut "$positions" 'truncates to the number of positions without a configured length' \
    all.ft --truncate
artifact own.ft '{"max_seq_length": 16}'
cut 16 'truncates to max_seq_length' own.ft --truncate
is 0 'ft-inspect lists an artifact with max_seq_length' "$FT_BUILDDIR/ft-inspect" own.ft
says out ', texts truncated to 16 tokens' 'ft-inspect shows the length to which texts are truncated'
is 1 'ft-run refuses a text that is too long without --truncate' "$run" -i own.ft --text long.txt
says err "tokens, but the model has $positions positions" \
    'ft-run names the number of positions when it refuses a text'
is 0 'ft-run processes a text longer than max_seq_length without --truncate' \
    "$run" -i own.ft --text short.txt --json
says out '"tokens": 32,' 'ft-run does not truncate a text without --truncate'
quietly "$FT_BUILDDIR/ft-calibrate" -i own.ft -o own.int8.ft \
    -d "$FT_SRCDIR/samples/source-language-bert/calibration.safetensors" -m max
cut 16 'truncates to max_seq_length with the calibrated artifact' own.int8.ft --truncate
artifact more.ft '{"max_seq_length": 100000}'
cut "$positions" 'truncates to the number of positions if max_seq_length is larger' \
    more.ft --truncate
artifact tokenizer.ft '{"max_seq_length": null}' '{"model_max_length": 20}'
cut 20 "truncates to model_max_length if max_seq_length is absent" tokenizer.ft --truncate

echo "1..$count"
