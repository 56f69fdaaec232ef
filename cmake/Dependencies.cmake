# Every third-party package, in one place; all are Debian 12 packages (.ci/setup installs them).
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)

find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(absl REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(prometheus-cpp REQUIRED COMPONENTS core)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Protobuf REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(rapidcheck REQUIRED)
find_package(PkgConfig REQUIRED)
# Debian's CMake files of these name optional libraries that are not installed; pkg-config suffices.
pkg_check_modules(grpcxx REQUIRED IMPORTED_TARGET grpc++)
pkg_check_modules(re2 REQUIRED IMPORTED_TARGET re2)
# Threads::Threads already gives -pthread; a second one differs from the precompiled headers.
set_property(TARGET PkgConfig::re2 PROPERTY INTERFACE_COMPILE_OPTIONS "")
find_library(ROCKSDB_LIBRARY rocksdb REQUIRED)
find_library(LIBYAML_LIBRARY yaml REQUIRED)
find_library(WSLAY_LIBRARY wslay REQUIRED)
# Linked statically into programs that live off many small objects: docs/design/0003-allocator.md.
find_library(TCMALLOC_LIBRARY libtcmalloc_minimal.a REQUIRED)
# For one row of the benchmarks, which is left out without oneDNN.
find_library(DNNL_LIBRARY dnnl)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

# mold links these programs several times faster than GNU ld; any linker is correct.
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # base_dir and hash_dir let checkouts at different paths share one cache; the sloppiness is what
  # ccache's manual asks for with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
endif()
