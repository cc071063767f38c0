# SPDX-License-Identifier: Apache-2.0
# What goes into dist/: `cmake --install build --prefix dist` (tools/dist). cmake/settings.cmake sets the
# run path, by which programs find the libraries.
install(TARGETS fastkernels_cli RUNTIME DESTINATION bin)
install(TARGETS fastkernels LIBRARY DESTINATION lib)
if(FK_HAVE_CUDA)
  install(TARGETS fastkernels_cuda LIBRARY DESTINATION lib)
endif()
foreach(program check_ops check_backend linear_algorithms) # what tools/gpu/check runs
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION bin)
  endif()
endforeach()
install(DIRECTORY include/fk DESTINATION include)
install(DIRECTORY ops/ DESTINATION include/ops FILES_MATCHING PATTERN "*.def" PATTERN "*_stub.c" PATTERN "*_stub.cu")
install(DIRECTORY scenarios examples DESTINATION . OPTIONAL)
install(DIRECTORY tests/goldens DESTINATION . OPTIONAL)
install(PROGRAMS tools/gpu/check DESTINATION bin RENAME gpu-check OPTIONAL)
install(DIRECTORY tools/gpu tools/compare tools/reference DESTINATION tools OPTIONAL)
install(DIRECTORY models/configs DESTINATION models)
install(PROGRAMS tools/demo tools/fetch-assets DESTINATION tools)
install(FILES tools/assets.tsv DESTINATION tools)
install(FILES LICENSE README.md DESTINATION . OPTIONAL)
