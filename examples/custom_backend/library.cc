#include "examples/custom_backend/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

#include "core/error.h"

namespace mulgrad::examples {
namespace {

[[noreturn]] void fail(const std::string& message) { throw Error(Category::io_error, message); }

std::string read_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = std::filesystem::temp_directory_path() / "custom_backend.XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    fail("cannot make the directory " + pattern + ": " + std::strerror(errno));
  }
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;  // what is left behind is of no consequence
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) fail("cannot write " + path.string() + ": " + std::strerror(errno));
}

void compile_c(const std::string& compiler, const std::filesystem::path& source,
               const std::filesystem::path& shared_object) {
  std::vector<std::string> arguments{compiler,        "-std=c99", "-O2", "-ffp-contract=off",
                                     "-fPIC",         "-shared",  "-o",  shared_object.string(),
                                     source.string(), "-lm"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  const std::string messages = shared_object.string() + ".messages";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    fail("cannot run the C compiler \"" + compiler + "\": " + std::strerror(error) +
         "; install one, or name it with --cc");
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail("lost the C compiler: " + std::string(std::strerror(errno)));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fail("the C compiler \"" + compiler + "\" refused " + source.string() + ":\n" +
         read_file(messages));
  }
}

CLibrary::CLibrary(const std::filesystem::path& shared_object)
    : handle_(dlopen(shared_object.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_) fail("cannot load " + shared_object.string() + ": " + dlerror());
}

void CLibrary::Close::operator()(void* handle) const { dlclose(handle); }

void CLibrary::call(const std::string& name, std::span<void* const> arguments) const {
  void* const symbol = dlsym(handle_.get(), name.c_str());
  if (symbol == nullptr) fail("the compiled file has no function " + name);
  reinterpret_cast<void (*)(void* const*)>(symbol)(arguments.data());
}

}  // namespace mulgrad::examples
