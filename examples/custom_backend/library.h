// The backend's running half: compiles a C file with the system's compiler and loads it.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace mulgrad::examples {

// A directory of our own that is removed with its contents.
class TemporaryDirectory {
 public:
  TemporaryDirectory();  // throws io_error
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Throws io_error when the file cannot be written.
void write_file(const std::filesystem::path& path, const std::string& text);

// Compiles a C99 file into a shared object: optimised, but with every operation as written (no fast
// math, no contraction into fused multiply-add). Throws io_error when the compiler is missing, and
// with its messages when it fails.
void compile_c(const std::string& compiler, const std::filesystem::path& source,
               const std::filesystem::path& shared_object);

// A loaded shared object. Throws io_error when it cannot be loaded.
class CLibrary {
 public:
  explicit CLibrary(const std::filesystem::path& shared_object);

  // Calls the C function `void name(void* const* arguments)`; throws io_error when there is none.
  void call(const std::string& name, std::span<void* const> arguments) const;

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Close> handle_;
};

}  // namespace mulgrad::examples
