# forged_artifacts.sh - artifacts with valid checksums but inconsistent contents are refused.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
run=$FT_BUILDDIR/ft-run inspect=$FT_BUILDDIR/ft-inspect forge=$FT_BUILDDIR/tests/programs/forge-artifact
sample=$FT_SRCDIR/samples/source-language-bert
. "$FT_SRCDIR/tests/lib/tap.sh"

cd "$dir" || exit 99
convert=$FT_BUILDDIR/ft-convert calibrate=$FT_BUILDDIR/ft-calibrate
quietly "$convert" -i "$sample" -o bert.ft
quietly "$calibrate" -i bert.ft -o bert.int8.ft -d "$sample/calibration.safetensors" -t 1
quietly "$FT_BUILDDIR/tests/programs/make-decoder" llama 1
quietly "$convert" -i llama -o llama.ft
quietly "$calibrate" -i llama.ft -o llama.int8.ft --scheme w8a8-dynamic -t 1
quietly "$calibrate" -i llama.ft -o llama.w8.ft --scheme w8a16 --group 0 -t 1

# refused TEXT SENTENCE FILE EDIT...: ft-run and ft-inspect --verify refuse the artifact with TEXT.
refused () {
    text=$1 subject=$2 file=$3
    shift 3
    quietly "$forge" "$file" forged.ft "$@"
    is 1 "ft-run refuses $subject" "$run" -i forged.ft 'int main(void)'
    says err "ft-run: forged.ft: $text" "ft-run names the error of $subject"
    is 1 "ft-inspect --verify refuses $subject" "$inspect" --verify forged.ft
    says out "FAILED  forged.ft: $text" "ft-inspect --verify names the error of $subject"
}

quietly "$forge" bert.int8.ft same.ft
is 0 'ft-run runs an artifact that was unpacked and packed again' "$run" -i same.ft 'x = 1'
is 0 'ft-inspect --verify finds no fault in an artifact that was unpacked and packed again' \
    "$inspect" --verify same.ft
says out 'ok      plan' 'ft-inspect --verify says that the model can be planned'
says out '0 failed; the model can be planned' \
    'ft-inspect --verify counts no failures and says again that the model can be planned'
is 0 'ft-inspect --verify --json finds no fault in an artifact that was unpacked and packed again' \
    "$inspect" --verify --json same.ft
says out '"error": null' 'ft-inspect --verify --json reports no error of the plan'

# ---- Features -----------------------------------------------------------------------------------

version=$("$run" --version | sed 's/^ft-run //')
text="forged.ft: requires fp8-weights, which version $version does not have; install version 9.0, which"
later='an artifact that requires a feature of a later version'
quietly "$forge" bert.ft forged.ft set requires '["fp8-weights"]' set tool/version '"9.0"'
is 1 "ft-run refuses $later" "$run" -i forged.ft 'x = 1'
says err "ft-run: $text" 'ft-run names the feature that it lacks, and the version that has it'
is 1 "ft-inspect --verify refuses $later" "$inspect" --verify forged.ft
says err "ft-inspect: $text" 'ft-inspect names the feature that it lacks, and the version that has it'
is 1 "ft-calibrate refuses $later" "$calibrate" -q -i forged.ft -o new.ft -d "$sample/calibration.safetensors"
says err "ft-calibrate: $text" 'ft-calibrate names the feature that it lacks, and the version that has it'

# ---- Ranges -------------------------------------------------------------------------------------

quietly "$forge" bert.int8.ft forged.ft set recipe/activations '"int8 per token"' drop amax.tsv
is 0 'ft-run runs an encoder without ranges if all activations have a scale per token' \
    "$run" -i forged.ft 'x = 1'

