# cmake -DOUTPUT=embedded.cc "-DFILES=a.html;b.js" -P embed.cmake
# Writes a C++ file with the bytes of the files. A raw string needs no tool on the build machine.
set(cases "")
foreach(file IN LISTS FILES)
  file(READ "${file}" text)
  get_filename_component(name "${file}" NAME)
  string(LENGTH "${text}" length)
  if(length GREATER 65000 OR text MATCHES "\\)rnicd\"")
    message(FATAL_ERROR "${file} does not fit into a string of C++")
  endif()
  string(APPEND cases "  if (name == \"${name}\") {\n    return R\"rnicd(${text})rnicd\";\n  }\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"daemon/status_page/embedded.h\"

namespace rnicd::status_page {

std::string_view Embedded(std::string_view name) {
${cases}  return {};
}

}  // namespace rnicd::status_page
")
