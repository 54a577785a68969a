# Arithmetic: matrices, not models.
# SPDX-License-Identifier: Apache-2.0

noinst_LTLIBRARIES += kernels/libcpu.la
kernels_libcpu_la_SOURCES = \
	kernels/fused_ops.c kernels/fused_ops.h \
	kernels/activation.h \
	kernels/backend.h \
	kernels/gemm_problem.h \
	kernels/beam_search.h \
	kernels/groupwise.h \
	kernels/kv_cache.h \
	kernels/threads/cgroup.c \
	kernels/check.c \
	kernels/check_decoder.c \
	kernels/check_image.c \
	kernels/check_rules.c kernels/check_rules.h \
	kernels/sampling_params.h \
	kernels/sampling.h \
	kernels/count.c kernels/count.h \
	kernels/cpu/attention/attend_kv.c \
	kernels/cpu/attention/attention.c \
	kernels/cpu/attention/attention_f32.c \
	kernels/cpu/attention/attention_i8.c kernels/cpu/attention/attention_i8.h \
	kernels/cpu/attention/attention_team.c \
	kernels/cpu/attention/query_blocks.c \
	kernels/cpu/backend.c \
	kernels/cpu/sampling/beam_search.c kernels/cpu/sampling/beam_search.h \
	kernels/cpu/sampling/sample.c kernels/cpu/sampling/sample.h \
	kernels/cpu/conv/conv.c kernels/cpu/conv/conv.h \
	kernels/cpu/conv/im2col.c \
	kernels/cpu/rowwise/count.c kernels/cpu/rowwise/count.h \
	kernels/cpu/base/cpu.h \
	kernels/cpu/rowwise/embed.c \
	kernels/cpu/gemm/f32/f32.c kernels/cpu/gemm/f32/f32.h \
	kernels/cpu/gemm/f32/f32_generic.c \
	kernels/cpu/gemm/f32/f32_impl.h \
	kernels/cpu/gemm/f32/f32_load.h \
	kernels/cpu/gemm/f32/f32_packed_impl.h \
	kernels/cpu/linalg/cholesky.c \
	kernels/cpu/linalg/dgemm.c \
	kernels/cpu/linalg/f64.h \
	kernels/cpu/linalg/f64_generic.c \
	kernels/cpu/linalg/f64_impl.h \
	kernels/cpu/linalg/sgemm.c \
	kernels/linalg.h \
	kernels/cpu/fake_quantized/attention.c \
	kernels/cpu/fake_quantized/fake_quantized.h \
	kernels/cpu/fake_quantized/linear.c \
	kernels/cpu/rowwise/gate.c \
	kernels/cpu/gemm/groupwise/gemm_groupwise.c kernels/cpu/gemm/groupwise/gemm_groupwise.h \
	kernels/cpu/gemm/f32/gemm_f32.c kernels/cpu/gemm/f32/gemm_f32.h \
	kernels/cpu/gemm/f32/gemm_f32_job.c kernels/cpu/gemm/f32/gemm_f32_job.h \
	kernels/cpu/gemm/f32/gemm_f32_packed.c \
	kernels/cpu/gemm/int8/gemm_i8.c kernels/cpu/gemm/int8/gemm_i8.h \
	kernels/cpu/sampling/token_history.c \
	kernels/cpu/gemm/int8/i8.h \
	kernels/cpu/gemm/int8/i8_epilogue.h \
	kernels/cpu/gemm/int8/i8_generic.c \
	kernels/cpu/gemm/int8/i8_pack_rows.h \
	kernels/cpu/gemm/int8/i8_softmax.h \
	kernels/cpu/gemm/int8/i8_strips.h \
	kernels/cpu/base/isa.c kernels/cpu/base/isa.h \
	kernels/cpu/gemm/linear.c \
	kernels/cpu/rowwise/elementwise.c \
	kernels/cpu/rowwise/norm.c \
	kernels/cpu/rowwise/observe.c \
	kernels/cpu/gemm/groupwise/groupwise.h \
	kernels/cpu/gemm/groupwise/groupwise_generic.c \
	kernels/cpu/gemm/groupwise/groupwise_impl.h \
	kernels/cpu/gemm/groupwise/groupwise_k_tiles.h \
	kernels/cpu/gemm/groupwise/groupwise_activations.h \
	kernels/cpu/rowwise/patchify.c \
	kernels/cpu/rowwise/pool.c \
	kernels/cpu/base/rows.c kernels/cpu/base/rows.h \
	kernels/cpu/base/rows_generic.c \
	kernels/cpu/base/rows_impl.h \
	kernels/cpu/rowwise/gather_rows.c \
	kernels/cpu/batch_parallel.c kernels/cpu/batch_parallel.h \
	kernels/cpu/base/select.h \
	kernels/cpu/base/simd.h \
	kernels/cpu/base/simd_i32.h \
	kernels/cpu/base/simd_math.h \
	kernels/cpu/base/simd_neon.h \
	kernels/cpu/base/simd_norm.h \
	kernels/cpu/attention/store_kv.c \
	kernels/cpu/rowwise/views.c \
	kernels/half.h \
	kernels/layout.h \
	kernels/limits.h \
	kernels/math/double_double.h \
	kernels/math/elementary.h \
	kernels/math/exp_log.c \
	kernels/math/sin_cos.c \
	kernels/norm.h \
	kernels/op.c kernels/op.h kernels/op_cost.c \
	kernels/philox.h \
	kernels/quant.h \
	kernels/threads/processors.c kernels/threads/processors.h \
	kernels/softmax.h \
	kernels/threads/team.c kernels/threads/team.h \
	kernels/threads/thread_pool.c kernels/threads/thread_pool.h \
	kernels/view.h \
	kernels/weight_quantizer.h \
	kernels/ops.def
