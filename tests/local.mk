# Tests: `make check` runs all of them through the TAP driver.
# SPDX-License-Identifier: Apache-2.0

# ---- What the tests share -----------------------------------------------------------------------

check_LIBRARIES += tests/tap/libtap.a
tests_tap_libtap_a_SOURCES = tests/tap/tap.c tests/tap/tap.h
test_libs = tests/tap/libtap.a runtime/libcore.la
calibrate_test_libs = tests/tap/libtap.a calibrate/libcalibrate.la

check_LIBRARIES += tests/lib/libsample.a
tests_lib_libsample_a_SOURCES = \
	tests/lib/folder.c tests/lib/folder.h \
	tests/lib/forge.c tests/lib/forge.h \
	tests/lib/golden.c tests/lib/golden.h \
	tests/lib/patched.c tests/lib/patched.h \
	tests/lib/sample.c tests/lib/sample.h
sample_test_libs = tests/lib/libsample.a $(test_libs)

# Where single kernels run: a device, and memory on both sides.
chip = tests/lib/chip.c tests/lib/chip.h
gpu = tests/lib/gpu.c tests/lib/gpu.h $(chip)

check_LIBRARIES += tests/lib/libtiny.a
tests_lib_libtiny_a_SOURCES = \
	tests/lib/converted.c tests/lib/converted.h \
	tests/lib/llama_file.c tests/lib/llama_file.h \
	tests/lib/mixed.h \
	tests/lib/origin.c tests/lib/origin.h \
	tests/lib/tiny.c tests/lib/tiny.h \
	tests/lib/translator_file.c tests/lib/translator_file.h \
	tests/lib/vit_file.c tests/lib/vit_file.h
convert_test_libs = tests/lib/libtiny.a tests/lib/libsample.a convert/libconvert.la $(test_libs)

check_LIBRARIES += tests/lib/liblib.a
tests_lib_liblib_a_SOURCES = \
	tests/lib/blocked.c tests/lib/blocked.h \
	tests/lib/bert.c tests/lib/bert.h \
	tests/lib/bert_file.c tests/lib/bert_file.h \
	tests/lib/chunks.c tests/lib/chunks.h \
	tests/lib/conv.c tests/lib/conv.h \
	tests/lib/conv_shapes.c \
	tests/lib/family.c tests/lib/family.h \
	tests/lib/observed.c tests/lib/observed.h \
	tests/lib/oneop.c tests/lib/oneop.h \
	tests/lib/planrun.c tests/lib/planrun.h \
	tests/lib/oracle.c tests/lib/oracle.h \
	tests/lib/random.c tests/lib/random.h \
	tests/lib/text.c tests/lib/text.h
lib_libs = tests/lib/liblib.a $(test_libs)

# From a checkpoint to a run: both toolchains, and the runtime.
check_LIBRARIES += tests/lib/libcalibrated.a
tests_lib_libcalibrated_a_SOURCES = tests/lib/calibrated.c tests/lib/calibrated.h
calibrated_test_libs = \
	tests/lib/libcalibrated.a tests/lib/libtiny.a tests/lib/libsample.a tests/lib/liblib.a \
	convert/libconvert.la calibrate/libcalibrate.la $(test_libs)

# ---- Programs -----------------------------------------------------------------------------------

c_tests = \
	tests/amax.t \
	tests/api.t \
	tests/arguments.t \
	tests/artifact.t \
	tests/attention_i8.t \
	tests/beam.t \
	tests/blocks.t \
	tests/bpe.t \
	tests/bpe_json.t \
	tests/chain.t \
	tests/characters.t \
	tests/chat.t \
	tests/check.t \
	tests/checkpoint.t \
	tests/choose.t \
	tests/config.t \
	tests/config_llama.t \
	tests/config_translator.t \
	tests/config_vit.t \
	tests/conv.t \
	tests/convert.t \
	tests/count.t \
	tests/counters.t \
	tests/crash.t \
	tests/cuda-attend.t \
	tests/cuda-attend-store.t \
	tests/cuda-attention.t \
	tests/cuda-beam.t \
	tests/cuda-blocks.t \
	tests/cuda-chain.t \
	tests/cuda-conv.t \
	tests/cuda-choice.t \
	tests/cuda-choose.t \
	tests/cuda-failure.t \
	tests/cuda-ferry.t \
	tests/cuda-gemm.t \
	tests/cuda-generate.t \
	tests/cuda-halves.t \
	tests/cuda-steady.t \
	tests/cuda.t \
	tests/cuda-messages.t \
	tests/cuda-modes.t \
	tests/cuda-ops.t \
	tests/cuda-parts.t \
	tests/cuda-relayout.t \
	tests/cuda-sessions.t \
	tests/cuda-wgmma.t \
	tests/damage.t \
	tests/dataset.t \
	tests/dataset_target.t \
	tests/decode.t \
	tests/evaluate.t \
	tests/fake.t \
	tests/family.t \
	tests/family_llama.t \
	tests/family_translator.t \
	tests/feed.t \
	tests/fold.t \
	tests/gemm.t \
	tests/gemm_blocks.t \
	tests/gemm_float.t \
	tests/gptq.t \
	tests/graph.t \
	tests/half.t \
	tests/image.t \
	tests/inputs.t \
	tests/json_stream.t \
	tests/llama_convert.t \
	tests/llama_variants.t \
	tests/loader.t \
	tests/lower.t \
	tests/lower_model.t \
	tests/manifest.t \
	tests/memory.t \
	tests/method.t \
	tests/model.t \
	tests/modes.t \
	tests/ops.t \
	tests/output.t \
	tests/packing.t \
	tests/panel.t \
	tests/passages.t \
	tests/plan.t \
	tests/processors.t \
	tests/progress.t \
	tests/recipe.t \
	tests/recognize.t \
	tests/refuse.t \
	tests/regex.t \
	tests/rope.t \
	tests/requests.t \
	tests/rows.t \
	tests/safetensors.t \
	tests/safetensors_write.t \
	tests/schemes.t \
	tests/search.t \
	tests/shares.t \
	tests/session.t \
	tests/signals.t \
	tests/sinusoids.t \
	tests/stop_ids.t \
	tests/stop_text.t \
	tests/synthetic.t \
	tests/team.t \
	tests/texts.t \
	tests/thread_pool.t \
	tests/threads.t \
	tests/tokenizer.t \
	tests/tokenizer_json.t \
	tests/translator_convert.t \
	tests/translator_variants.t \
	tests/unload.t \
	tests/verdict.t \
	tests/vit.t \
	tests/vit_variants.t \
	tests/vocabulary.t \
	tests/weights.t \
	tests/word_list.t \
	tests/wordpiece.t \
	tests/work.t \
	tests/zip.t

