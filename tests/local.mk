# Tests: `make check` runs all of them through the TAP driver.
# SPDX-License-Identifier: Apache-2.0

# ---- What the tests share -----------------------------------------------------------------------

# What programs here are linked with unless they say otherwise: archives, so that tests reach everything
# and each takes only what it names.
LDADD = tests/lib/libtest.a convert/libconvert.la calibrate/libcalibrate.la runtime/libimages.la runtime/libtools.la \
	runtime/libcore.la
AM_DEFAULT_SOURCE_EXT = -t.c

check_LIBRARIES += tests/lib/libtest.a
tests_lib_libtest_a_SOURCES = \
	tests/lib/folder.c tests/lib/folder.h \
	tests/lib/forge.c tests/lib/forge.h \
	tests/lib/golden.c tests/lib/golden.h \
	tests/lib/golden_rows.h tests/lib/tokenizer_sources.c tests/lib/tokenizer_sources.h \
	tests/lib/models/bert.c tests/lib/models/bert.h \
	tests/lib/models/bert_file.c tests/lib/models/bert_file.h \
	tests/lib/models/calibrated.c tests/lib/models/calibrated.h \
	tests/lib/models/converted.c tests/lib/models/converted.h \
	tests/lib/models/family.c tests/lib/models/family.h \
	tests/lib/models/llama_file.c tests/lib/models/llama_file.h \
	tests/lib/models/mixed.h \
	tests/lib/models/origin.c tests/lib/models/origin.h \
	tests/lib/models/sample_report.c tests/lib/models/sample_report.h \
	tests/lib/models/tiny.c tests/lib/models/tiny.h \
	tests/lib/models/tiny_tokenizer.h \
	tests/lib/models/translator_file.c tests/lib/models/translator_file.h \
	tests/lib/models/variant.h \
	tests/lib/models/vit_file.c tests/lib/models/vit_file.h \
	tests/lib/ops/chunks.c tests/lib/ops/chunks.h \
	tests/lib/ops/conv.c tests/lib/ops/conv.h \
	tests/lib/ops/conv_shapes.c \
	tests/lib/ops/gemm_parts.h \
	tests/lib/ops/groupwise.c tests/lib/ops/groupwise.h \
	tests/lib/ops/observed.c tests/lib/ops/observed.h \
	tests/lib/ops/oneop.c tests/lib/ops/oneop.h \
	tests/lib/ops/oracle.c tests/lib/ops/oracle.h \
	tests/lib/ops/planrun.c tests/lib/ops/planrun.h \
	tests/lib/patched.c tests/lib/patched.h \
	tests/lib/random.c tests/lib/random.h \
	tests/lib/sample.c tests/lib/sample.h \
	tests/lib/text.c tests/lib/text.h \
	tests/tap/tap.c tests/tap/tap.h

# Where single kernels run: a device, and memory on both sides.
chip = tests/lib/ops/device.c tests/lib/ops/device.h
gpu = tests/lib/ops/gpu.c tests/lib/ops/gpu.h $(chip)

# ---- Programs -----------------------------------------------------------------------------------