kernels_libcpu_la_LIBADD =

# One library for each instruction set, compiled with its flags and chosen at run time.
if WITH_AVX2
noinst_LTLIBRARIES += kernels/libavx2.la
kernels_libavx2_la_SOURCES = kernels/cpu/gemm/f32/f32_avx2.c kernels/cpu/gemm/int8/i8_avx2.c kernels/cpu/gemm/int8/i8_ymm.h \
	kernels/cpu/gemm/groupwise/groupwise_avx2.c \
	kernels/cpu/gemm/groupwise/groupwise_avx2_float.c kernels/cpu/gemm/groupwise/groupwise_avx2_float.h \
	kernels/cpu/base/rows_avx2.c kernels/cpu/linalg/f64_avx2.c
kernels_libavx2_la_CFLAGS = $(AM_CFLAGS) $(FT_AVX2_FLAGS)
kernels_libcpu_la_LIBADD += kernels/libavx2.la
endif
if WITH_AVXVNNI
noinst_LTLIBRARIES += kernels/libavxvnni.la
kernels_libavxvnni_la_SOURCES = kernels/cpu/gemm/int8/i8_avxvnni.c kernels/cpu/gemm/int8/i8_ymm.h \
	kernels/cpu/gemm/groupwise/groupwise_avxvnni.c
kernels_libavxvnni_la_CFLAGS = $(AM_CFLAGS) $(FT_AVXVNNI_FLAGS)
kernels_libcpu_la_LIBADD += kernels/libavxvnni.la
endif
if WITH_AVX512
noinst_LTLIBRARIES += kernels/libavx512.la
kernels_libavx512_la_SOURCES = kernels/cpu/gemm/f32/f32_avx512.c kernels/cpu/gemm/int8/i8_avx512.c \
	kernels/cpu/gemm/groupwise/groupwise_avx512.c kernels/cpu/base/rows_avx512.c kernels/cpu/linalg/f64_avx512.c
kernels_libavx512_la_CFLAGS = $(AM_CFLAGS) $(FT_AVX512_FLAGS)
kernels_libcpu_la_LIBADD += kernels/libavx512.la
endif
if WITH_AMX
noinst_LTLIBRARIES += kernels/libamx.la
kernels_libamx_la_SOURCES = kernels/cpu/gemm/int8/i8_amx.c kernels/cpu/gemm/int8/i8_amx.h
kernels_libamx_la_CFLAGS = $(AM_CFLAGS) $(FT_AMX_FLAGS)
kernels_libcpu_la_LIBADD += kernels/libamx.la
endif
if WITH_NEON
noinst_LTLIBRARIES += kernels/libneon.la
kernels_libneon_la_SOURCES = kernels/cpu/gemm/f32/f32_neon.c kernels/cpu/gemm/int8/i8_neon.c \
	kernels/cpu/gemm/int8/i8_neon.h kernels/cpu/gemm/int8/i8_neon_quads.h \
	kernels/cpu/gemm/groupwise/groupwise_neon.c kernels/cpu/gemm/groupwise/groupwise_neon.h \
	kernels/cpu/gemm/groupwise/groupwise_neon_tables.h kernels/cpu/base/rows_neon.c \
	kernels/cpu/linalg/f64_neon.c