tests_amax_t_SOURCES = tests/amax-t.c
tests_amax_t_LDADD = $(sample_test_libs)
tests_api_t_SOURCES = tests/api-t.c
tests_api_t_LDADD = $(calibrated_test_libs)
tests_arguments_t_SOURCES = tests/arguments-t.c tests/lib/tiny_tokenizer.h
tests_arguments_t_LDADD = $(calibrated_test_libs)
tests_artifact_t_SOURCES = tests/artifact-t.c
tests_artifact_t_LDADD = $(sample_test_libs)
tests_attention_i8_t_SOURCES = tests/attention_i8-t.c
tests_attention_i8_t_LDADD = $(test_libs)
tests_beam_t_SOURCES = tests/beam-t.c tests/beam.c tests/beam.h
tests_beam_t_LDADD = $(lib_libs)
tests_blocks_t_SOURCES = tests/blocks-t.c
tests_blocks_t_LDADD = tests/lib/liblib.a $(calibrate_test_libs)
tests_bpe_t_SOURCES = tests/bpe-t.c tests/lib/golden_rows.h
tests_bpe_t_LDADD = $(test_libs)
tests_bpe_json_t_SOURCES = tests/bpe_json-t.c tests/lib/tiny_tokenizer.h
tests_bpe_json_t_LDADD = $(test_libs)
tests_chain_t_SOURCES = tests/chain-t.c
tests_chain_t_LDADD = $(lib_libs)
tests_characters_t_SOURCES = tests/characters-t.c tests/lib/golden_rows.h
tests_characters_t_LDADD = $(test_libs)
tests_chat_t_SOURCES = tests/chat-t.c tests/lib/golden_rows.h tests/lib/tiny_tokenizer.h
tests_chat_t_LDADD = $(test_libs)
tests_decode_t_SOURCES = tests/decode-t.c tests/lib/tiny_tokenizer.h
tests_decode_t_LDADD = $(test_libs)
tests_regex_t_SOURCES = tests/regex-t.c
tests_regex_t_LDADD = $(test_libs)
tests_check_t_SOURCES = tests/check-t.c tests/check.h tests/check-cases.c tests/check-conv.c \
	tests/check-decoder.c tests/check-images.c tests/check-stock.c
tests_check_t_LDADD = $(test_libs)
tests_checkpoint_t_SOURCES = tests/checkpoint-t.c
tests_checkpoint_t_LDADD = convert/libconvert.la $(test_libs)
tests_choose_t_SOURCES = tests/choose-t.c tests/choose.c tests/choose.h
tests_choose_t_LDADD = $(lib_libs)
tests_config_t_SOURCES = tests/config-t.c
tests_config_t_LDADD = $(convert_test_libs)
tests_config_llama_t_SOURCES = tests/config_llama-t.c
tests_config_llama_t_LDADD = $(convert_test_libs)
tests_config_vit_t_SOURCES = tests/config_vit-t.c
tests_config_vit_t_LDADD = $(convert_test_libs)
tests_config_translator_t_SOURCES = tests/config_translator-t.c
tests_config_translator_t_LDADD = $(convert_test_libs)
tests_conv_t_SOURCES = tests/conv-t.c
tests_conv_t_LDADD = $(lib_libs)
tests_convert_t_SOURCES = tests/convert-t.c
tests_convert_t_LDADD = $(convert_test_libs)
tests_count_t_SOURCES = tests/count-t.c
tests_count_t_LDADD = $(test_libs)
tests_counters_t_SOURCES = tests/counters-t.c
tests_counters_t_LDADD = tests/lib/libsample.a $(calibrate_test_libs)
tests_crash_t_SOURCES = tests/crash-t.c
tests_crash_t_LDADD = $(sample_test_libs)
tests_cuda_attend_t_SOURCES = tests/cuda-attend-t.c tests/cuda-attend.c tests/cuda-attend.h \
	tests/cuda-attend-check.c tests/cuda-attend-whole.c $(gpu)