c_tests = \
	tests/container/amax.t \
	tests/model/api.t \
	tests/model/arguments.t \
	tests/container/artifact.t \
	tests/container/selftest.t \
	tests/kernels/attention_i8.t \
	tests/kernels/beam_search.t \
	tests/calibrate/amax_in.t \
	tests/calibrate/groupwise.t \
	tests/text/bpe.t \
	tests/text/bpe_json.t \
	tests/text/characters.t \
	tests/text/languages.t \
	tests/text/models.t \
	tests/text/piece_trie.t \
	tests/text/unigram.t \
	tests/text/chat.t \
	tests/text/jinja.t \
	tests/ops/check.t \
	tests/convert/checkpoint.t \
	tests/kernels/sample.t \
	tests/convert/config.t \
	tests/convert/config_llama.t \
	tests/convert/config_translator.t \
	tests/convert/config_vit.t \
	tests/kernels/conv.t \
	tests/convert/convert.t \
	tests/convert/targets.t \
	tests/convert/tokenizer.t \
	tests/kernels/count.t \
	tests/calibrate/counters.t \
	tests/calibrate/shards.t \
	tests/container/crash.t \
	tests/cuda/attention/attend_kv.t \
	tests/cuda/attention/store_attend.t \
	tests/cuda/attention/attention.t \
	tests/cuda/beam_search.t \
	tests/cuda/gemm_groupwise.t \
	tests/cuda/fused_f16.t \
	tests/cuda/fused_int8.t \
	tests/cuda/fused_ops.t \
	tests/cuda/conv.t \
	tests/cuda/gemm_choice.t \
	tests/cuda/sample.t \
	tests/cuda/failure.t \
	tests/cuda/fill_normal.t \
	tests/cuda/h2d_copy.t \
	tests/cuda/gemm_int8.t \
	tests/cuda/generate.t \
	tests/cuda/gemm_f16.t \
	tests/cuda/batch_invariant.t \
	tests/cuda/device.t \
	tests/cuda/messages.t \
	tests/cuda/modes.t \
	tests/cuda/tuned_kernels.t \
	tests/cuda/ops/ops.t \
	tests/cuda/encoder_decoder.t \
	tests/cuda/philox.t \
	tests/cuda/quantize/quantizer.t \
	tests/cuda/quantize/quantizer_emulated.t \
	tests/cuda/relayout.t \
	tests/cuda/sessions.t \
	tests/cuda/wgmma.t \
	tests/container/damage.t \
	tests/datasets/context_windows.t \
	tests/datasets/dataset.t \
	tests/datasets/dataset_target.t \
	tests/text/decode.t \
	tests/calibrate/evaluate.t \
	tests/calibrate/factors.t \
	tests/model/quantize_weight.t \
	tests/model/activation_checkpoint.t \
	tests/model/folded.t \
	tests/model/tuning.t \
	tests/model/smoothing.t \
	tests/graph/family.t \
	tests/graph/family_llama.t \
	tests/graph/family_translator.t \
	tests/convert/dtype_convert.t \
	tests/calibrate/fold_ranges.t \
	tests/kernels/gemm_int8.t \
	tests/kernels/amx.t \
	tests/kernels/gemm_groupwise.t \
	tests/kernels/int8_x_term.t \
	tests/kernels/gemm_f32.t \
	tests/calibrate/gptq.t \
	tests/calibrate/group_descent.t \
	tests/kernels/elementary.t \
	tests/graph/graph.t \
	tests/kernels/half.t \
	tests/kernels/linalg.t \
	tests/calibrate/knapsack.t \
	tests/calibrate/times.t \
	tests/kernels/simd.t \
	tests/datasets/image.t \
	tests/calibrate/inputs.t \
	tests/calibrate/exact_sums.t \
	tests/calibrate/correction.t \
	tests/cli/json_stream.t \
	tests/cli/listing.t \
	tests/convert/llama_convert.t \
	tests/families/embeddings.t \
	tests/families/heads.t \
	tests/families/llama_variants.t \
	tests/families/rotated_outliers.t tests/families/rotated_variants.t \
	tests/model/loader.t \
	tests/graph/lower.t \
	tests/graph/lower_fusion.t \
	tests/graph/lower_model.t \
	tests/container/manifest.t \
	tests/model/memory.t \
	tests/calibrate/method.t \
	tests/calibrate/mixed.t \
	tests/scores/class_metrics.t \
	tests/scores/metrics.t \
	tests/model/model.t \
	tests/model/modes.t \
	tests/model/option_sizes.t \
	tests/ops/ops.t \
	tests/base/atomic_file.t \
	tests/base/json_reader.t \
	tests/calibrate/packing.t \
	tests/kernels/groupwise_panel.t \
	tests/model/prefill_chunks.t \
	tests/graph/plan.t \
	tests/threads/processors.t \
	tests/cli/progress.t \
	tests/calibrate/recipe.t \
	tests/container/file_type.t \
	tests/convert/refuse.t \
	tests/convert/rotate.t tests/convert/rotation.t \
	tests/text/pipelines.t \
	tests/text/regex.t \
	tests/graph/rope.t \
	tests/generate/requests.t \
	tests/engine/engine_batches.t tests/engine/engine_generation.t \
	tests/generate/kept_cache.t tests/generate/prefix_cache.t tests/generate/sequence.t \
	tests/kernels/rows.t \
	tests/container/safetensors.t \
	tests/container/safetensors_write.t \
	tests/calibrate/schemes.t \
	tests/calibrate/smooth.t \
	tests/calibrate/report_html.t \
	tests/generate/beam_search.t \
	tests/kernels/batch_parallel.t \
	tests/model/session.t \
	tests/cli/signals.t \
	tests/cli/suspects.t \
	tests/cli/value_errors.t \
	tests/graph/sinusoids.t \
	tests/generate/stop_ids.t \
	tests/text/stop_text.t \
	tests/cli/synthetic.t \
	tests/threads/team.t \
	tests/datasets/examples.t \
	tests/threads/thread_pool.t \
	tests/threads/threads.t \
	tests/text/tokenizer.t \
	tests/text/tokenizer_json.t \
	tests/convert/translator_convert.t \
	tests/families/translator_variants.t \
	tests/threads/unload.t \
	tests/calibrate/verdict.t \
	tests/families/vit.t \
	tests/families/vit_variants.t \
	tests/text/vocabulary.t \
	tests/calibrate/weights.t \
	tests/text/word_list.t \
	tests/text/wordpiece.t \
	tests/cli/work.t \
	tests/container/zip.t