kernels_libneon_la_CFLAGS = $(AM_CFLAGS) $(FT_NEON_FLAGS)
kernels_libcpu_la_LIBADD += kernels/libneon.la
endif
if WITH_DOTPROD
noinst_LTLIBRARIES += kernels/libdotprod.la
kernels_libdotprod_la_SOURCES = kernels/cpu/gemm/int8/i8_dotprod.c kernels/cpu/gemm/int8/i8_sdot.h \
	kernels/cpu/gemm/int8/i8_neon.h kernels/cpu/gemm/int8/i8_neon_quads.h \
	kernels/cpu/gemm/groupwise/groupwise_dotprod.c
kernels_libdotprod_la_CFLAGS = $(AM_CFLAGS) $(FT_DOTPROD_FLAGS)
kernels_libcpu_la_LIBADD += kernels/libdotprod.la
endif
if WITH_I8MM
noinst_LTLIBRARIES += kernels/libi8mm.la
kernels_libi8mm_la_SOURCES = kernels/cpu/gemm/int8/i8_i8mm.c kernels/cpu/gemm/int8/i8_sdot.h \
	kernels/cpu/gemm/int8/i8_neon.h kernels/cpu/gemm/groupwise/groupwise_i8mm.c
kernels_libi8mm_la_CFLAGS = $(AM_CFLAGS) $(FT_I8MM_FLAGS)
kernels_libcpu_la_LIBADD += kernels/libi8mm.la
endif

kernels_libs = kernels/libcpu.la

