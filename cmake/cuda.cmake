# SPDX-License-Identifier: Apache-2.0
# The CUDA plugin, libfastkernels_cuda.so: the backend (core/cuda_*.cu) and the baselines that cmake/operators.cmake found
# beside the operators' declarations. Driver functions are looked up at run time, so that it loads, and says what is
# missing, where there is no driver.
find_package(CUDAToolkit REQUIRED)

add_library(fastkernels_cuda SHARED
  core/cuda_backend.cu core/cuda_blas.cu core/cuda_driver.cu core/cuda_measure.cu core/cuda_nccl.cu ${FK_OP_CUDA_SOURCES})
target_link_libraries(fastkernels_cuda PRIVATE fastkernels fk_settings CUDA::cublasLt ${CMAKE_DL_LIBS})
# -std by hand: CMake 3.25 does not know it for this compiler.
target_compile_options(fastkernels_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 -Xcompiler=-Wall -Wno-deprecated-gpu-targets>)
if(FK_WERROR)
  target_compile_options(fastkernels_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
set_target_properties(fastkernels_cuda PROPERTIES
  CUDA_RUNTIME_LIBRARY Shared CUDA_VISIBILITY_PRESET hidden)
target_link_options(fastkernels_cuda PRIVATE -Wl,--no-undefined)

# What tools/gpu/check compares `linear` with.
add_executable(linear_algorithms tools/gpu/linear_algorithms.cu)
target_link_libraries(linear_algorithms PRIVATE fastkernels fk_settings CUDA::cublasLt)
target_compile_options(linear_algorithms PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 -Xcompiler=-Wall -Wno-deprecated-gpu-targets>)
set_target_properties(linear_algorithms PROPERTIES CUDA_RUNTIME_LIBRARY Shared)
