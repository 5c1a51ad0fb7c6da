# Several files of a target compiled as one. A file of this project is small, and most of what its compiler does is
# reading headers and making the same templates again: ten together take a third of the time of ten alone, and forty half
# of the time of four tens.
#
# What follows for the sources of one target: names in unnamed namespaces are seen by the files beside them, so that two
# files cannot give the same name to two things. The compiler refuses it. Not in the build for Windows, where a file would
# see the macros of windows.h, which another includes.
option(RNICD_UNITY "Compile several files of a target as one" ON)

# More make a build from nothing faster, and one after a small change slower.
set(RNICD_UNITY_FILES 40 CACHE STRING "How many files of a target are compiled as one, about")

# rnicd_compile_together(target): a file belongs to a group by the hash of its name, so that a new file changes its own
# group and none after it; the number of groups is a power of two, so that it seldom changes. A file whose
# UNITY_GROUP is set stays in that group.
# CMake's own unity build has absolute paths in its files, by which ccache would know the objects of clones at this path only.
function(rnicd_compile_together target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  list(LENGTH sources count)
  if(NOT RNICD_UNITY OR count LESS 2)
    return()
  endif()
  set(groups 1)
  set(room ${RNICD_UNITY_FILES})
  while(count GREATER room)
    math(EXPR groups "${groups} * 2")
    math(EXPR room "${room} * 2")
  endwhile()
  # GCC takes each file but the first for a header, where a class with members of an unnamed namespace is a mistake.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR})
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/together)
  set(names "")
  foreach(source IN LISTS sources)
    get_source_file_property(alone ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(alone)
      continue()
    endif()
    get_source_file_property(group ${source} UNITY_GROUP)
    if(NOT group)
      get_filename_component(name ${source} NAME_WE)
      string(MD5 hash ${name})
      string(SUBSTRING ${hash} 0 6 hash)
      math(EXPR group "0x${hash} % ${groups}")
    endif()
    get_filename_component(path ${source} ABSOLUTE)
    foreach(root IN ITEMS ${CMAKE_CURRENT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
      string(REPLACE "${root}/" "" path ${path})
    endforeach()
    string(APPEND content_${group} "#include \"${path}\"\n")
    list(APPEND names ${group})
    set_source_files_properties(${source} PROPERTIES HEADER_FILE_ONLY ON)
  endforeach()
  list(REMOVE_DUPLICATES names)
  foreach(group IN LISTS names)
    file(CONFIGURE OUTPUT ${folder}/${target}_${group}.cc CONTENT "${content_${group}}" @ONLY)
    target_sources(${target} PRIVATE ${folder}/${target}_${group}.cc)
  endforeach()
endfunction()
