# cmake -DINPUT=F -DOUTPUT=F.cc -DHEADER=h -DFUNCTION=ns::f -P embed.cmake
# Writes a source that defines `std::string_view ns::f()`, the bytes of the file, as HEADER declares.
# An array of bytes, as a compiler need not take a string literal above 64 KiB.
file(READ ${INPUT} bytes HEX)
string(REPEAT "[0-9a-f]" 64 line)
string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
cmake_path(GET INPUT FILENAME name)
file(WRITE ${OUTPUT} "// Generated from ${name}.
#include \"${HEADER}\"

static const unsigned char kBytes[] = {
${bytes}
};

std::string_view ${FUNCTION}() { return {reinterpret_cast<const char*>(kBytes), sizeof kBytes}; }
")
