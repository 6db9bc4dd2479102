# Finds ExecuTorch and gives its two forms one face:
#   k230::executorch   runtime, headers, definitions
#   k230::fallback     the kernels that serve every operator for which we have none
#   k230::etdump       the tracer, only when there is one
# K230_EXECUTORCH_FORM is `wheel` or `prefix`, K230_EXECUTORCH_VERSION its version where known.

set(K230_ETDUMP_HEADERS
    ""
    CACHE PATH "Include folder with executorch/devtools/etdump, when the prefix has none")

# The version in the prefix's own header (there since 1.2); empty when there is none.
function(k230_version_of include_dirs result)
  set(found "")
  foreach(folder IN LISTS include_dirs)
    set(header "${folder}/executorch/runtime/core/version.h")
    if(EXISTS "${header}")
      file(STRINGS "${header}" line REGEX "define ET_VERSION ")
      string(REGEX MATCH "[0-9]+[.][0-9.]+" found "${line}")
      break()
    endif()
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# ExecuTorch's install step leaves out the tracer's headers. They are the same from 1.2 to 1.5, so
# those of the pip package do; only they are taken from there, everything else from the prefix.
macro(k230_find_etdump_headers)
  set(header "executorch/devtools/etdump/etdump_flatcc.h")
  find_file(own_header NAMES ${header} PATHS ${EXECUTORCH_INCLUDE_DIRS} NO_CACHE NO_DEFAULT_PATH
            NO_CMAKE_FIND_ROOT_PATH)
  if(NOT own_header)
    if(NOT EXISTS "${K230_ETDUMP_HEADERS}/${header}")
      message(
        FATAL_ERROR
          "k230: the ExecuTorch prefix has no ${header}: set K230_ETDUMP_HEADERS to a folder that "
          "has it (the pip package's include), or choose K230_TRACER=OFF")
    endif()
    set(forward "${CMAKE_BINARY_DIR}/etdump_headers")
    file(MAKE_DIRECTORY "${forward}/executorch")
    file(CREATE_LINK "${K230_ETDUMP_HEADERS}/executorch/devtools"
         "${forward}/executorch/devtools" SYMBOLIC)
    target_include_directories(k230_etdump SYSTEM INTERFACE "${forward}")
  endif()
endmacro()

find_package(executorch CONFIG QUIET)
if(NOT executorch_FOUND AND NOT EXECUTORCH_FOUND)
  message(
    FATAL_ERROR
      "k230: no ExecuTorch C++ package in CMAKE_PREFIX_PATH '${CMAKE_PREFIX_PATH}': give the folder "
      "of the pip package (1.5.0 or later) or an installed prefix")
endif()

add_library(k230_executorch INTERFACE)
add_library(k230_fallback INTERFACE)
add_library(k230::executorch ALIAS k230_executorch)
add_library(k230::fallback ALIAS k230_fallback)

if(TARGET executorch::runtime)
  set(K230_EXECUTORCH_FORM "wheel")
  set(K230_EXECUTORCH_VERSION "${EXECUTORCH_BUILD_VERSION}")
  if(NOT TARGET executorch::kernels_optimized)
    message(FATAL_ERROR "k230: this ExecuTorch wheel has no kernels library: 1.5.0 or later is needed")
  endif()
  target_link_libraries(k230_executorch INTERFACE executorch::runtime)
  target_link_libraries(k230_fallback INTERFACE executorch::kernels_optimized)
  set(etdump_targets executorch::etdump)
elseif(TARGET executorch_core OR TARGET executorch)
  set(K230_EXECUTORCH_FORM "prefix")
  k230_version_of("${EXECUTORCH_INCLUDE_DIRS}" K230_EXECUTORCH_VERSION)
  if(K230_EXECUTORCH_VERSION VERSION_LESS 1.2)
    message(
      FATAL_ERROR
        "k230: the ExecuTorch prefix has version '${K230_EXECUTORCH_VERSION}': 1.2 or later is needed")
  endif()
  foreach(needed IN ITEMS executorch extension_data_loader portable_ops_lib)
    if(NOT TARGET ${needed})
      message(
        FATAL_ERROR
          "k230: the ExecuTorch prefix lacks '${needed}': build it with "
          "EXECUTORCH_BUILD_EXTENSION_DATA_LOADER=ON and the portable kernels, see docs/runner.md")
    endif()
  endforeach()
  target_link_libraries(k230_executorch INTERFACE executorch extension_data_loader)
  target_include_directories(k230_executorch SYSTEM INTERFACE ${EXECUTORCH_INCLUDE_DIRS})
  # not in the interface of the installed targets, but their headers need it
  target_compile_definitions(k230_executorch INTERFACE C10_USING_CUSTOM_GENERATED_MACROS)
  if(K230_REGISTRATION)
    target_link_libraries(k230_fallback INTERFACE portable_kernels)
  else()
    # carries its own whole-archive option: linking it so again would register everything twice
    target_link_libraries(k230_fallback INTERFACE portable_ops_lib)
  endif()
  set(etdump_targets etdump flatccrt)
else()
  message(
    FATAL_ERROR
      "k230: the ExecuTorch package at '${executorch_DIR}' has no C++ libraries: a pip package must be "
      "1.5.0 or later")
endif()

if(K230_TRACER)
  list(GET etdump_targets 0 first)
  if(NOT TARGET ${first})
    message(
      FATAL_ERROR
        "k230: this ExecuTorch has no event tracer: build the prefix with "
        "EXECUTORCH_BUILD_DEVTOOLS=ON and EXECUTORCH_ENABLE_EVENT_TRACER=ON, or choose K230_TRACER=OFF")
  endif()
  add_library(k230_etdump INTERFACE)
  add_library(k230::etdump ALIAS k230_etdump)
  target_link_libraries(k230_etdump INTERFACE ${etdump_targets})
  target_compile_definitions(k230_executorch INTERFACE ET_EVENT_TRACER_ENABLED)
  if(K230_EXECUTORCH_FORM STREQUAL "prefix")
    k230_find_etdump_headers()
  endif()
endif()

message(STATUS "k230: ExecuTorch ${K230_EXECUTORCH_VERSION} (${K230_EXECUTORCH_FORM})")