if WITH_CUDA
noinst_LTLIBRARIES += kernels/libcuda.la
kernels_libcuda_la_SOURCES = $(cuda_sources)
kernels_libcuda_la_LIBADD = $(CUDA_LIBS) -lstdc++
kernels_libs += kernels/libcuda.la
else
EXTRA_DIST += $(cuda_sources)
endif
cuda_sources = \
	kernels/cuda/rowwise/amax.cuh \
	kernels/cuda/attention/cache/attend_kv.cu \
	kernels/cuda/attention/cache/attend_kv.cuh \
	kernels/cuda/attention/cache/attend_kv_int8.cu \
	kernels/cuda/attention/cache/attend_kv_int8_mainloop.cuh \
	kernels/cuda/attention/cache/attend_kv_int8_pipeline.cuh \
	kernels/cuda/attention/cache/prefill_mma.cu \
	kernels/cuda/attention/cache/attend_kv_f32.cu \
	kernels/cuda/attention/cache/decode_short.cu \
	kernels/cuda/attention/cache/decode.cu \
	kernels/cuda/attention/cache/decode_dispatch.cuh \
	kernels/cuda/attention/cache/decode_split_k.cuh \
	kernels/cuda/attention/cache/decode_load.cuh \
	kernels/cuda/attention/cache/decode_mainloop.cuh \
	kernels/cuda/attention/cache/decode_iterate.cuh \
	kernels/cuda/attention/cache/store_attend.cu \
	kernels/cuda/attention/cache/store_attend.cuh \
	kernels/cuda/attention/cache/prefill_int8.cu \
	kernels/cuda/attention/cache/prefill_int8.cuh \
	kernels/cuda/attention/cache/prefill_dequantized.cu \
	kernels/cuda/attention/cache/prefill_wgmma.cu \
	kernels/cuda/attention/attention.cu \
	kernels/cuda/attention/attention.cuh \
	kernels/cuda/attention/encoder/attention_f16.cu \
	kernels/cuda/attention/encoder/attention_f16_wgmma.cu \
	kernels/cuda/attention/encoder/attention_f32.cu \
	kernels/cuda/attention/f16_warp.cuh \
	kernels/cuda/attention/wgmma/consumer.cuh \
	kernels/cuda/attention/wgmma/kernel.cuh \
	kernels/cuda/attention/wgmma/output.cuh \
	kernels/cuda/attention/wgmma/producer.cuh \
	kernels/cuda/attention/wgmma/softmax.cuh \
	kernels/cuda/attention/wgmma/tile.cuh \
	kernels/cuda/attention/wgmma/work_list.cuh \
	kernels/cuda/attention/encoder/attention_i8.cu \
	kernels/cuda/attention/encoder/attention_i8.cuh \
	kernels/cuda/attention/encoder/attention_i8_consumer.cuh \
	kernels/cuda/attention/encoder/attention_i8_pipeline.cuh \
	kernels/cuda/attention/encoder/attention_i8_producer.cuh \
	kernels/cuda/attention/encoder/attention_i8_passes.cuh \
	kernels/cuda/attention/encoder/attention_i8_wgmma.cu \
	kernels/cuda/attention/encoder/attention_i8_work.cuh \
	kernels/cuda/host/backend.c \
	kernels/cuda/gemm/groupwise/groupwise.cu \
	kernels/cuda/gemm/groupwise/groupwise.cuh \
	kernels/cuda/gemm/groupwise/groupwise_family.cu \
	kernels/cuda/gemm/groupwise/groupwise_tiles.h \
	kernels/cuda/gemm/groupwise/groupwise_variant.cu \
	kernels/cuda/gemm/groupwise/groupwise_variant.h \
	kernels/cuda/gemm/groupwise/groupwise.h \
	kernels/cuda/gemm/groupwise/groupwise_pre_post.cu \
	kernels/cuda/gemm/groupwise/groupwise_gemv.cu \
	kernels/cuda/gemm/groupwise/groupwise_gemv.cuh \
	kernels/cuda/gemm/groupwise/groupwise_gemv_multiply.cuh \
	kernels/cuda/gemm/groupwise/groupwise_simt.cu \
	kernels/cuda/gemm/groupwise/decode_gemv.cu \
	kernels/cuda/gemm/groupwise/decode_gemv.cuh \
	kernels/cuda/gemm/groupwise/decode_gemv.h \
	kernels/cuda/gemm/groupwise/decode_gemv_load_store.cuh \
	kernels/cuda/gemm/groupwise/groupwise_mma.cu \
	kernels/cuda/gemm/groupwise/groupwise_mma.cuh \
	kernels/cuda/gemm/groupwise/groupwise_wgmma.cu \
	kernels/cuda/gemm/groupwise/groupwise_wgmma.cuh \
	kernels/cuda/gemm/groupwise/groupwise_wgmma_epilogue.cuh \
	kernels/cuda/gemm/groupwise/groupwise_wgmma_split_k.cuh \
	kernels/cuda/gemm/groupwise/groupwise_int8.cu \
	kernels/cuda/gemm/groupwise/groupwise_int8.cuh \
	kernels/cuda/gemm/groupwise/groupwise_int8_small_m.cu \
	kernels/cuda/gemm/groupwise/groupwise_int8_small_m.cuh \
	kernels/cuda/gemm/groupwise/groupwise_int8_resident.cu \
	kernels/cuda/gemm/groupwise/groupwise_int8_wgmma.cu \
	kernels/cuda/gemm/groupwise/groupwise_int8_wgmma.cuh \
	kernels/cuda/gemm/groupwise/groupwise_int8_records.cuh \
	kernels/cuda/gemm/groupwise/int8_x_term.h \
	kernels/cuda/sampling/beam_search.h \
	kernels/cuda/sampling/beam_merge.cu \
	kernels/cuda/sampling/beam_candidates.cu \
	kernels/cuda/fused_kernels.h \
	kernels/cuda/gemm_family.h \
	kernels/cuda/tuned_gemm.c \
	kernels/cuda/sampling/sample.cu \
	kernels/cuda/sampling/sample.h \
	kernels/cuda/sampling/record_tokens.cu \
	kernels/cuda/sampling/select_kth.cuh \
	kernels/cuda/sampling/logits_row.cuh \
	kernels/cuda/ptx/cluster.cuh \
	kernels/cuda/ptx/cluster_send.cuh \
	kernels/cuda/common.cuh \
	kernels/cuda/tune/benchmark_gemm.c \
	kernels/cuda/tune/benchmark_candidate.c \
	kernels/cuda/tune/benchmark_gemm.h \
	kernels/cuda/tune/benchmark_cublaslt.c \
	kernels/cuda/tune/families.c kernels/cuda/tune/families.h \
	kernels/cuda/tune/operand_sets.c kernels/cuda/tune/operand_sets.h \
	kernels/cuda/tune/random_operand.c kernels/cuda/tune/random_operand.h \
	kernels/cuda/tune/replay.c kernels/cuda/tune/replay.h \
	kernels/cuda/tune/tune_gemm.c \
	kernels/cuda/tune/use_tuned.c \
	kernels/cuda/conv/conv.cu \
	kernels/cuda/conv/conv.cuh \
	kernels/cuda/conv/conv_select_tile.cu \
	kernels/cuda/conv/space_to_depth.cu \
	kernels/cuda/conv/pad_nhwc.cu \
	kernels/cuda/conv/conv_register_a.cu \
	kernels/cuda/conv/conv_register_a.cuh \
	kernels/cuda/conv/conv_register_a_split_k.cuh \
	kernels/cuda/conv/conv_register_a_mainloop.cuh \
	kernels/cuda/conv/conv_simt.cu \
	kernels/cuda/conv/conv_nhwc.cuh \
	kernels/cuda/conv/conv_nhwc_groupwise.cu \
	kernels/cuda/conv/conv_nhwc_int8.cu \
	kernels/cuda/conv/conv_nhwc_epilogue.cuh \
	kernels/cuda/conv/conv_nhwc_f16.cu \
	kernels/cuda/conv/conv_nhwc_mainloop.cuh \
	kernels/cuda/conv/nchw_to_nhwc.cu \
	kernels/cuda/conv/nchw_to_nhwc.cuh \
	kernels/cuda/conv/conv_wgmma.cu \
	kernels/cuda/conv/conv_wgmma.cuh \
	kernels/cuda/conv/conv_wgmma_groupwise.cu \
	kernels/cuda/conv/conv_wgmma_int8.cu \
	kernels/cuda/conv/conv_wgmma_f16.cu \
	kernels/cuda/conv/conv_wgmma_epilogue.cuh \
	kernels/cuda/conv/conv_wgmma_load.cuh \
	kernels/cuda/conv/conv_wgmma_producer.cuh \
	kernels/cuda/conv/conv_wgmma_mainloop.cuh \
	kernels/cuda/conv/conv_wgmma_tiles.cuh \
	kernels/cuda/conv/conv_wgmma_kernel.cuh \
	kernels/cuda/ptx/cp_async.cuh \
	kernels/cuda/rowwise/count.cuh \
	kernels/cuda/host/counter_download.c \
	kernels/cuda/cuda.h \
	kernels/cuda/host/device.h \
	kernels/cuda/rowwise/dynamic_quant.cu \
	kernels/cuda/rowwise/dynamic_quant.cuh \
	kernels/cuda/rowwise/embed.cu \
	kernels/cuda/epilogue.cuh \
	kernels/cuda/host/errors.c \
	kernels/cuda/host/exec.c \
	kernels/cuda/gemm/int8/gemm_args.c \
	kernels/cuda/gemm/int8/gemm_kernels.c kernels/cuda/gemm/int8/gemm_kernels.h \
	kernels/cuda/gemm/int8/gemm_variant.c kernels/cuda/gemm/int8/gemm_variant.h \
	kernels/cuda/gemm/int8/int8_family.c \
	kernels/cuda/host/exec_layout.c \
	kernels/cuda/host/fill_normal.c \
	kernels/cuda/host/exec.h \
	kernels/cuda/host/h2d_begin.c \
	kernels/cuda/host/h2d_copy.c \
	kernels/cuda/host/h2d_copy.h \
	kernels/cuda/host/staging.c \
	kernels/cuda/host/staging.h \
	kernels/cuda/gemm/int8/gemm.cu \
	kernels/cuda/gemm/int8/small_m_mma.cu \
	kernels/cuda/gemm/f16/gemm_f16.h \
	kernels/cuda/gemm/f16/mma_f16.cu \
	kernels/cuda/gemm/f16/mma_f16.cuh \
	kernels/cuda/gemm/f16/gemv_f16.cu \
	kernels/cuda/gemm/int8/cublaslt.cu \
	kernels/cuda/gemm/int8/mma_gemm.cu \
	kernels/cuda/gemm/int8/mma_gemm.cuh \
	kernels/cuda/gemm/int8/store_out.cuh \
	kernels/cuda/gemm/int8/simt.cu \
	kernels/cuda/gemm/int8/gemv.cu \
	kernels/cuda/gemm/int8/gemv.cuh \
	kernels/cuda/gemm/int8/gemv_fused.cu \
	kernels/cuda/gemm/int8/gemv_fused.h \
	kernels/cuda/gemm/int8/gemv_input.cuh \
	kernels/cuda/gemm/int8/wgmma_gemm.cu \
	kernels/cuda/gemm/int8/wgmma_gemm.cuh \
	kernels/cuda/gemm/int8/wgmma_any_epilogue.cuh \
	kernels/cuda/gemm/int8/wgmma_args.cuh \
	kernels/cuda/gemm/int8/wgmma_int8_out.cu \
	kernels/cuda/gemm/int8/wgmma_split_k.cu \
	kernels/cuda/gemm/int8/wgmma_small_m.cu \
	kernels/cuda/gemm/int8/wgmma_epilogue.cuh \
	kernels/cuda/gemm/int8/wgmma_float_out.cu \
	kernels/cuda/gemm/int8/wgmma_float_out.cuh \
	kernels/cuda/gemm/f16/decode_f16.cu \
	kernels/cuda/gemm/f16/decode_f16.cuh \
	kernels/cuda/gemm/f16/decode_f16.h \
	kernels/cuda/gemm/f16/wgmma_f16_gemm.cu \
	kernels/cuda/gemm/f16/wgmma_f16_gemm.cuh \
	kernels/cuda/gemm/f16/wgmma_f16_gemm.h \
	kernels/cuda/gemm/f16/wgmma_f16_epilogue.cuh \
	kernels/cuda/gemm/f16/f16_family.cu \
	kernels/cuda/gemm/f16/f16_variant.cu \
	kernels/cuda/gemm/f16/f16_variant.h \
	kernels/cuda/gemm/f16/wgmma_f16_fastest.cu \
	kernels/cuda/gemm/f16/wgmma_f16_large_m.cu \
	kernels/cuda/gemm/f16/wgmma_f16_large_m.cuh \
	kernels/cuda/gemm/f16/wgmma_f16_large_m_epilogue.cuh \
	kernels/cuda/gemm/f16/wgmma_f16_split_k.cu \
	kernels/cuda/gemm/int8/wgmma_kernels.h \
	kernels/cuda/gemm/int8/wgmma_pipeline.cuh \
	kernels/cuda/gemm/int8/wgmma_units.cuh \
	kernels/cuda/host/token_history.c \
	kernels/cuda/rowwise/inputs.cu \
	kernels/cuda/gemm/linear.cu \
	kernels/cuda/gemm/linear_int8_decode.cu \
	kernels/cuda/gemm/linear_groupwise.cu \
	kernels/cuda/gemm/linear.h \
	kernels/cuda/gemm/linear_gemv.cu \
	kernels/cuda/gemm/linear_f16.cu \
	kernels/cuda/gemm/linear_float.cu \
	kernels/cuda/rowwise/elementwise.cu \
	kernels/cuda/ptx/mma.cuh \
	kernels/cuda/rowwise/head_norm.cu \
	kernels/cuda/rowwise/norm.cu \
	kernels/cuda/rowwise/norm.cuh \
	kernels/cuda/rowwise/norm_block.cu \
	kernels/cuda/rowwise/observe.cu \
	kernels/cuda/rowwise/patchify.cu \
	kernels/cuda/rowwise/pool.cu \
	kernels/cuda/tune/read_bandwidth.cu \
	kernels/cuda/gemm/relayout.cu \
	kernels/cuda/rows.cuh \
	kernels/cuda/host/run.c \
	kernels/cuda/host/saved_values.c \
	kernels/cuda/rowwise/gather_rows.cu \
	kernels/cuda/host/stage.c \
	kernels/cuda/host/launch_ops.c \
	kernels/cuda/host/fused_kernels.c \
	kernels/cuda/attention/cache/store_kv.cu \
	kernels/cuda/attention/cache/store_kv.cuh \
	kernels/cuda/ptx/named_barrier.cuh \
	kernels/cuda/ptx/pipeline.cuh \
	kernels/cuda/ptx/tma.cuh \
	kernels/cuda/host/upload.c \
	kernels/cuda/ptx/warp.cuh \
	kernels/cuda/ptx/wgmma.cuh \
	kernels/cuda/ptx/wgmma_f16.cuh \
	kernels/cuda/quantize/blas.c \
	kernels/cuda/quantize/descent.h \
	kernels/cuda/quantize/factorize.c \
	kernels/cuda/quantize/gptq.h \
	kernels/cuda/quantize/grids.h \
	kernels/cuda/quantize/hessian.h \
	kernels/cuda/quantize/input_sums.c kernels/cuda/quantize/input_sums.h \
	kernels/cuda/quantize/kernels.def \
	kernels/cuda/quantize/launch.cu kernels/cuda/quantize/launch.h \
	kernels/cuda/quantize/memory.c \
	kernels/cuda/quantize/quantize.c \
	kernels/cuda/quantize/quantizer.c kernels/cuda/quantize/quantizer.h \
	kernels/cuda/quantize/round.c \
	kernels/cuda/quantize/store.h