tests_cuda_attend_t_LDADD = $(lib_libs)
tests_cuda_attend_store_t_SOURCES = tests/cuda-attend-store-t.c tests/cuda-attend.c \
	tests/cuda-attend.h tests/cuda-attend-check.c tests/cuda-attend-whole.c $(gpu)
tests_cuda_attend_store_t_LDADD = $(lib_libs)
tests_cuda_attention_t_SOURCES = tests/cuda-attention-t.c tests/cuda-attention.c \
	tests/cuda-attention.h tests/cuda-attention-floats.c $(gpu)
tests_cuda_attention_t_LDADD = $(test_libs)
tests_cuda_beam_t_SOURCES = tests/cuda-beam-t.c tests/beam.c tests/beam.h \
	tests/choose.c tests/choose.h $(gpu)
tests_cuda_beam_t_LDADD = $(lib_libs)
tests_cuda_choice_t_SOURCES = tests/cuda-choice-t.c
tests_cuda_choice_t_LDADD = $(test_libs)
tests_cuda_choose_t_SOURCES = tests/cuda-choose-t.c tests/choose.c tests/choose.h $(gpu)
tests_cuda_choose_t_LDADD = $(lib_libs)
tests_cuda_failure_t_SOURCES = tests/cuda-failure-t.c
tests_cuda_failure_t_LDADD = $(calibrated_test_libs)
tests_cuda_ferry_t_SOURCES = tests/cuda-ferry-t.c $(gpu)
tests_cuda_ferry_t_LDADD = $(lib_libs)
tests_cuda_gemm_t_SOURCES = tests/cuda-gemm-t.c tests/cuda-gemm.c tests/cuda-gemm.h \
	tests/lib/parts.h $(gpu)
tests_cuda_gemm_t_LDADD = $(test_libs)
tests_cuda_messages_t_SOURCES = tests/cuda-messages-t.c
tests_cuda_messages_t_LDADD = $(test_libs)
tests_cuda_modes_t_SOURCES = tests/cuda-modes-t.c
tests_cuda_modes_t_LDADD = $(lib_libs)
tests_cuda_parts_t_SOURCES = tests/cuda-parts-t.c $(gpu)
tests_cuda_parts_t_LDADD = $(lib_libs)
tests_cuda_relayout_t_SOURCES = tests/cuda-relayout-t.c tests/cuda-gemm.c tests/cuda-gemm.h $(gpu)
tests_cuda_relayout_t_LDADD = $(test_libs)
tests_cuda_generate_t_SOURCES = tests/cuda-generate-t.c tests/lib/random.c tests/lib/random.h
tests_cuda_generate_t_LDADD = $(convert_test_libs)
tests_cuda_sessions_t_SOURCES = tests/cuda-sessions-t.c
tests_cuda_sessions_t_LDADD = $(calibrated_test_libs)
tests_cuda_halves_t_SOURCES = tests/cuda-halves-t.c $(gpu)
tests_cuda_halves_t_LDADD = $(test_libs)
tests_cuda_conv_t_SOURCES = tests/cuda-conv-t.c
tests_cuda_conv_t_LDADD = $(lib_libs)
tests_cuda_blocks_t_SOURCES = tests/cuda-blocks-t.c $(chip)
tests_cuda_blocks_t_LDADD = $(lib_libs)
tests_cuda_chain_t_SOURCES = tests/cuda-chain-t.c $(chip)
tests_cuda_chain_t_LDADD = $(lib_libs)
tests_cuda_steady_t_SOURCES = tests/cuda-steady-t.c tests/cuda-gemm.c tests/cuda-gemm.h $(gpu)
tests_cuda_steady_t_LDADD = $(test_libs)
tests_cuda_t_SOURCES = tests/cuda-t.c $(gpu)
tests_cuda_t_LDADD = $(test_libs)
tests_cuda_wgmma_t_SOURCES = tests/cuda-wgmma-t.c tests/lib/parts.h $(gpu)
tests_cuda_wgmma_t_LDADD = $(test_libs)
tests_cuda_ops_t_SOURCES = tests/cuda-ops-t.c tests/cuda-ops.c tests/cuda-ops.h \
	tests/cuda-ops-counts.c tests/cuda-ops-images.c tests/cuda-ops-linear.c tests/cuda-ops-maps.c tests/cuda-ops-rows.c \
	$(chip)