tests_kernels_beam_search_t_SOURCES = tests/kernels/beam_search-t.c tests/kernels/beam_search.c tests/kernels/beam_search.h
tests_ops_check_t_SOURCES = tests/ops/check-t.c tests/ops/check.h tests/ops/check-cases.c tests/ops/check-conv.c \
	tests/ops/check-decoder.c tests/ops/check-images.c tests/ops/check-stock.c
tests_kernels_amx_t_SOURCES = tests/kernels/amx-t.c tests/lib/amx_emulator.h
tests_kernels_amx_t_CFLAGS = $(AM_CFLAGS) $(FT_AVX512_FLAGS)
tests_kernels_sample_t_SOURCES = tests/kernels/sample-t.c tests/kernels/sample.c tests/kernels/sample.h
tests_cuda_attention_attend_kv_t_SOURCES = tests/cuda/attention/attend_kv-t.c tests/cuda/attention/attend_kv.c tests/cuda/attention/attend_kv.h \
	tests/cuda/attention/attend_kv-check.c tests/cuda/attention/attend_kv-whole.c $(gpu)
tests_cuda_attention_store_attend_t_SOURCES = tests/cuda/attention/store_attend-t.c tests/cuda/attention/attend_kv.c \
	tests/cuda/attention/attend_kv.h tests/cuda/attention/attend_kv-check.c tests/cuda/attention/attend_kv-whole.c $(gpu)
tests_cuda_attention_attention_t_SOURCES = tests/cuda/attention/attention-t.c tests/cuda/attention/attention.c \
	tests/cuda/attention/attention.h tests/cuda/attention/attention-floats.c tests/cuda/attention/attention-alone.c \
	$(gpu)
tests_cuda_beam_search_t_SOURCES = tests/cuda/beam_search-t.c tests/kernels/beam_search.c tests/kernels/beam_search.h \
	tests/kernels/sample.c tests/kernels/sample.h $(gpu)
tests_cuda_sample_t_SOURCES = tests/cuda/sample-t.c tests/kernels/sample.c tests/kernels/sample.h $(gpu)
tests_cuda_h2d_copy_t_SOURCES = tests/cuda/h2d_copy-t.c $(gpu)
tests_cuda_gemm_int8_t_SOURCES = tests/cuda/gemm_int8-t.c tests/cuda/gemm_int8.c tests/cuda/gemm_int8.h \
	$(gpu)
tests_cuda_encoder_decoder_t_SOURCES = tests/cuda/encoder_decoder-t.c $(gpu)
quantizer_checks = tests/cuda/quantize/quantizer.c tests/cuda/quantize/quantizer.h \
	tests/cuda/quantize/problem.c tests/cuda/quantize/problem.h
tests_cuda_quantize_quantizer_t_SOURCES = tests/cuda/quantize/quantizer-t.c $(quantizer_checks) $(gpu)
tests_cuda_quantize_quantizer_emulated_t_SOURCES = tests/cuda/quantize/quantizer_emulated-t.c \
	tests/cuda/quantize/emulated.c $(quantizer_checks)
