# k230_embed_manifest(<file.cpp>): writes a source with the manifest in an ELF section of its own,
# where `k230 runner check` finds it in a file that this machine cannot run.
function(k230_embed_manifest output)
  if(K230_MANIFEST)
    file(READ "${K230_MANIFEST}" manifest)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${K230_MANIFEST}")
  else()
    set(manifest "{\"schema_version\": 1, \"variant\": \"${K230_VARIANT}\"}")
  endif()
  string(STRIP "${manifest}" manifest)
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