tests_cuda_ops_t_LDADD = $(lib_libs)
tests_damage_t_SOURCES = tests/damage-t.c
tests_damage_t_LDADD = $(sample_test_libs)
tests_dataset_t_SOURCES = tests/dataset-t.c tests/lib/tiny_tokenizer.h
tests_dataset_t_LDADD = $(calibrated_test_libs)
tests_evaluate_t_SOURCES = tests/evaluate-t.c
tests_evaluate_t_LDADD = $(calibrated_test_libs)
tests_fake_t_SOURCES = tests/fake-t.c
tests_fake_t_LDADD = tests/lib/liblib.a $(calibrate_test_libs)
tests_family_t_SOURCES = tests/family-t.c
tests_family_t_LDADD = $(lib_libs)
tests_family_llama_t_SOURCES = tests/family_llama-t.c
tests_family_llama_t_LDADD = $(lib_libs)
tests_family_translator_t_SOURCES = tests/family_translator-t.c
tests_family_translator_t_LDADD = $(lib_libs)
tests_feed_t_SOURCES = tests/feed-t.c
tests_feed_t_LDADD = $(convert_test_libs)
tests_gemm_t_SOURCES = tests/gemm-t.c
tests_gemm_t_LDADD = $(test_libs)
tests_gemm_blocks_t_SOURCES = tests/gemm_blocks-t.c
tests_gemm_blocks_t_LDADD = $(lib_libs)
tests_gemm_float_t_SOURCES = tests/gemm_float-t.c
tests_gemm_float_t_LDADD = $(lib_libs)
tests_graph_t_SOURCES = tests/graph-t.c
tests_graph_t_LDADD = $(test_libs)
tests_image_t_SOURCES = tests/image-t.c
tests_image_t_LDADD = tests/lib/libsample.a runtime/libimages.la $(test_libs)
tests_fold_t_SOURCES = tests/fold-t.c
tests_fold_t_LDADD = $(calibrated_test_libs)
tests_gptq_t_SOURCES = tests/gptq-t.c
tests_gptq_t_LDADD = tests/lib/liblib.a $(calibrate_test_libs)
tests_half_t_SOURCES = tests/half-t.c
tests_half_t_LDADD = $(lib_libs)
tests_inputs_t_SOURCES = tests/inputs-t.c
tests_inputs_t_LDADD = $(calibrated_test_libs)
tests_llama_convert_t_SOURCES = tests/llama_convert-t.c
tests_llama_convert_t_LDADD = $(convert_test_libs)
tests_verdict_t_SOURCES = tests/verdict-t.c
tests_verdict_t_LDADD = $(calibrated_test_libs)
tests_vit_t_SOURCES = tests/vit-t.c
tests_vit_t_LDADD = $(convert_test_libs)
tests_vit_variants_t_SOURCES = tests/vit_variants-t.c
tests_vit_variants_t_LDADD = $(convert_test_libs)
tests_llama_variants_t_SOURCES = tests/llama_variants-t.c tests/lib/variant.h
tests_llama_variants_t_LDADD = $(convert_test_libs)
tests_loader_t_SOURCES = tests/loader-t.c
tests_loader_t_LDADD = $(calibrated_test_libs)
tests_lower_t_SOURCES = tests/lower-t.c
tests_lower_t_LDADD = $(lib_libs)
tests_lower_model_t_SOURCES = tests/lower_model-t.c
tests_lower_model_t_LDADD = $(lib_libs)
tests_manifest_t_SOURCES = tests/manifest-t.c
tests_manifest_t_LDADD = $(sample_test_libs)
tests_memory_t_SOURCES = tests/memory-t.c
tests_memory_t_LDADD = $(calibrated_test_libs)
tests_memory_t_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc \
	-Wl,--wrap=reallocarray,--wrap=aligned_alloc,--wrap=open_memstream
tests_method_t_SOURCES = tests/method-t.c tests/lib/amax_inputs.c tests/lib/amax_inputs.h
tests_method_t_LDADD = $(calibrate_test_libs)
tests_model_t_SOURCES = tests/model-t.c
tests_model_t_LDADD = tests/lib/liblib.a $(sample_test_libs)
tests_modes_t_SOURCES = tests/modes-t.c
tests_modes_t_LDADD = $(lib_libs)
tests_ops_t_SOURCES = tests/ops-t.c tests/beam.c tests/beam.h tests/ops-attend.c \
	tests/ops-attention.c tests/ops-beam.c tests/ops-blocks.c tests/ops-cache.c tests/ops-cache.h \
	tests/ops-conv.c tests/ops-decoder.c tests/ops-halves.c tests/ops-images.c tests/ops-linear.c \
	tests/ops-maps.c tests/ops-rows.c tests/ops-store.c tests/ops-sums.c tests/ops.h
