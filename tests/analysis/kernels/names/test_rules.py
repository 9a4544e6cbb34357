"""Names as real libraries write them, Volta to Blackwell and AMD, with what is known of each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analysis.kernels.names.dtypes import PRECISIONS
from stepscope.analysis.kernels.names.label import Compiled
from stepscope.analysis.kernels.names.rules import Context, Label, label

BF16 = Context(op="aten::mm", dtypes='["c10::BFloat16", "c10::BFloat16"]')
HALF = Context(dtypes='["c10::Half", "c10::Half", "", "Scalar"]')
FP32 = Context(op="aten::mm", dtypes='["float", "float"]')
JAX = Context(framework="jax")
YES, NO, UNTOLD = True, False, None

LIBRARIES = """
bf16    yes  gemm  nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_NNT
bf16    yes  gemm  nvjet_tss_128x256_64x4_2x1_v_badd_coopA_NTN
fp16    yes  gemm  nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT
fp16    yes  gemm  nvjet_sm120_hhh_mma_64x64x128_tmaAB_bz_NNNN
fp8     yes  gemm  nvjet_qqtst_128x256_128x6_2x2_2cta_h_bz_Avec32UE8M0_Bvec32UE8M0_TNT
fp8     yes  gemm  nvjet_qqhsh_128x64_128x9_2x1_v_bz_TNN
fp4     yes  gemm  nvjet_ootst_128x256_256x6_2x1_2cta_v_bz_Avec16UE4M3_Bvec16UE4M3_TNT
tf32    yes  gemm  nvjet_sss_tf32_128x256_TNT
int8    yes  gemm  nvjet_sm120_biu_mma_256x128x128_2_64x64x128_tmaAB_alignCD4_bz
fp32    no   gemm  sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas
tf32    yes  gemm  sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x64x32_stage4_warpsize2x2x1_tensor16x8x8_execute_kernel__5x_cublas
tf32    yes  gemm  sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas
bf16    yes  gemm  sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas
fp16    yes  gemm  sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas
fp8     yes  gemm  sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x128_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas
int8    yes  gemm  sm80_xmma_gemm_i8i8_i8i32_f32_tn_n_tilesize128x128x64_stage4_warpsize2x2x1_tensor16x8x32_execute_kernel__5x_cublas
fp64    yes  gemm  sm80_xmma_gemm_f64f64_f64f64_f64_tn_n_tilesize64x64x16_stage4_warpsize2x2x1_tensor8x8x4_execute_kernel__5x_cublas
fp32    no   reduction  sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_split_k_kernel__5x_cublas
bf16    yes  conv  sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn
tf32    yes  conv  sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_warpsize2x2x1_g1_tensor16x8x8_execute_kernel_cudnn_train
fp32    no   conv  sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize128x64x8_stage3_warpsize2x2x1_g1_ffma_aligna4_alignc4_execute_kernel__5x_cudnn
bf16    yes  gemm  void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1>(cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1::Params)
bf16    yes  gemm  void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_bf16_64x128_64x4_nt_align8>(cutlass_80_tensorop_s16816gemm_bf16_64x128_64x4_nt_align8::Params)
bf16    yes  gemm  void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x3_nt_align8>(Params)
fp16    yes  gemm  void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_64x64_64x6_nn_align8>(Params)
fp16    yes  gemm  cutlass_80_tensorop_h16816gemm_64x64_64x6_nn_align8
fp16    yes  gemm  void cutlass::Kernel2<cutlass_80_wmma_tensorop_f16_s161616gemm_f16_32x32_32x1_nn_align8>(Params)
fp16    yes  gemm  cutlass_80_wmma_h161616gemm_16x16_128x1_tn_align8
tf32    yes  gemm  void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4::Params)
tf32    yes  gemm  cutlass_tensorop_s1688tf32gemm_256x128_16x3_nn_align4
tf32    yes  gemm  cutlass3x_sm100_tensorop_s256x256x8tf32gemm_f32_f32_f32_f32_f32_256x256x32_2x1x1_0_ntn_align4_2sm_bias_f32_relu
bf16    yes  gemm  cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_2x1x1_0_tnn_align8_warpspecialized_pingpong
fp8     yes  gemm  cutlass3x_sm90_tensorop_s64x128x32gemm_e4m3_e4m3_f32_bf16_bf16_128x128x128_1x2x1_0_tnt_align16
fp4     yes  gemm  cutlass3x_sm100_bstensorop_s256x256x64gemm_block_scaled_ue4m3xe2m1_ue4m3xe2m1_f32_bf16_bf16_256x256x256_2x1x1_0_tnt_align32_2sm
fp8     yes  gemm  cutlass3x_sm100_bstensorop_s128x128x32gemm_block_scaled_ue8m0xe4m3_ue8m0xe4m3_f32_bf16_bf16_128x128x128_1x1x1_0_tnt
fp32    no   gemm  cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_128x64x16_1x1x1_3_tnn_align1_bias_f32_relu
fp32    no   gemm  void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>(cutlass_80_simt_sgemm_128x256_8x4_nt_align1::Params)
fp64    no   gemm  void cutlass::Kernel2<cutlass_80_simt_dgemm_64x64_8x5_nn_align1>(Params)
fp64    yes  gemm  void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_64x32_16x4_nn_align1>(Params)
int8    yes  gemm  cutlass_80_tensorop_i16832gemm_s8_128x64_128x3_tn_align16
int4    yes  gemm  cutlass_80_tensorop_i16864gemm_s4_128x64_256x3_tn_align32
bf16    yes  conv  void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8>(Params)
tf32    yes  conv  void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_64x128_32x3_nhwc_align4>(Params)
fp32    no   gemm  volta_sgemm_128x64_nn
fp32    no   gemm  ampere_sgemm_32x32_sliced1x4_tn
fp64    no   gemm  volta_dgemm_64x64_nt
fp16    no   gemm  volta_fp16_sgemm_fp16_128x64_nn
fp16    yes  gemm  volta_h884gemm_256x128_ldg8_nn
fp16    yes  gemm  volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn
fp16    yes  gemm  turing_fp16_s1688gemm_fp16_128x64_ldg8_relu_f2f_tn
fp16    yes  gemm  turing_h1688gemm_128x128_ldg8_nn
fp16    yes  gemm  ampere_fp16_s16816gemm_fp16_64x64_sliced1x2_ldg8_f2f_stages_64x5_nn
bf16    yes  gemm  ampere_bf16_s16816gemm_bf16_128x128_ldg8_relu_f2f_stages_32x5_tn
bf16    yes  gemm  ampere_s16816gemm_bf16_64x64_ldg8_stages_64x5_nt
fp16    yes  conv  turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1
fp32    no   conv  volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1
fp32    no   conv  cudnn_infer_ampere_scudnn_128x64_relu_xregs_large_nn_v1
fp32    no   conv  void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>(int, int)
fp32    no   conv  void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, int)
fp32    no   conv  void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(cudnn::winograd_nonfused::WinogradDataParams<float, float>)
fp32    no   norm  void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 128, true, 1, true>(cudnnTensorStruct, float const*)
fp32    no   gemm  void sgemm_largek_lds64<true, false, 5, 5, 4, 4, 4, 34>(float*, float const*, float const*, int)
fp32    no   gemv  std::enable_if<true, void>::type internal::gemvx::kernel<int, int, float, float, float, float, true, true, true, false, 6, false>(int)
bf16    no   gemv  std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, false>(int)
fp32    no   reduction  void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, false, float, float, float>(cublasLt::cublasSplitKParams<float>)
none    no   movement  void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(float const*, float*)
"""

ATTENTION = """
bf16    yes  void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t, Flash_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t> >, false, true>(pytorch_flash::Flash_fwd_params)
fp16    yes  void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, 64, 128, 8, 4, 2, 4, false, false, cutlass::half_t>, true>(pytorch_flash::Flash_bwd_params)
bf16    no   void pytorch_flash::flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64, 64, 128, 8, 4, 2, 4, false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_bwd_params)
bf16    no   void pytorch_flash::flash_bwd_convert_dq_kernel<Flash_bwd_kernel_traits<64, 64, 128, 8, 4, 2, 4, false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_bwd_params, int)
bf16    yes  void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>>, 128, cutlass::bfloat16_t, float, cutlass::arch::Sm90>>>>(Params)
bf16    no   void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<cute::C<8>>, 8, 256, 1, false, cutlass::bfloat16_t, float, cutlass::arch::Sm90>>(Params)
bf16    yes  fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t, cutlass::arch::Sm80>::Params)
tf32    yes  fmha_cutlassB_f32_aligned_64x64_k64_sm80(PyTorchMemEffAttention::AttentionBackwardKernel<cutlass::arch::Sm80, float>::Params)
fp32    no   fmha_cutlassF_f32_aligned_64x64_rf_sm75(PyTorchMemEffAttention::AttentionKernel<float, cutlass::arch::Sm75>::Params)
unknown yes  cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0
bf16    yes  fmha_v2_flash_attention_bf16_64_32_S_qkv_128_sm86_kernel_nl
bf16    no   void vllm::paged_attention_v2_kernel<__nv_bfloat16, __nv_bfloat16, 128, 16, 128>(float*, int)
unknown none _attn_fwd
"""

OTHERS = """
bf16    no   elementwise  void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)
fp32    no   elementwise  void at::native::vectorized_elementwise_kernel<4, at::native::tanh_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#2}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >(int)
fp64    no   elementwise  void at::native::vectorized_elementwise_kernel<2, at::native::AUnaryFunctor<double, double, double, at::native::binary_internal::MulFunctor<double> >, std::array<char*, 2ul> >(int)
bf16    no   reduction    void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16, at::native::func_wrapper_t<c10::BFloat16, at::native::sum_functor<c10::BFloat16, float, c10::BFloat16> >, unsigned int, c10::BFloat16, 4, 4> >(int)
none    no   elementwise  void at::native::vectorized_elementwise_kernel<2, at::native::CUDAFunctorOnSelf_add<long>, std::array<char*, 2ul> >(int, float)
fp32    no   norm         void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float, float, 32u, 32u, 256u, false, true, false>(long, long, float const*)
fp16    no   norm         void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float, false>(int, float, c10::Half const*)
fp32    no   optimizer    void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, (at::native::(anonymous namespace)::ADAM_MODE)1, false>, float const*, double, double>(int, double)
fp32    no   random       void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, at::native::templates::cuda::normal_and_transform<float, float> >(long)
none    no   movement     void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul> >(int)
none    no   movement     void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)
none    no   movement     void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(char*)
none    no   ordering     void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<at_cuda_detail::cub::detail::radix::policy_hub<long, int, unsigned long long>::Policy>(int)
none    no   collective   ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)
none    no   collective   ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)
none    no   collective   void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)
none    no   collective   void multimem_all_reduce_kernel<c10::BFloat16, 8>(c10::BFloat16*)
bf16    yes  gemm         Cijk_Ailk_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB1
fp16    yes  gemm         Cijk_Alik_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SE_1LDSB0
fp32    yes  gemm         Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32_MI16x16x1_SN_LDSB0
fp32    no   gemm         Cijk_Ailk_Bljk_SB_MT64x64x8_SE_APM1_AF0EM1_K1_TT4_4_USFGRO0
fp8     yes  gemm         Cijk_Alik_Bljk_F8BS_BH_Bias_SHB_HAS_SAB_SAV_UserArgs_MT256x256x128_MI16x16x1
unknown no   elementwise  triton_poi_fused_add_cos_sin_0
unknown no   reduction    triton_red_fused__to_copy_native_layer_norm_backward_view_7
unknown none gemm         triton_tem_fused_mm_0
unknown none gemm         gemm_fusion_dot_74
unknown no   elementwise  loop_add_fusion_16
none    no   movement     wrapped_concatenate_10
fp32    no   elementwise  void vector_fft_r2c<1024u, EPT<16u>, 1u, 20u, (padding_t)70, (twiddle_t)0, unsigned int, float>(kernel_arguments_t<unsigned int>)
fp64    none solver       void trsm_left_kernel<int, double, 256, 4, true, false, false, false, true>(cublasTrsmParams<int, double>, double)
none    no   movement     void create_pivot_v2<128>(int, int*, long*, int)
fp32    no   elementwise  void GENERIC_elementWise_bp2<float, float, float, 4, (cudnnRNNBiasMode_t)2>(int, int, float*)
unknown none rnn          void ampere_lstm_tile16<16, 1>(params_t)
none    no   ordering     sort_6_1
unknown none unknown      _fwd_kernel
unknown none gemm         matmul_kernel
bf16    none unknown      void my::thing<__nv_bfloat16, 128>(__nv_bfloat16 const*)
"""
ENGINES = """
fp4     yes  gemm         bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_transOut_swiGlu_dynBatch_sm100f
fp4     yes  gemm         bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_dynBatch_sm100f
fp8     yes  gemm         gemm_Bfloat16_E4m3E4m3_Fp32_t128x8x128u2_s6_et128x8_m128x8x32_cga1x1x4_16dp256b_TN_transOut_schedS_sm100a
fp4     yes  gemm         _matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu
fp8     yes  gemm         _p_matmul_ogs_NNT_fp8e4nvxmxfp8xfp8_128x256x128
fp8     yes  gemm         void deep_gemm::sm90_fp8_gemm_1d2d_impl<4096u, 7168u, 1u, 128u, 128u>(float*, int*)
fp8     yes  gemm         _w8a8_block_fp8_matmul
bf16    yes  gemm         void marlin::Marlin<__nv_bfloat16, 1125899906843648l, 256, 1, 8, 8>(int4 const*)
fp8     yes  attention    fmhaSm100aKernel_QkvE4m3OBfloat16H128PagedKvCausalVarSeqQ128Kv128Persistent
bf16    yes  attention    fmha_fwd_hd128_bf16_causal_a32_rtna
unknown none attention    kernel_unified_attention_3d
unknown none attention    attn_fwd
unknown none attention    attn_fwd.kd
unknown no   reduction    bwd_preprocess
bf16    no   reduction    _finalize_matmul_scatter_bf16
none    no   ordering     _combined_routing_compute
none    no   movement     _copy_page_indices_kernel
none    no   movement     create_flashinfer_kv_indices_triton
none    no   movement     Im3d2Col.kd
bf16    no   norm         _ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib
bf16    no   elementwise  _ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i
fp32    none unknown      _ZN3foo3barIfLi4EEEvPT_i
none    none unknown      void linearize_index_kernel<long>(at::GenericPackedTensorAccessor<long, 1ul, at::RestrictPtrTraits, int>)
bf16    no   norm         std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long)
fp8     no   elementwise  _per_token_group_quant_fp8
bf16    yes  attention    kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object_at__tensorptrbf16gmemalign16odiv64
fp32    no   conv         naive_conv_ab_nonpacked_fwd_nchw_float_double_float
bf16    no   conv         naive_conv_ab_nonpacked_wrw_nchw_ushort_double_ushort
fp32    no   conv         miopenSp3AsmConv_v21_1_2_gfx9_fp32_f2x3_stride1
"""
WORDS = {"yes": YES, "no": NO, "none": UNTOLD}


def rows(table: str, columns: int) -> list[list[str]]:
    """The lines of a table, the last column being all the rest."""
    return [line.split(maxsplit=columns - 1) for line in table.splitlines() if line]


@pytest.mark.parametrize(("precision", "tensor", "family", "name"), rows(LIBRARIES + OTHERS + ENGINES, 4))
def test_name_alone(precision: str, tensor: str, family: str, name: str) -> None:
    """Nothing but the name."""
    assert label(name) == Label(precision, WORDS[tensor], family)


@pytest.mark.parametrize(("precision", "tensor", "name"), rows(ATTENTION, 3))
def test_attention(precision: str, tensor: str, name: str) -> None:
    """Nothing but the name. What only prepares or sums up is no attention itself."""
    found = label(name)
    assert (found.precision, found.tensor_cores) == (precision, WORDS[tensor])
    assert found.family == ("reduction" if "flash" in name and tensor == "no" else "attention")


@pytest.mark.parametrize(
    ("name", "context", "expected"),
    [
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", HALF, Label("fp16", YES, "attention")),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", BF16, Label("bf16", YES, "attention")),
        ("triton_tem_fused_mm_0", BF16, Label("bf16", YES, "gemm")),
        ("triton_tem_fused_mm_0", FP32, Label("unknown", UNTOLD, "gemm")),
        ("triton_poi_fused_gelu_0", HALF, Label("fp16", NO, "elementwise")),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_ffma", BF16, Label("fp32", NO, "gemm")),
        ("triton_poi_fused_zeros_2", Context(dtypes='["int", "Scalar"]'), Label("none", NO, "elementwise")),
        ("matmul_kernel", BF16, Label("bf16", UNTOLD, "gemm")),
        ("matmul_kernel", FP32, Label("unknown", UNTOLD, "gemm")),
        ("attn_fwd", BF16, Label("bf16", YES, "attention")),
        ("attn_fwd.kd", HALF, Label("fp16", YES, "attention")),
        ("a_kernel_of_no_family", FP32, Label("fp32", UNTOLD, "unknown")),
    ],
)  # fmt: skip
def test_types_of_the_launching_op(name: str, context: Context, expected: Label) -> None:
    """They decide where the family is known and its name is silent; a name that speaks is believed."""
    assert label(name, context) == expected


@pytest.mark.parametrize(
    ("name", "compiled", "expected"),
    [
        ("gemm_fusion_dot_74", Compiled("bf16", True), Label("bf16", YES, "gemm")),
        ("gemm_fusion_dot_74", Compiled("fp32", True), Label("fp32", NO, "gemm")),
        ("gemm_fusion_dot_74", Compiled(None, True), Label("unknown", UNTOLD, "gemm")),
        ("gemm_fusion_dot_74", Compiled("fp32", True, exact=False), Label("tf32", YES, "gemm")),
        ("gemm_fusion_dot_76", Compiled("bf16", False), Label("bf16", NO, "elementwise")),
        ("loop_slice_fusion_16", Compiled("none", False), Label("none", NO, "movement")),
        ("fusion_318", Compiled("bf16", False), Label("bf16", NO, "elementwise")),
        ("input_reduce_fusion", Compiled("fp32", False), Label("fp32", NO, "reduction")),
    ],
)  # fmt: skip
def test_what_the_compiled_module_says(name: str, compiled: Compiled, expected: Label) -> None:
    """XLA's module is believed before the kernel's name."""
    assert label(name, Context(framework="jax", compute_capability=(9, 0), compiled=compiled)) == expected


def test_rounding_that_nobody_tells() -> None:
    """TensorFlow can switch it off, and Volta has no tf32."""
    compiled = Compiled("fp32", True, exact=False)
    for context in (
        Context(framework="tensorflow", compute_capability=(9, 0), compiled=compiled),
        Context(framework="jax", compute_capability=(7, 0), compiled=compiled),
    ):
        assert label("gemm_fusion_dot_74", context) == Label("unknown", UNTOLD, "gemm")


def test_words_that_only_move_data_on_a_tpu() -> None:
    """A TPU lists waits for copies beside its compute; in other frameworks the same words may be anything."""
    for name in ("copy-done.2", "copy-start", "async-copy", "dynamic-slice-done.14"):
        assert label(name, JAX) == Label("none", NO, "movement")
    assert label("copy-done.2").precision == "unknown"


def test_strange_names_are_no_trouble() -> None:
    """Names come from files that nobody vouches for."""
    for name in ("", "<", "void (", "nvjet_", "Cijk_", "cutlass_80_tensorop_", "<" * 5000, "x" * 100_000):
        assert label(name, JAX).tensor_cores in (None, True)
    for word in (
        "at::native<",
        "loop_copy_",
        "_scatter_gather_elementwise_kernel ",
        "16816gemm_",
        "Cijk_Aa_B",
        "SM90_1x",
        "_ZNI9",
        "_ZDF16b",
    ):
        label(word * 100_000)


@given(
    st.text(max_size=60),
    st.sampled_from(["", "nvjet_", "void at::native::k<", "cutlass_80_", "_ZN", "Cijk_A", "loop_"]),
)
def test_any_name(text: str, start: str) -> None:
    """Whatever the name, there is a label of known words."""
    found = label(start + text)
    assert found.precision in PRECISIONS
    assert found.tensor_cores in (None, True, False)