tests_cuda_relayout_t_SOURCES = tests/cuda/relayout-t.c tests/cuda/gemm_int8.c tests/cuda/gemm_int8.h $(gpu)
tests_cuda_generate_t_SOURCES = tests/cuda/generate-t.c tests/lib/random.c tests/lib/random.h
tests_cuda_tuned_kernels_t_SOURCES = tests/cuda/tuned_kernels-t.c $(gpu)
tests_cuda_gemm_f16_t_SOURCES = tests/cuda/gemm_f16-t.c $(gpu)
tests_cuda_gemm_groupwise_t_SOURCES = tests/cuda/gemm_groupwise-t.c $(chip)
guarded = tests/cuda/guarded.c tests/cuda/guarded.h $(chip)
norm_group = tests/cuda/norm_group.c tests/cuda/norm_group.h $(guarded)
tests_cuda_fused_ops_t_SOURCES = tests/cuda/fused_ops-t.c $(norm_group)
tests_cuda_fused_f16_t_SOURCES = tests/cuda/fused_f16-t.c $(norm_group)
tests_cuda_fused_int8_t_SOURCES = tests/cuda/fused_int8-t.c $(guarded)
tests_cuda_batch_invariant_t_SOURCES = tests/cuda/batch_invariant-t.c tests/cuda/gemm_int8.c tests/cuda/gemm_int8.h $(gpu)
tests_cuda_device_t_SOURCES = tests/cuda/device-t.c $(gpu)
tests_cuda_wgmma_t_SOURCES = tests/cuda/wgmma-t.c $(gpu)
tests_cuda_ops_ops_t_SOURCES = tests/cuda/ops/ops-t.c tests/cuda/ops/ops.c tests/cuda/ops/ops.h \
	tests/cuda/ops/ops-counts.c tests/cuda/ops/ops-images.c tests/cuda/ops/ops-linear.c tests/cuda/ops/ops-elementwise.c tests/cuda/ops/ops-rows.c \
	$(chip)
tests_model_memory_t_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc \
	-Wl,--wrap=reallocarray,--wrap=aligned_alloc,--wrap=open_memstream
tests_calibrate_method_t_SOURCES = tests/calibrate/method-t.c tests/lib/amax_inputs.c tests/lib/amax_inputs.h
tests_ops_ops_t_SOURCES = tests/ops/ops-t.c tests/kernels/beam_search.c tests/kernels/beam_search.h tests/ops/ops-attend_kv.c \
	tests/ops/ops-attention.c tests/ops/ops-beam.c tests/ops/ops-groupwise.c tests/ops/ops-kv_cache.c tests/ops/ops-kv_cache.h \
	tests/ops/ops-conv.c tests/ops/ops-decoder.c tests/ops/ops-f16.c tests/ops/ops-images.c tests/ops/ops-linear.c \
	tests/ops/ops-elementwise.c tests/ops/ops-rows.c tests/ops/ops-smoothing.c tests/ops/ops-store_kv.c tests/ops/ops-sums.c tests/ops/ops.h
tests_datasets_examples_t_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=realloc
tests_cli_suspects_t_SOURCES = tests/cli/suspects-t.c runtime/tools/inspect/range_error.c \
	runtime/tools/inspect/weight_error.c
tests_cli_value_errors_t_SOURCES = tests/cli/value_errors-t.c runtime/tools/inspect/column_scales.c \
	runtime/tools/inspect/observed_counts.c runtime/tools/inspect/range_error.c \
	runtime/tools/inspect/suspects.c runtime/tools/inspect/value_errors.c \
	runtime/tools/inspect/weight_error.c
tests_cli_work_t_SOURCES = tests/cli/work-t.c runtime/tools/bench/single_op.c runtime/tools/bench/time.c

sh_tests = \
	tests/build/abi.sh \
	tests/build/benchmarks.sh \
	tests/tools/calibrate/amax_in.sh \
	tests/tools/bench.sh \
	tests/tools/bounds.sh \
	tests/tools/calibrate/budget.sh \
	tests/tools/calibrate/calibrate_heads.sh \
	tests/tools/calibrate/mixed.sh \
	tests/tools/calibrate/time_budget.sh \
	tests/tools/calibrate/calibrate_schemes.sh \
	tests/tools/completion.sh \
	tests/tools/convert_tool.sh \
	tests/build/cuda_libraries.sh \
	tests/tools/text/embed.sh \
	tests/tools/eval.sh \
	tests/tools/forged_artifacts.sh \
	tests/tools/disk_full.sh \
	tests/build/debian.sh \
	tests/build/harness.sh \
	tests/tools/calibrate/html_report.sh \
	tests/tools/image_bounds.sh \
	tests/tools/images.sh \
	tests/tools/images_labels.sh \
	tests/tools/inspect.sh \
	tests/tools/inspect_samples.sh \
	tests/build/install.sh \
	tests/packages/python.sh \
	tests/build/layering.sh \
	tests/build/names.sh \
	tests/tools/calibrate/weight_methods.sh \
	tests/build/manpages.sh \
	tests/tools/wrong_files.sh \
	tests/tools/not_finite.sh \
	tests/build/old.sh \
	tests/tools/address_space.sh \
	tests/tools/same_bits.sh \
	tests/tools/pipeline.sh \
	tests/tools/problem_types.sh \
	tests/tools/calibrate/provenance.sh \
	tests/tools/calibrate/shards.sh \
	tests/tools/calibrate/slurm.sh \
	tests/tools/calibrate/round_cuda.sh \
	tests/tools/selftest.sh \
	tests/tools/qwen3.sh \
	tests/tools/rotate.sh \
	tests/build/quickstart.sh \
	tests/build/readme.sh \
	tests/tools/run_cuda.sh \
	tests/tools/tuning_cuda.sh \
	tests/tools/run_generate.sh \
	tests/tools/run_progress.sh \
	tests/tools/run_search.sh \
	tests/tools/out_of_memory.sh \
	tests/tools/tables.sh \
	tests/tools/text/chat.sh \
	tests/tools/text/generate_scores.sh \
	tests/tools/text/languages.sh \
	tests/tools/text/pairs.sh \
	tests/tools/text/text_samples.sh \
	tests/tools/text/tokenize.sh \
	tests/tools/text/tokenize_chat.sh \
	tests/tools/text/tokenizer_ids.sh \
	tests/tools/truncate.sh \
	tests/tools/usage.sh