unzip -p bert.int8.ft amax.tsv 2>/dev/null >amax.tsv || bert_amax () { python3 -c '
import sys, zipfile
sys.stdout.buffer.write(zipfile.ZipFile("bert.int8.ft").read("amax.tsv"))'; }
test -s amax.tsv || bert_amax >amax.tsv
grep -v '^layer\.2\.attn\.q' amax.tsv >less.tsv
refused 'layer.2.attn.q: no amax for this calibration point' \
    'an encoder where one point has no range' bert.int8.ft put amax.tsv less.tsv
is 1 'ft-inspect --verify --json refuses an encoder where one point has no range' \
    "$inspect" --verify --json forged.ft
says out '"ok": false' 'ft-inspect --verify --json marks the artifact as faulty'
says out '"error": "forged.ft: layer.2.attn.q: no amax' \
    'ft-inspect --verify --json contains the error message'
is 1 'ft-run --fake refuses an encoder where one point has no range' "$run" --fake -i forged.ft 'x = 1'
is 1 'ft-inspect --plan refuses an encoder where one point has no range' "$inspect" --plan forged.ft
sed 's/^layer\.2\.attn\.q	/layer.2.attn.Q	/' amax.tsv >other.tsv
refused 'layer.2.attn.q: no amax for this calibration point' \
    'an encoder where a range has the name of no point' bert.int8.ft put amax.tsv other.tsv
{ cat amax.tsv; printf 'layer.9.attn.q\t1\tmax\t0\t40\n'; } >more.tsv
refused 'layer.9.attn.q: has an amax, but is not a calibration point of the model' \
    'an encoder with a range too many' bert.int8.ft put amax.tsv more.tsv
awk -F '\t' -v OFS='\t' '$1 == "layer.1.ffn.norm" { $3 = "per-token" } { print }' amax.tsv >token.tsv
quietly "$forge" bert.int8.ft forged.ft put amax.tsv token.tsv \
    set recipe/activations '"int8 per tensor or token"'
is 0 'ft-inspect plans an activation whose line in amax.tsv says per-token' "$inspect" --plan forged.ft
says out 'layer.1.ffn.norm  T x 256  I8 scaled by row' 'its scale is computed per token'
refused 'recipe: int8 residuals need calibrated ranges' \
    'an int8 residual stream where an activation has a scale per token' bert.int8.ft \
    put amax.tsv token.tsv set recipe/activations '"int8 per tensor or token"' \
    set recipe/residual '"int8"'
refused 'embed.norm.bias: role smoothing, expected vector' \
    'an encoder whose bias claims to smooth an activation' bert.int8.ft \
    set tensors/4/role '"smoothing"'

# ---- Recipe -------------------------------------------------------------------------------------

refused 'recipe: residual is neither float nor int8' 'a recipe with a number in place of a string' \
    bert.int8.ft set recipe/residual 7
refused 'recipe: activations is none of int8 per tensor, int8 per token' \
    'a recipe with unknown activations' bert.int8.ft set recipe/activations '"int4"'
refused 'recipe: int8 residuals need calibrated ranges' \
    'a decoder with an int8 residual stream without ranges' \
    llama.int8.ft set recipe/residual '"int8"'
refused 'recipe: head is int8, but family bert has no LM head to quantize' \
    'an encoder with an int8 LM head' bert.int8.ft set recipe/head '"int8"'
refused 'recipe: head is int8, but head.weight is float' \
    'a recipe that calls the float head of a decoder int8' llama.int8.ft \
    set recipe/head '"int8"' set tensors/20/role '"linear"'
refused 'recipe: head is blocks, but head.weight is float' \
    'a recipe that calls the float head of a decoder blocks' llama.w8.ft \
    set recipe/head '"blocks"' set tensors/20/role '"linear"'

# ---- Family -------------------------------------------------------------------------------------

refused 'config: a decoder without rope' \
    'an encoder with family llama' bert.int8.ft set family '"llama"'
refused 'config: a text encoder with members of a decoder' \
    'a decoder with family bert' llama.int8.ft set family '"bert"'
refused 'config: encoder_layers: found nothing, expected an integer from 1 to 1000' \
    'a decoder with family m2m100' llama.ft set family '"m2m100"'

# ---- Inconsistencies that are found when the manifest is read ------------------------------------

# unread TEXT SENTENCE FILE EDIT...: ft-inspect cannot even list the artifact and says TEXT.
unread () {
    text=$1 subject=$2 file=$3
    shift 3
    quietly "$forge" "$file" forged.ft "$@"
    is 1 "ft-inspect refuses $subject" "$inspect" forged.ft
    says err "ft-inspect: forged.ft: $text" "ft-inspect names the error of $subject"
    is 1 "ft-run refuses $subject" "$run" -i forged.ft 'int main(void)'
}
unread 'state int8, but no tensor is I8' 'an int8 artifact without int8 tensors' llama.w8.ft \
    set state '"int8"' set recipe '{"residual": "float", "activations": "int8 per token"}'
unread 'state blocks, but no tensor is in blocks' \
    'a group-wise artifact without a group-wise matrix' bert.ft \
    set state '"blocks"' set recipe '{}'
unread 'amax.tsv: missing in an int8 artifact' 'an int8 artifact without amax.tsv' bert.int8.ft \
    drop amax.tsv
unread 'amax.tsv: in an artifact that has no calibrated ranges' \
    'an artifact with ranges that its recipe does not use' \
    bert.int8.ft set recipe/activations '"int8 per token"'

echo "1..$count"
