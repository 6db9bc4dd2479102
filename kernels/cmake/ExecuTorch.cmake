# Finds ExecuTorch and gives its two forms one face:
#   k230::executorch   runtime, headers, definitions
#   k230::fallback     the kernels that serve every operator for which we have none
#   k230::etdump       the tracer, only when there is one
# K230_EXECUTORCH_FORM is `wheel` or `prefix`, K230_EXECUTORCH_VERSION its version where known.

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
  set(K230_EXECUTORCH_VERSION "${executorch_VERSION}")
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
  # carries its own whole-archive option: linking it so again would register everything twice
  target_link_libraries(k230_fallback INTERFACE portable_ops_lib)
  set(etdump_targets etdump flatccrt)
else()
  message(
    FATAL_ERROR
      "k230: the ExecuTorch package at '${executorch_DIR}' has no C++ libraries: the wheel must be "
      "1.5.0 or later (found ${executorch_VERSION})")
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
endif()

message(STATUS "k230: ExecuTorch ${K230_EXECUTORCH_VERSION} (${K230_EXECUTORCH_FORM})")