# What the scripts make their inputs with.
check_PROGRAMS += tests/programs/bounded tests/programs/make-checkpoint tests/programs/make-classifier tests/programs/make-decoder \
	tests/programs/make-sample tests/programs/make-tensors tests/programs/near-tensors tests/programs/pick-rows tests/programs/poison
tests_programs_bounded_SOURCES = tests/programs/bounded.c
tests_programs_bounded_LDADD =
check_PROGRAMS += tests/programs/gemm-candidates
tests_programs_gemm_candidates_SOURCES = tests/programs/gemm-candidates.c
check_PROGRAMS += tests/programs/forge-artifact
tests_programs_forge_artifact_SOURCES = tests/programs/forge-artifact.c
check_PROGRAMS += tests/programs/make-report tests/programs/tamper-scale
tests_programs_tamper_scale_SOURCES = tests/programs/tamper-scale.c
tests_programs_make_report_SOURCES = tests/programs/make-report.c
tests_programs_make_checkpoint_SOURCES = tests/programs/make-checkpoint.c
tests_programs_make_classifier_SOURCES = tests/programs/make-classifier.c
check_PROGRAMS += tests/programs/starve tests/programs/tokenizer-json
tests_programs_tokenizer_json_SOURCES = tests/programs/tokenizer-json.c
tests_programs_starve_SOURCES = tests/programs/starve.c
check_LTLIBRARIES += tests/lib/libscarce.la
tests_lib_libscarce_la_SOURCES = tests/lib/scarce.c
tests_lib_libscarce_la_CFLAGS = $(FT_CFLAGS)
tests_lib_libscarce_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests_lib_libscarce_la_LIBADD = -ldl
tests_programs_make_decoder_SOURCES = tests/programs/make-decoder.c
tests_programs_make_sample_SOURCES = tests/programs/make-sample.c
tests_programs_make_tensors_SOURCES = tests/programs/make-tensors.c
tests_programs_poison_SOURCES = tests/programs/poison.c
tests_programs_near_tensors_SOURCES = tests/programs/near-tensors.c
tests_programs_pick_rows_SOURCES = tests/programs/pick-rows.c

# ---- Fuzz targets -------------------------------------------------------------------------------

# One for each parser.  Without libFuzzer it is linked with replay.c, which feeds it the corpus, so
# that `make check` keeps every old crash fixed.  With it (--enable-fuzz):
#     make tests/fuzz/safetensors.t
#     tests/fuzz/safetensors.t -dict=tests/fuzz/safetensors.dict NEW tests/fuzz/corpus/safetensors
fuzz_targets = \
	tests/fuzz/amax.t \
	tests/fuzz/amax_in.t \
	tests/fuzz/artifact.t \
	tests/fuzz/chat.t \
	tests/fuzz/config.t \
	tests/fuzz/counters.t \
	tests/fuzz/dataset.t \
	tests/fuzz/image.t \
	tests/fuzz/languages.t \
	tests/fuzz/jinja.t \
	tests/fuzz/safetensors.t \
	tests/fuzz/shard.t \
	tests/fuzz/shard_index.t \
	tests/fuzz/texts.t \
	tests/fuzz/times_file.t \
	tests/fuzz/tokenizer.t \
	tests/fuzz/tokenizer_files.t \
	tests/fuzz/words.t