# libtool drives nvcc through a wrapper that hands host flags to the host compiler.
SUFFIXES += .cu
EXTRA_DIST += build-aux/nvcc-cc
AM_V_NVCC = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
am__v_NVCC_1 =
.cu.lo:
	$(AM_V_NVCC)$(MKDIR_P) $(@D)/$(DEPDIR) && \
	$(LIBTOOL) $(AM_V_lt) --tag=CC --mode=compile \
	  $(SHELL) $(top_srcdir)/build-aux/nvcc-cc $(NVCC) $(DEFS) $(DEFAULT_INCLUDES) \
	  -I$(top_srcdir) $(CPPFLAGS) $(FT_NVCCFLAGS) $(NVCCFLAGS) \
	  -MT $@ -MMD -MP -MF $(@D)/$(DEPDIR)/$(*F).cu.d -c -o $@ $<
-include kernels/cuda/*/$(DEPDIR)/*.cu.d
-include kernels/cuda/*/*/$(DEPDIR)/*.cu.d
mostlyclean-local:
	-rm -rf kernels/cuda/*/$(DEPDIR) kernels/cuda/*/*/$(DEPDIR)

# What each folder holds, and what it may include.
EXTRA_DIST += \
	kernels/README.md \
	kernels/cpu/README.md \
	kernels/cpu/attention/README.md \
	kernels/cpu/fake_quantized/README.md \
	kernels/cpu/linalg/README.md \
	kernels/cpu/base/README.md \
	kernels/cpu/conv/README.md \
	kernels/cpu/gemm/README.md \
	kernels/cpu/gemm/f32/README.md \
	kernels/cpu/gemm/groupwise/README.md \
	kernels/cpu/gemm/int8/README.md \
	kernels/cpu/rowwise/README.md \
	kernels/cpu/sampling/README.md \
	kernels/cuda/README.md \
	kernels/cuda/attention/README.md \
	kernels/cuda/attention/cache/README.md \
	kernels/cuda/attention/encoder/README.md \
	kernels/cuda/attention/wgmma/README.md \
	kernels/cuda/conv/README.md \
	kernels/cuda/gemm/README.md \
	kernels/cuda/gemm/f16/README.md \
	kernels/cuda/gemm/groupwise/README.md \
	kernels/cuda/gemm/int8/README.md \
	kernels/cuda/host/README.md \
	kernels/cuda/ptx/README.md \
	kernels/cuda/quantize/README.md \
	kernels/cuda/rowwise/README.md \
	kernels/cuda/sampling/README.md \
	kernels/cuda/tune/README.md \
	kernels/math/README.md \
	kernels/threads/README.md
