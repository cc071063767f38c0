# SPDX-License-Identifier: Apache-2.0
# fk_embed(target file symbol): compiles a data file into `target` as `const unsigned char <symbol>[]`, NUL-terminated.
# With FK_EMBED_OUTPUT set this file is the script that writes the C source.
if(DEFINED FK_EMBED_OUTPUT)
  file(READ ${FK_EMBED_INPUT} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  file(WRITE ${FK_EMBED_OUTPUT} "extern const unsigned char ${FK_EMBED_SYMBOL}[];\nconst unsigned char ${FK_EMBED_SYMBOL}[] = {\n${bytes}0};\n")
  return()
endif()

function(fk_embed target file symbol)
  set(output ${CMAKE_BINARY_DIR}/generated/${symbol}.c)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DFK_EMBED_INPUT=${CMAKE_SOURCE_DIR}/${file} -DFK_EMBED_OUTPUT=${output} -DFK_EMBED_SYMBOL=${symbol}
            -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