fuzz_common = tests/fuzz/fuzz.h tests/fuzz/mutate.c tests/fuzz/mutate.h
if WITH_FUZZ
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer
EXTRA_PROGRAMS += $(fuzz_targets)
CLEANFILES += $(fuzz_targets)
else
fuzz_common += tests/fuzz/replay.c
fuzz_ldflags = $(AM_LDFLAGS)
check_PROGRAMS += $(fuzz_targets)
TESTS += $(fuzz_targets)
endif
EXTRA_DIST += tests/fuzz/replay.c tests/fuzz/corpus tests/fuzz/amax.dict tests/fuzz/config.dict \
	tests/fuzz/jinja.dict tests/fuzz/safetensors.dict tests/fuzz/shard_index.dict \
	tests/fuzz/times_file.dict tests/fuzz/tokenizer.dict

tests_fuzz_amax_t_SOURCES = tests/fuzz/amax.c $(fuzz_common)
tests_fuzz_amax_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_amax_in_t_SOURCES = tests/fuzz/amax_in.c $(fuzz_common)
tests_fuzz_amax_in_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_artifact_t_SOURCES = tests/fuzz/artifact.c tests/fuzz/model.c tests/fuzz/model.h \
	$(fuzz_common)
tests_fuzz_artifact_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_chat_t_SOURCES = tests/fuzz/chat.c $(fuzz_common)
tests_fuzz_chat_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_config_t_SOURCES = tests/fuzz/config.c $(fuzz_common)
tests_fuzz_config_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_counters_t_SOURCES = tests/fuzz/counters.c $(fuzz_common)
tests_fuzz_counters_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_shard_t_SOURCES = tests/fuzz/shard.c $(fuzz_common)
tests_fuzz_shard_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_dataset_t_SOURCES = tests/fuzz/dataset.c $(fuzz_common)
tests_fuzz_dataset_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_image_t_SOURCES = tests/fuzz/image.c $(fuzz_common)
tests_fuzz_image_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_languages_t_SOURCES = tests/fuzz/languages.c $(fuzz_common)
tests_fuzz_languages_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_jinja_t_SOURCES = tests/fuzz/jinja.c $(fuzz_common)
tests_fuzz_jinja_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_safetensors_t_SOURCES = tests/fuzz/safetensors.c $(fuzz_common)
tests_fuzz_safetensors_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_shard_index_t_SOURCES = tests/fuzz/shard_index.c $(fuzz_common)
tests_fuzz_shard_index_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_texts_t_SOURCES = tests/fuzz/texts.c $(fuzz_common)
tests_fuzz_texts_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_times_file_t_SOURCES = tests/fuzz/times_file.c $(fuzz_common)
tests_fuzz_times_file_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_tokenizer_t_SOURCES = tests/fuzz/tokenizer.c $(fuzz_common)
tests_fuzz_tokenizer_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_tokenizer_files_t_SOURCES = tests/fuzz/tokenizer_files.c $(fuzz_common)
tests_fuzz_tokenizer_files_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_words_t_SOURCES = tests/fuzz/words.c $(fuzz_common)
tests_fuzz_words_t_LDFLAGS = $(fuzz_ldflags)

# ---- Benchmarks: built by name, `make tests/bench/gemm_int8`, and not run by `make check` ------------

replay = tests/bench/cuda/replay.c tests/bench/cuda/replay.h $(chip)
interleaved = tests/bench/cuda/interleaved.c tests/bench/cuda/interleaved.h $(replay)
row_bench = tests/bench/cuda/operands.c tests/bench/cuda/operands.h $(replay)
measure = tests/bench/measure.c tests/bench/measure.h
benchmark = tests/bench/compare.c tests/bench/compare.h $(measure)
random_artifact = tests/bench/random_artifact.c tests/bench/random_artifact.h
benchmarks = tests/bench/bound_run tests/bench/conv tests/bench/counters tests/bench/decode \
	tests/bench/encoder tests/bench/engine tests/bench/gemm_int8 tests/bench/gemm_groupwise \
	tests/bench/gemm_f32 tests/bench/open \
	tests/bench/search tests/bench/tokenizer
