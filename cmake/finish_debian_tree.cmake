# Run by cpack once the files of the packages are staged: the remaining requirements of Debian's policy.
find_program(GZIP gzip REQUIRED)
if(CPACK_RNICD_STRIP)
  set(STRIP ${CPACK_RNICD_STRIP})
endif()
find_program(STRIP strip REQUIRED)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Reproducible: omits name and time from the compressed file.
function(compress)
  if(ARGV)
    run(${GZIP} -9n ${ARGV})
  endif()
endfunction()

function(strip how)
  if(ARGN MATCHES "(^|;)/")
    run(${STRIP} ${how} --remove-section=.comment --remove-section=.note ${ARGN})
  endif()
endfunction()

function(finish_tree root package)
  set(doc ${root}/usr/share/doc/${package})
  file(MAKE_DIRECTORY ${doc})
  # Debian ships the licence text once for all packages; the file copyright names its path.
  file(REMOVE ${doc}/LICENSE)
  # Not with the modes of the checkout, which may be those of an archive.
  file(COPY ${CPACK_RNICD_DEBIAN_DIR}/copyright DESTINATION ${doc} NO_SOURCE_PERMISSIONS)
  configure_file(${CPACK_RNICD_DEBIAN_DIR}/changelog ${doc}/changelog.Debian COPYONLY NO_SOURCE_PERMISSIONS)
  file(MAKE_DIRECTORY ${root}/usr/share/lintian/overrides)
  configure_file(${CPACK_RNICD_DEBIAN_DIR}/lintian-overrides ${root}/usr/share/lintian/overrides/${package}
                 COPYONLY NO_SOURCE_PERMISSIONS)
  if(EXISTS ${doc}/CHANGELOG.md)
    file(RENAME ${doc}/CHANGELOG.md ${doc}/changelog)
    compress(${doc}/changelog)
  endif()
  file(GLOB_RECURSE pages ${root}/usr/share/man/*)
  compress(${doc}/changelog.Debian ${pages})
  # The symbols of programs are in a separate package; there is none for the symbols of static libraries.
  file(GLOB programs ${root}/usr/bin/*)
  file(GLOB_RECURSE archives ${root}/usr/lib/*.a)
  file(GLOB_RECURSE shared ${root}/usr/lib/librnicd.so.*.* ${root}/usr/lib/librnicd-*.so)
  strip(--strip-all ${programs})
  strip(--strip-unneeded ${shared})
  strip(--strip-debug --enable-deterministic-archives ${archives})
endfunction()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  finish_tree(${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component} ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
endforeach()