tests_ops_t_LDADD = $(lib_libs)
tests_output_t_SOURCES = tests/output-t.c
tests_output_t_LDADD = $(sample_test_libs)
tests_packing_t_SOURCES = tests/packing-t.c
tests_packing_t_LDADD = $(calibrated_test_libs)
tests_panel_t_SOURCES = tests/panel-t.c
tests_panel_t_LDADD = $(test_libs)
tests_passages_t_SOURCES = tests/passages-t.c
tests_passages_t_LDADD = $(lib_libs)
tests_plan_t_SOURCES = tests/plan-t.c
tests_plan_t_LDADD = $(lib_libs)
tests_recipe_t_SOURCES = tests/recipe-t.c
tests_recipe_t_LDADD = $(calibrate_test_libs)
tests_recognize_t_SOURCES = tests/recognize-t.c
tests_recognize_t_LDADD = $(sample_test_libs)
tests_refuse_t_SOURCES = tests/refuse-t.c
tests_refuse_t_LDADD = $(convert_test_libs)
tests_rope_t_SOURCES = tests/rope-t.c
tests_rope_t_LDADD = $(sample_test_libs)
tests_requests_t_SOURCES = tests/requests-t.c
tests_requests_t_LDADD = $(convert_test_libs)
tests_rows_t_SOURCES = tests/rows-t.c
tests_rows_t_LDADD = $(lib_libs)
tests_safetensors_t_SOURCES = tests/safetensors-t.c
tests_safetensors_t_LDADD = $(test_libs)
tests_safetensors_write_t_SOURCES = tests/safetensors_write-t.c
tests_safetensors_write_t_LDADD = $(sample_test_libs)
tests_schemes_t_SOURCES = tests/schemes-t.c
tests_schemes_t_LDADD = $(calibrated_test_libs)
tests_search_t_SOURCES = tests/search-t.c
tests_search_t_LDADD = $(calibrated_test_libs)
tests_shares_t_SOURCES = tests/shares-t.c
tests_shares_t_LDADD = $(lib_libs)
tests_session_t_SOURCES = tests/session-t.c
tests_session_t_LDADD = tests/lib/liblib.a $(sample_test_libs)
tests_signals_t_SOURCES = tests/signals-t.c
tests_signals_t_LDADD = runtime/libtools.la $(calibrated_test_libs)
tests_sinusoids_t_SOURCES = tests/sinusoids-t.c
tests_sinusoids_t_LDADD = $(sample_test_libs)
tests_stop_ids_t_SOURCES = tests/stop_ids-t.c
tests_stop_ids_t_LDADD = $(sample_test_libs)
tests_stop_text_t_SOURCES = tests/stop_text-t.c tests/lib/tiny_tokenizer.h
tests_stop_text_t_LDADD = $(lib_libs)
tests_progress_t_SOURCES = tests/progress-t.c
tests_progress_t_LDADD = tests/tap/libtap.a runtime/libtools.la
tests_json_stream_t_SOURCES = tests/json_stream-t.c
tests_json_stream_t_LDADD = tests/tap/libtap.a runtime/libtools.la
tests_synthetic_t_SOURCES = tests/synthetic-t.c
tests_synthetic_t_LDADD = tests/tap/libtap.a runtime/libtools.la
tests_processors_t_SOURCES = tests/processors-t.c
tests_processors_t_LDADD = $(test_libs)
tests_team_t_SOURCES = tests/team-t.c
tests_team_t_LDADD = $(test_libs)
tests_texts_t_SOURCES = tests/texts-t.c runtime/tools/text_reader.c runtime/tools/texts.c
tests_texts_t_LDADD = $(sample_test_libs)
tests_texts_t_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=realloc
tests_thread_pool_t_SOURCES = tests/thread_pool-t.c
tests_thread_pool_t_LDADD = $(test_libs)
tests_unload_t_SOURCES = tests/unload-t.c
tests_unload_t_LDADD = $(calibrated_test_libs)
tests_threads_t_SOURCES = tests/threads-t.c
tests_threads_t_LDADD = $(calibrated_test_libs)
tests_tokenizer_t_SOURCES = tests/tokenizer-t.c tests/lib/tiny_tokenizer.h
tests_tokenizer_t_LDADD = $(test_libs)
tests_tokenizer_json_t_SOURCES = tests/tokenizer_json-t.c tests/lib/tiny_tokenizer.h
tests_tokenizer_json_t_LDADD = $(test_libs)
tests_dataset_target_t_SOURCES = tests/dataset_target-t.c tests/lib/variant.h
tests_dataset_target_t_LDADD = $(convert_test_libs)
tests_translator_variants_t_SOURCES = tests/translator_variants-t.c tests/lib/variant.h
tests_translator_variants_t_LDADD = $(convert_test_libs)
tests_translator_convert_t_SOURCES = tests/translator_convert-t.c
tests_translator_convert_t_LDADD = $(convert_test_libs)
tests_vocabulary_t_SOURCES = tests/vocabulary-t.c
tests_vocabulary_t_LDADD = $(test_libs)
tests_weights_t_SOURCES = tests/weights-t.c
tests_weights_t_LDADD = $(calibrate_test_libs)
tests_word_list_t_SOURCES = tests/word_list-t.c
tests_word_list_t_LDADD = $(test_libs)
tests_wordpiece_t_SOURCES = tests/wordpiece-t.c tests/lib/golden_rows.h
tests_wordpiece_t_LDADD = $(test_libs)
tests_work_t_SOURCES = tests/work-t.c runtime/tools/bench_product.c runtime/tools/bench_time.c
tests_work_t_LDADD = tests/tap/libtap.a runtime/libtools.la
tests_zip_t_SOURCES = tests/zip-t.c
tests_zip_t_LDADD = $(sample_test_libs)