EXTRA_PROGRAMS += $(benchmarks)
CLEANFILES += $(benchmarks)
tests_bench_bound_run_SOURCES = tests/bench/bound_run.c $(measure)
tests_bench_conv_SOURCES = tests/bench/conv.c $(benchmark)
tests_bench_counters_SOURCES = tests/bench/counters.c $(measure)
tests_bench_decode_SOURCES = tests/bench/decode.c $(measure)
tests_bench_engine_SOURCES = tests/bench/engine.c tests/lib/random.c tests/lib/random.h
tests_bench_encoder_SOURCES = tests/bench/encoder.c $(measure)
tests_bench_gemm_int8_SOURCES = tests/bench/gemm_int8.c $(benchmark)
tests_bench_gemm_groupwise_SOURCES = tests/bench/gemm_groupwise.c tests/bench/compare_floats.c $(benchmark)
tests_bench_gemm_f32_SOURCES = tests/bench/gemm_f32.c tests/bench/compare_floats.c $(benchmark)
tests_bench_open_SOURCES = tests/bench/open.c $(measure) $(random_artifact)
tests_bench_search_SOURCES = tests/bench/search.c $(measure)
tests_bench_tokenizer_SOURCES = tests/bench/tokenizer.c $(measure)
if WITH_CUDA
benchmarks += tests/bench/cuda/attend_kv
tests_bench_cuda_attend_kv_SOURCES = tests/bench/cuda/attend_kv.c $(replay)
benchmarks += tests/bench/cuda/attention
tests_bench_cuda_attention_SOURCES = tests/bench/cuda/attention.c $(replay)
benchmarks += tests/bench/cuda/beam_search
tests_bench_cuda_beam_search_SOURCES = tests/bench/cuda/beam_search.c $(replay)
benchmarks += tests/bench/cuda/gemm_groupwise
EXTRA_LTLIBRARIES += tests/bench/libbaselines.la
tests_bench_libbaselines_la_SOURCES = tests/bench/cuda/baselines.cu tests/bench/cuda/baselines.h
tests_bench_libbaselines_la_CPPFLAGS = $(AM_CPPFLAGS)
tests_bench_cuda_gemm_groupwise_SOURCES = tests/bench/cuda/gemm_groupwise.c $(replay)
tests_bench_cuda_gemm_groupwise_LDADD = tests/bench/libbaselines.la $(LDADD) -lcublas
benchmarks += tests/bench/cuda/sample
tests_bench_cuda_sample_SOURCES = tests/bench/cuda/sample.c $(replay)
benchmarks += tests/bench/cuda/conv
tests_bench_cuda_conv_SOURCES = tests/bench/cuda/conv.c $(replay)
benchmarks += tests/bench/cuda/gemm_int8
tests_bench_cuda_gemm_int8_SOURCES = tests/bench/cuda/gemm_int8.c $(interleaved)
tests_bench_cuda_gemm_int8_LDADD = $(LDADD) -lcublasLt
benchmarks += tests/bench/cuda/gemm_f16_large_m
tests_bench_cuda_gemm_f16_large_m_SOURCES = tests/bench/cuda/gemm_f16_large_m.c $(interleaved)
tests_bench_cuda_gemm_f16_large_m_LDADD = $(LDADD) -lcublasLt
benchmarks += tests/bench/cuda/gemm_f16
tests_bench_cuda_gemm_f16_SOURCES = tests/bench/cuda/gemm_f16.c $(replay)
benchmarks += tests/bench/cuda/decoder
tests_bench_cuda_decoder_SOURCES = tests/bench/cuda/decoder.c $(replay)
benchmarks += tests/bench/cuda/norm
tests_bench_cuda_norm_SOURCES = tests/bench/cuda/norm.c $(row_bench)
benchmarks += tests/bench/cuda/rowwise
tests_bench_cuda_rowwise_SOURCES = tests/bench/cuda/rowwise.c $(row_bench)
benchmarks += tests/bench/cuda/decode_step
tests_bench_cuda_decode_step_SOURCES = tests/bench/cuda/decode_step.c $(replay)
benchmarks += tests/bench/cuda/quantize
tests_bench_cuda_quantize_SOURCES = tests/bench/cuda/quantize.c $(measure)
benchmarks += tests/bench/cuda/synthetic
tests_bench_cuda_synthetic_SOURCES = tests/bench/cuda/synthetic.c $(measure)
benchmarks += tests/bench/cuda/upload
tests_bench_cuda_upload_SOURCES = tests/bench/cuda/upload.c $(measure) $(random_artifact)
endif
if WITH_DNNL
tests_bench_gemm_int8_SOURCES += tests/bench/onednn.c tests/bench/onednn.h
tests_bench_gemm_f32_SOURCES += tests/bench/onednn.c tests/bench/onednn.h
dnnl_cppflags = -DHAVE_DNNL
dnnl_libs = -ldnnl
endif
tests_bench_gemm_int8_CPPFLAGS = $(AM_CPPFLAGS) $(dnnl_cppflags)
tests_bench_gemm_int8_LDADD = $(LDADD) $(dnnl_libs)
tests_bench_gemm_f32_CPPFLAGS = $(AM_CPPFLAGS) $(dnnl_cppflags)
tests_bench_gemm_f32_LDADD = $(LDADD) $(dnnl_libs)

