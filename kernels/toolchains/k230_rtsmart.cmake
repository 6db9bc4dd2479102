# The RT-Smart core of the K230 with the compiler of the K230 SDK. Also for the build of an
# ExecuTorch prefix. The C library makes RT-Smart's own system calls, so nothing built with this
# runs on Linux.
#
#   K230_TOOLCHAIN     folder of the SDK's compiler, with bin/riscv64-unknown-linux-musl-g++
#   K230_SDK           folder of the SDK's sources; gives the next two unless they are set
#   K230_LINK_SCRIPT   link.lds, which puts the entry at 0x200000000
#   K230_RTTHREAD_LIB  folder of librtthread.a
# Each may also be an environment variable.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR riscv64)

set(gnu riscv64-unknown-linux-musl)
set(default_toolchain "/opt/toolchain/riscv64-linux-musleabi_for_x86_64-pc-linux-gnu")
set(default_script "src/big/mpp/userapps/sample/linker_scripts/riscv64/link.lds")
set(default_rtthread "src/big/rt-smart/userapps/sdk/rt-thread/lib")

macro(k230_setting name default help)
  if(NOT ${name} AND DEFINED ENV{${name}})
    set(${name} "$ENV{${name}}")
  elseif(NOT ${name})
    set(${name} "${default}")
  endif()
  set(${name} "${${name}}" CACHE PATH "${help}")
  list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ${name})
endmacro()

k230_setting(K230_TOOLCHAIN "${default_toolchain}" "Folder of the SDK's compiler")
k230_setting(K230_SDK "" "Folder of the SDK's sources")
k230_setting(K230_LINK_SCRIPT "${K230_SDK}/${default_script}" "The SDK's link.lds")
k230_setting(K230_RTTHREAD_LIB "${K230_SDK}/${default_rtthread}" "Folder of librtthread.a")

if(NOT EXISTS "${K230_TOOLCHAIN}/bin/${gnu}-g++")
  message(
    FATAL_ERROR
      "k230: no compiler at ${K230_TOOLCHAIN}/bin/${gnu}-g++: set K230_TOOLCHAIN to the folder where "
      "the SDK's toolchain was unpacked")
endif()
if(NOT EXISTS "${K230_LINK_SCRIPT}")
  message(
    FATAL_ERROR
      "k230: no linker script at ${K230_LINK_SCRIPT}: set K230_SDK to the SDK's folder, or "
      "K230_LINK_SCRIPT to its link.lds")
endif()
file(GLOB rtthread "${K230_RTTHREAD_LIB}/librtthread.a"
     "${K230_RTTHREAD_LIB}/risc-v/rv64/librtthread.a")
if(NOT rtthread)
  message(
    FATAL_ERROR
      "k230: no librtthread.a in ${K230_RTTHREAD_LIB}: build the SDK's rt-smart libraries, or set "
      "K230_RTTHREAD_LIB to its folder")
endif()

foreach(language IN ITEMS C CXX)
  # medany: programs live at 8 GiB, out of reach for the other code models
  set(CMAKE_${language}_FLAGS_INIT "-march=rv64imafdcv -mabi=lp64d -mcmodel=medany")
  set(CMAKE_${language}_STANDARD_LIBRARIES
      "-Wl,--start-group -Wl,--whole-archive -lrtthread -Wl,--no-whole-archive -lc -lgcc -Wl,--end-group")
endforeach()
set(CMAKE_C_COMPILER "${K230_TOOLCHAIN}/bin/${gnu}-gcc")
set(CMAKE_CXX_COMPILER "${K230_TOOLCHAIN}/bin/${gnu}-g++")
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-n -static -no-pie -T ${K230_LINK_SCRIPT} -L${K230_RTTHREAD_LIB} -L${K230_RTTHREAD_LIB}/risc-v/rv64")

# Programs for RT-Smart cannot run here, and the checks of CMake need no linked one.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
# the ExecuTorch prefix lies outside
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