sh_tests = \
	tests/bench.sh \
	tests/bounds.sh \
	tests/calibrate_schemes.sh \
	tests/convert_tool.sh \
	tests/eval.sh \
	tests/forged.sh \
	tests/full.sh \
	tests/harness.sh \
	tests/image_bounds.sh \
	tests/images.sh \
	tests/inspect.sh \
	tests/install.sh \
	tests/layering.sh \
	tests/learn.sh \
	tests/manpages.sh \
	tests/mistaken.sh \
	tests/not_finite.sh \
	tests/old.sh \
	tests/openblas.sh \
	tests/pipeline.sh \
	tests/problems.sh \
	tests/quickstart.sh \
	tests/readme.sh \
	tests/run_cuda.sh \
	tests/run_generate.sh \
	tests/run_progress.sh \
	tests/run_search.sh \
	tests/starved.sh \
	tests/tables.sh \
	tests/truncate.sh \
	tests/usage.sh

# What the scripts make their inputs with.
check_PROGRAMS += tests/bounded tests/make-checkpoint tests/make-classifier tests/make-decoder \
	tests/make-sample tests/make-tensors tests/near-tensors tests/pick-rows tests/poison
tests_bounded_SOURCES = tests/bounded.c
check_PROGRAMS += tests/forge-artifact
tests_forge_artifact_SOURCES = tests/forge-artifact.c
tests_forge_artifact_LDADD = $(sample_test_libs)
tests_make_checkpoint_SOURCES = tests/make-checkpoint.c
tests_make_checkpoint_LDADD = tests/lib/libtiny.a $(sample_test_libs)
tests_make_classifier_SOURCES = tests/make-classifier.c
tests_make_classifier_LDADD = tests/lib/libtiny.a $(sample_test_libs)
check_PROGRAMS += tests/starve
tests_starve_SOURCES = tests/starve.c
tests_starve_LDADD = $(sample_test_libs)
check_LTLIBRARIES += tests/lib/libscarce.la
tests_lib_libscarce_la_SOURCES = tests/lib/scarce.c
tests_lib_libscarce_la_CFLAGS = $(FT_CFLAGS)
tests_lib_libscarce_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests_lib_libscarce_la_LIBADD = -ldl
tests_make_decoder_SOURCES = tests/make-decoder.c
tests_make_decoder_LDADD = $(lib_libs)
tests_make_sample_SOURCES = tests/make-sample.c
tests_make_sample_LDADD = $(sample_test_libs)
tests_make_tensors_SOURCES = tests/make-tensors.c
tests_make_tensors_LDADD = $(test_libs)
tests_poison_SOURCES = tests/poison.c
tests_poison_LDADD = runtime/libcore.la
tests_near_tensors_SOURCES = tests/near-tensors.c
tests_near_tensors_LDADD = runtime/libcore.la
tests_pick_rows_SOURCES = tests/pick-rows.c
tests_pick_rows_LDADD = $(test_libs)

# ---- Fuzz targets -------------------------------------------------------------------------------

# One for each parser.  Without libFuzzer it is linked with replay.c, which feeds it the corpus, so
# that `make check` keeps every old crash fixed.  With it (--enable-fuzz):
#     make tests/fuzz/safetensors.t
#     tests/fuzz/safetensors.t -dict=tests/fuzz/safetensors.dict NEW tests/fuzz/corpus/safetensors
fuzz_targets = \
	tests/fuzz/amax.t \
	tests/fuzz/artifact.t \
	tests/fuzz/chat.t \
	tests/fuzz/config.t \
	tests/fuzz/counters.t \
	tests/fuzz/dataset.t \
	tests/fuzz/image.t \
	tests/fuzz/safetensors.t \
	tests/fuzz/shard_index.t \
	tests/fuzz/texts.t \
	tests/fuzz/tokenizer.t \
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
	tests/fuzz/safetensors.dict tests/fuzz/shard_index.dict tests/fuzz/tokenizer.dict

tests_fuzz_amax_t_SOURCES = tests/fuzz/amax.c $(fuzz_common)
tests_fuzz_amax_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_amax_t_LDADD = $(test_libs)
tests_fuzz_artifact_t_SOURCES = tests/fuzz/artifact.c tests/fuzz/model.c tests/fuzz/model.h \
	$(fuzz_common)