.PHONY: benchmarks
benchmarks: $(benchmarks)

# ---- How they run -------------------------------------------------------------------------------

check_PROGRAMS += $(c_tests)
TESTS += $(c_tests) $(sh_tests)
EXTRA_DIST += $(sh_tests) tests/lib/bounded.sh tests/lib/language_tokenizer.sh tests/lib/need_gpu.sh tests/lib/summary.awk tests/lib/tap.sh tests/aarch64.sh tests/cluster.sh tests/run.sh tests/triton.sh tests/build/make-abi.sh tests/build/make-old.sh tests/build/same-code.sh tests/tsan.supp tests/data tests/golden
EXTRA_DIST += tests/triton/answers.py tests/triton/faults.py tests/triton/streams.py tests/triton/support.py \
	tests/triton/test_triton.py

# Scripts that compare with published software, and what they share.  Run by hand.
EXTRA_DIST += \
	tests/bench/python/bound-run.py \
	tests/bench/python/check-bert.py \
	tests/bench/python/check-groupwise.py \
	tests/bench/python/check-llama.py \
	tests/bench/python/check-m2m.py \
	tests/bench/python/check-vit.py \
	tests/bench/python/check-tasks.py \
	tests/bench/python/make-bert.py \
	tests/bench/python/make-big.py \
	tests/bench/python/minilm-check.py \
	tests/bench/python/minilm-onnx.py \
	tests/bench/python/table-groupwise.py \
	tests/bench/python/table-int8.py \
	tests/bench/python/text-call.py \
	tests/bench/python/triton-overhead.py \
	tests/bench/python/vs-ctranslate2.py \
	tests/bench/contended.sh \
	tests/bench/python/vs-cudnn.py \
	tests/bench/python/vs-cudnn-attention.py \
	tests/bench/python/vs-llama-cpp.py \
	tests/bench/python/vs-onnxruntime.py \
	tests/bench/python/vs-pytorch.py tests/bench/python/vs-tokenizers.py tests/bench/python/vs-transformers.py \
	tests/bench/python/vs-transformers-nllb.py \
	tests/lib/python/alternating.py \
	tests/lib/python/bert_onnx.py \
	tests/lib/python/lean_bert.py \
	tests/lib/python/minilm.py \
	tests/lib/python/ort_variants.py \
	tests/lib/python/docstrings.py \
	tests/lib/python/sentences.py \
	tests/lib/python/similarity.py \
	tests/lib/python/reference.py \
	tests/lib/python/st.py \
	tests/lib/python/tools.py
TEST_EXTENSIONS = .t .sh
TAP_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
T_LOG_DRIVER = $(TAP_DRIVER)
SH_LOG_DRIVER = $(TAP_DRIVER)
SH_LOG_COMPILER = $(SHELL)
AM_TESTS_ENVIRONMENT = \
	FT_BUILDDIR='$(abs_top_builddir)' FT_SRCDIR='$(abs_top_srcdir)' \
	FT_MODELS="$${FT_MODELS:-$(abs_top_srcdir)/../shared/models}"; \
	FT_CHAT_TEMPLATES="$${FT_CHAT_TEMPLATES:-$(abs_top_srcdir)/../shared/chat-templates}"; \
	TSAN_OPTIONS="suppressions=$(abs_top_srcdir)/tests/tsan.supp \
	    ignore_noninstrumented_modules=1 $${TSAN_OPTIONS}"; \
	export FT_BUILDDIR FT_SRCDIR FT_MODELS FT_CHAT_TEMPLATES TSAN_OPTIONS;

# The tests in C alone: what to run after each change, under a minute on two processors.
.PHONY: check-fast
check-fast:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(c_tests)'

.PHONY: prove
prove: all $(check_LIBRARIES) $(check_PROGRAMS)
	$(AM_TESTS_ENVIRONMENT) prove --exec '' $(c_tests)

# The C tests under valgrind: many minutes, so not a part of `make check`.
.PHONY: check-valgrind
check-valgrind:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(c_tests)' \
	  T_LOG_COMPILER='valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite \
	    --errors-for-leak-kinds=definite'
