# SPDX-License-Identifier: Apache-2.0
# Writes the commit of SOURCE_DIR into OUTPUT (a C file), only when it changed. Run at each build: cmake -P.
set(commit unknown)
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE_DIR} rev-parse --short=12 HEAD OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    execute_process(COMMAND ${git} -C ${SOURCE_DIR} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
    set(commit ${head})
    if(changes)
      string(APPEND commit "-modified")
    endif()
  endif()
endif()
set(text "/* Written by cmake/commit.cmake. */
extern const char fkp_version[], fkp_commit[];
const char fkp_version[] = \"${VERSION}\";
const char fkp_commit[] = \"${commit}\";
")
set(old)
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