tests_fuzz_artifact_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_artifact_t_LDADD = $(sample_test_libs)
tests_fuzz_chat_t_SOURCES = tests/fuzz/chat.c $(fuzz_common)
tests_fuzz_chat_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_chat_t_LDADD = $(test_libs)
tests_fuzz_config_t_SOURCES = tests/fuzz/config.c $(fuzz_common)
tests_fuzz_config_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_config_t_LDADD = convert/libconvert.la $(test_libs)
tests_fuzz_counters_t_SOURCES = tests/fuzz/counters.c $(fuzz_common)
tests_fuzz_counters_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_counters_t_LDADD = $(calibrate_test_libs)
tests_fuzz_dataset_t_SOURCES = tests/fuzz/dataset.c $(fuzz_common)
tests_fuzz_dataset_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_dataset_t_LDADD = $(test_libs)
tests_fuzz_image_t_SOURCES = tests/fuzz/image.c $(fuzz_common)
tests_fuzz_image_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_image_t_LDADD = runtime/libimages.la $(test_libs)
tests_fuzz_safetensors_t_SOURCES = tests/fuzz/safetensors.c $(fuzz_common)
tests_fuzz_safetensors_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_safetensors_t_LDADD = $(test_libs)
tests_fuzz_shard_index_t_SOURCES = tests/fuzz/shard_index.c $(fuzz_common)
tests_fuzz_shard_index_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_shard_index_t_LDADD = convert/libconvert.la $(test_libs)
tests_fuzz_texts_t_SOURCES = tests/fuzz/texts.c runtime/tools/text_reader.c runtime/tools/texts.c \
	$(fuzz_common)
tests_fuzz_texts_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_texts_t_LDADD = $(test_libs)
tests_fuzz_tokenizer_t_SOURCES = tests/fuzz/tokenizer.c $(fuzz_common)
tests_fuzz_tokenizer_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_tokenizer_t_LDADD = $(test_libs)
tests_fuzz_words_t_SOURCES = tests/fuzz/words.c $(fuzz_common)
tests_fuzz_words_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_words_t_LDADD = $(test_libs)

# ---- Benchmarks: built by name, `make tests/bench/gemm`, and not run by `make check` ------------

replay = tests/bench/replay.c tests/bench/replay.h $(chip)
row_bench = tests/bench/operands.c tests/bench/operands.h $(replay)
measure = tests/bench/measure.c tests/bench/measure.h
contest = tests/bench/contest.c tests/bench/contest.h $(measure)
random_artifact = tests/bench/random_artifact.c tests/bench/random_artifact.h
benchmarks = tests/bench/conv tests/bench/counters tests/bench/decode tests/bench/encoder \
	tests/bench/gemm tests/bench/gemm_blocks tests/bench/gemm_float tests/bench/open \
	tests/bench/search tests/bench/tokenizer
