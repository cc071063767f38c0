# SPDX-License-Identifier: Apache-2.0
# Derives the model sources from models/models.def, and writes two tables into the build folder: the configurations
# models/configs/<architecture>-<size>.json as {name, text}, and the assets of tools/assets.tsv as {name, file, bytes}.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/models/models.def
                                                              ${CMAKE_SOURCE_DIR}/tools/assets.tsv)
file(STRINGS ${CMAKE_SOURCE_DIR}/models/models.def lines REGEX "^FK_MODEL\\(")
set(FK_MODEL_SOURCES)
set(configs)
foreach(line ${lines})
  string(REGEX REPLACE "^FK_MODEL\\(([a-z0-9_]+)\\).*" "\\1" name ${line})
  list(APPEND FK_MODEL_SOURCES models/${name}.c)
  # The configurations are data beside the model; their names are their only list.
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/models/configs/${name}-*.json)
  foreach(file ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(stem ${file} NAME_WE)
    string(REGEX REPLACE "^${name}-" "${name}:" config ${stem})
    file(READ ${file} text)
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\n" " " text "${text}")
    string(APPEND configs "{\"${config}\", \"${text}\"},\n")
  endforeach()
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/generated/model_configs.inc.new "${configs}")

file(STRINGS ${CMAKE_SOURCE_DIR}/tools/assets.tsv lines REGEX "^[^#]")
set(assets)
foreach(line ${lines})
  string(REPLACE "\t" ";" columns "${line}")
  list(GET columns 0 name)
  list(GET columns 5 file)
  list(GET columns 6 bytes)
  string(APPEND assets "{\"${name}\", \"${file}\", ${bytes}},\n")
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/generated/assets.inc.new "${assets}")
foreach(table model_configs assets) # only a changed table makes files recompile
  file(COPY_FILE ${CMAKE_BINARY_DIR}/generated/${table}.inc.new ${CMAKE_BINARY_DIR}/generated/${table}.inc ONLY_IF_DIFFERENT)
endforeach()
