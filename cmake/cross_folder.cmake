# rnicd_cross_folder(system title): sets RNICD_<SYSTEM>_DIR, the folder that scripts/<system>-test --setup fills for builds
# for another system. Its script in tests/ chooses the place by the same rule.
macro(rnicd_cross_folder system title)
  string(TOUPPER ${system} rnicd_system)
  if(DEFINED ENV{RNICD_${rnicd_system}_DIR})
    set(rnicd_folder "$ENV{RNICD_${rnicd_system}_DIR}")
  elseif(DEFINED ENV{XDG_CACHE_HOME})
    set(rnicd_folder "$ENV{XDG_CACHE_HOME}/rnicd/${system}")
  else()
    set(rnicd_folder "$ENV{HOME}/.cache/rnicd/${system}")
  endif()
  set(RNICD_${rnicd_system}_DIR "${rnicd_folder}" CACHE PATH "${title}")
  # CMake's own trial builds read the toolchain file too.
  list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RNICD_${rnicd_system}_DIR)
endmacro()
