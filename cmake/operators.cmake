# SPDX-License-Identifier: Apache-2.0
# Derives the operators' sources from ops/ops.def. For "norm/rms_norm.def" these are ops/norm/rms_norm.c (reference; must
# exist), rms_norm_cpu.c (built once an instruction-set level) and rms_norm.cu (CUDA baseline) where they exist; the lists
# of what exists go to the build folder as cpu_impls.def and cuda_impls.def. The fuzz build runs no operator: it has none.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ops/ops.def)
file(STRINGS ${CMAKE_SOURCE_DIR}/ops/ops.def includes REGEX "^#include \"[^\"]+\\.def\"")

set(FK_OP_REFERENCES)
set(FK_OP_CPU_SOURCES)
set(FK_OP_CUDA_SOURCES)
set(cpu_impls)
set(cuda_impls)
if(NOT FK_FUZZ)
  list(APPEND FK_OP_CPU_SOURCES ops/attention/attention_units_cpu.c) # what all attention on the CPU calls
endif()
foreach(line ${includes})
  string(REGEX REPLACE "^#include \"([^\"]+)\\.def\".*" "\\1" stem ${line})
  get_filename_component(name ${stem} NAME)
  set(source ops/${stem}.c)
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${source})
    message(FATAL_ERROR "operator ${name} is declared in ops/ops.def but has no reference ${source}")
  endif()
  list(APPEND FK_OP_REFERENCES ${source})
  if(EXISTS ${CMAKE_SOURCE_DIR}/ops/${stem}_cpu.c AND NOT FK_FUZZ)
    list(APPEND FK_OP_CPU_SOURCES ops/${stem}_cpu.c)
    string(APPEND cpu_impls "FKP_CPU_IMPL(${name})\n")
  endif()
  if(EXISTS ${CMAKE_SOURCE_DIR}/ops/${stem}.cu)
    list(APPEND FK_OP_CUDA_SOURCES ops/${stem}.cu)
    string(APPEND cuda_impls "FKP_CUDA_IMPL(${name})\n")
  endif()
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/cpu_impls.def CONTENT "${cpu_impls}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/cuda_impls.def CONTENT "${cuda_impls}")

# Compiler options of a level's kernels.
# -ffp-contract is on by default in GCC for non-ISO modes only; kernels want fused multiply-adds at every level.
set(common -O3 -ffp-contract=fast -fno-math-errno -Wno-psabi)
# From GCC 13 on, a sum that feeds itself is not fused when it is the loop's only one (tuning for generic CPUs), but fused beside
# others: then a row's bits would depend on how many rows a thread computes side by side (test_threads). Fuse it always.
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
  list(APPEND common --param=avoid-fma-max-bits=0)
endif()
set(FK_CPU_FLAGS_scalar ${common})
set(FK_CPU_FLAGS_avx2 ${common} -mavx2 -mfma -mf16c)
set(FK_CPU_FLAGS_avx512 ${common} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mprefer-vector-width=512)

# Compiles every *_cpu.c once a level; the objects are in FK_CPU_LEVEL_OBJECTS.
function(fk_add_cpu_levels)
  set(priority 0)
  set(objects)
  if(NOT FK_OP_CPU_SOURCES)
    return()
  endif()
  foreach(level scalar avx2 avx512)
    add_library(fastkernels_cpu_${level} OBJECT ${FK_OP_CPU_SOURCES})
    target_link_libraries(fastkernels_cpu_${level} PUBLIC fk_settings)
    target_compile_options(fastkernels_cpu_${level} PRIVATE ${FK_CPU_FLAGS_${level}})
    target_compile_definitions(fastkernels_cpu_${level} PRIVATE FKP_LEVEL=${level} FKP_LEVEL_PRIORITY=${priority})
    list(APPEND objects $<TARGET_OBJECTS:fastkernels_cpu_${level}>)
    math(EXPR priority "${priority} + 1")
  endforeach()
  set(FK_CPU_LEVEL_OBJECTS ${objects} PARENT_SCOPE)
endfunction()