EXTRA_PROGRAMS += $(benchmarks)
CLEANFILES += $(benchmarks)
tests_bench_conv_SOURCES = tests/bench/conv.c $(contest)
tests_bench_conv_LDADD = runtime/libcore.la
tests_bench_counters_SOURCES = tests/bench/counters.c $(measure)
tests_bench_counters_LDADD = calibrate/libcalibrate.la
tests_bench_decode_SOURCES = tests/bench/decode.c $(measure)
tests_bench_decode_LDADD = runtime/libcore.la
tests_bench_encoder_SOURCES = tests/bench/encoder.c $(measure)
tests_bench_encoder_LDADD = runtime/libcore.la
tests_bench_gemm_SOURCES = tests/bench/gemm.c $(contest)
tests_bench_gemm_LDADD = runtime/libcore.la
tests_bench_gemm_blocks_SOURCES = tests/bench/gemm_blocks.c tests/bench/contest_floats.c $(contest)
tests_bench_gemm_blocks_LDADD = runtime/libcore.la
tests_bench_gemm_float_SOURCES = tests/bench/gemm_float.c tests/bench/contest_floats.c $(contest)
tests_bench_gemm_float_LDADD = runtime/libcore.la
tests_bench_open_SOURCES = tests/bench/open.c $(measure) $(random_artifact)
tests_bench_open_LDADD = runtime/libcore.la
tests_bench_search_SOURCES = tests/bench/search.c $(measure)
tests_bench_search_LDADD = runtime/libcore.la
tests_bench_tokenizer_SOURCES = tests/bench/tokenizer.c $(measure)
tests_bench_tokenizer_LDADD = runtime/libcore.la
if WITH_CUDA
benchmarks += tests/bench/attend_cuda
tests_bench_attend_cuda_SOURCES = tests/bench/attend_cuda.c $(replay)
tests_bench_attend_cuda_LDADD = runtime/libcore.la
benchmarks += tests/bench/attention_cuda
tests_bench_attention_cuda_SOURCES = tests/bench/attention_cuda.c $(replay)
tests_bench_attention_cuda_LDADD = runtime/libcore.la
benchmarks += tests/bench/beam_cuda
tests_bench_beam_cuda_SOURCES = tests/bench/beam_cuda.c $(replay)
tests_bench_beam_cuda_LDADD = runtime/libcore.la
benchmarks += tests/bench/blocks_cuda
EXTRA_LTLIBRARIES += tests/bench/librivals.la
tests_bench_librivals_la_SOURCES = tests/bench/blocks_rivals.cu tests/bench/blocks_rivals.h
tests_bench_librivals_la_CPPFLAGS = $(AM_CPPFLAGS)
tests_bench_blocks_cuda_SOURCES = tests/bench/blocks_cuda.c $(replay)
tests_bench_blocks_cuda_LDADD = tests/bench/librivals.la runtime/libcore.la -lcublas
benchmarks += tests/bench/choose_cuda
tests_bench_choose_cuda_SOURCES = tests/bench/choose_cuda.c $(replay)
tests_bench_choose_cuda_LDADD = runtime/libcore.la
benchmarks += tests/bench/conv_cuda
tests_bench_conv_cuda_SOURCES = tests/bench/conv_cuda.c $(replay)
tests_bench_conv_cuda_LDADD = runtime/libcore.la
benchmarks += tests/bench/gemm_cuda
tests_bench_gemm_cuda_SOURCES = tests/bench/gemm_cuda.c
tests_bench_gemm_cuda_LDADD = runtime/libcore.la -lcublasLt
benchmarks += tests/bench/halves_cuda
tests_bench_halves_cuda_SOURCES = tests/bench/halves_cuda.c $(replay)
tests_bench_halves_cuda_LDADD = runtime/libcore.la
benchmarks += tests/bench/decoder_cuda
tests_bench_decoder_cuda_SOURCES = tests/bench/decoder_cuda.c $(replay)
tests_bench_decoder_cuda_LDADD = runtime/libcore.la
benchmarks += tests/bench/norm_cuda
tests_bench_norm_cuda_SOURCES = tests/bench/norm_cuda.c $(row_bench)
tests_bench_norm_cuda_LDADD = runtime/libcore.la
benchmarks += tests/bench/rows_cuda
tests_bench_rows_cuda_SOURCES = tests/bench/rows_cuda.c $(row_bench)
tests_bench_rows_cuda_LDADD = runtime/libcore.la
benchmarks += tests/bench/step_cuda
tests_bench_step_cuda_SOURCES = tests/bench/step_cuda.c $(replay)
tests_bench_step_cuda_LDADD = runtime/libcore.la
benchmarks += tests/bench/upload
tests_bench_upload_SOURCES = tests/bench/upload.c $(measure) $(random_artifact)
tests_bench_upload_LDADD = runtime/libcore.la
endif
if WITH_DNNL
tests_bench_gemm_SOURCES += tests/bench/onednn.c tests/bench/onednn.h
tests_bench_gemm_CPPFLAGS = $(AM_CPPFLAGS) -DHAVE_DNNL
tests_bench_gemm_LDADD += -ldnnl
endif

# ---- How they run -------------------------------------------------------------------------------

check_PROGRAMS += $(c_tests)
TESTS += $(c_tests) $(sh_tests)
EXTRA_DIST += $(sh_tests) tests/lib/bounded.sh tests/lib/summary.awk tests/lib/tap.sh tests/run.sh tests/make-old.sh tests/same-code.sh tests/tsan.supp tests/data tests/golden

# Scripts that compare with published software, and what they share.  Run by hand.
EXTRA_DIST += \
	tests/bench/check-bert.py \
	tests/bench/check-blocks.py \
	tests/bench/check-llama.py \
	tests/bench/check-m2m.py \
	tests/bench/check-vit.py \
	tests/bench/make-bert.py \
	tests/bench/make-big.py \
	tests/bench/minilm-check.py \
	tests/bench/table-blocks.py \
	tests/bench/vs-ctranslate2.py \
	tests/bench/contended.sh \
	tests/bench/vs-cudnn.py \
	tests/bench/vs-llama-cpp.py \
	tests/bench/vs-onnxruntime.py \
	tests/bench/vs-pytorch.py tests/bench/vs-transformers.py \
	tests/bench/vs-transformers-nllb.py \
	tests/lib/bert_onnx.py \
	tests/lib/lean_bert.py \
	tests/lib/ort_variants.py \
	tests/lib/sentences.py \
	tests/lib/reference.py \
	tests/lib/st.py \
	tests/lib/tools.py
TEST_EXTENSIONS = .t .sh
TAP_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
T_LOG_DRIVER = $(TAP_DRIVER)
SH_LOG_DRIVER = $(TAP_DRIVER)
SH_LOG_COMPILER = $(SHELL)
AM_TESTS_ENVIRONMENT = \
	FT_BUILDDIR='$(abs_top_builddir)' FT_SRCDIR='$(abs_top_srcdir)' \
	FT_MODELS="$${FT_MODELS:-$(abs_top_srcdir)/../shared/models}"; \
	TSAN_OPTIONS="suppressions=$(abs_top_srcdir)/tests/tsan.supp \
	    ignore_noninstrumented_modules=1 $${TSAN_OPTIONS}"; \
	export FT_BUILDDIR FT_SRCDIR FT_MODELS TSAN_OPTIONS;

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
