# RISC-V Linux with Debian's cross packages: g++-riscv64-linux-gnu, and clang for the vector
# intrinsics, which gcc has from 14 on. Also for the build of an ExecuTorch prefix.
#
#   K230_RISCV_COMPILER  clang, gcc, or auto: the newest clang that is installed, else gcc
#   K230_RISCV_GNU       name in front of the GNU tools (riscv64-linux-gnu)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR riscv64)

set(K230_RISCV_COMPILER "auto" CACHE STRING "clang, gcc or auto")
set(K230_RISCV_GNU "riscv64-linux-gnu" CACHE STRING "Name in front of the GNU tools")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES K230_RISCV_COMPILER K230_RISCV_GNU)

set(clang_names clang++-21 clang++-20 clang++-19 clang++-18 clang++-17)
if(NOT K230_RISCV_COMPILER STREQUAL "gcc")
  find_program(K230_RISCV_CLANGXX NAMES ${clang_names})
  string(REPLACE "clang++" "clang" clang_c "${K230_RISCV_CLANGXX}")
endif()
find_program(K230_RISCV_GXX NAMES ${K230_RISCV_GNU}-g++)
if(NOT K230_RISCV_GXX)
  message(
    FATAL_ERROR
      "k230: ${K230_RISCV_GNU}-g++ is not installed: apt-get install g++-riscv64-linux-gnu")
endif()
if(K230_RISCV_COMPILER STREQUAL "clang" AND NOT K230_RISCV_CLANGXX)
  message(FATAL_ERROR "k230: no clang 17 or later is installed: apt-get install clang-19")
endif()

if(K230_RISCV_CLANGXX)
  set(CMAKE_C_COMPILER "${clang_c}")
  set(CMAKE_CXX_COMPILER "${K230_RISCV_CLANGXX}")
  # clang takes headers, libraries and linker of the GNU cross packages
  set(CMAKE_C_COMPILER_TARGET ${K230_RISCV_GNU})
  set(CMAKE_CXX_COMPILER_TARGET ${K230_RISCV_GNU})
else()
  string(REGEX REPLACE "g\\+\\+$" "gcc" CMAKE_C_COMPILER "${K230_RISCV_GXX}")
  set(CMAKE_CXX_COMPILER "${K230_RISCV_GXX}")
endif()

# The base without V: files with vector kernels ask for it themselves, and run after a check.
set(CMAKE_C_FLAGS_INIT "-march=rv64gc")
set(CMAKE_CXX_FLAGS_INIT "-march=rv64gc")

set(CMAKE_FIND_ROOT_PATH "/usr/${K230_RISCV_GNU}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
# the ExecuTorch prefix lies outside
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
