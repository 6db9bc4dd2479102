# k230_embed_manifest(<file.cpp>): writes a source with the manifest in an ELF section of its own,
# where `k230 runner check` finds it in a file that this machine cannot run.
function(k230_embed_manifest output)
  if(K230_MANIFEST)
    file(READ "${K230_MANIFEST}" manifest)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${K230_MANIFEST}")
  else()
    set(manifest "{\"schema_version\": 1, \"variant\": \"${K230_VARIANT}\"}")
  endif()
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  set(flags "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}")
  string(STRIP "${flags}" flags)
  string(
    JSON manifest SET "${manifest}" executorch
    "{\"version\": \"${K230_EXECUTORCH_VERSION}\", \"form\": \"${K230_EXECUTORCH_FORM}\"}")
  string(
    JSON manifest SET "${manifest}" compiler
    "{\"id\": \"${CMAKE_CXX_COMPILER_ID}\", \"version\": \"${CMAKE_CXX_COMPILER_VERSION}\"}")
  string(JSON manifest SET "${manifest}" flags "\"${flags}\"")
  file(
    CONFIGURE
    OUTPUT "${output}"
    CONTENT
      [=[
#include "manifest.h"

namespace k230 {
namespace {

__attribute__((section(".k230_manifest"), used)) const char kManifest[] = R"k230(@manifest@)k230";

}  // namespace

const char* manifest_json() { return kManifest; }

}  // namespace k230
]=]
    @ONLY)
endfunction()
