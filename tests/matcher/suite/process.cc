#include "tests/matcher/suite/process.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>

namespace mulgrad::matcher {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// An unnamed file as a stream of the process: no pipe can fill up, whoever does not read.
class Stream {
 public:
  explicit Stream(const std::string& content = {}) : file_(std::tmpfile()) {
    if (!file_ || std::fwrite(content.data(), 1, content.size(), file_.get()) != content.size() ||
        std::fflush(file_.get()) != 0) {
      throw std::system_error(errno, std::generic_category(), "temporary file");
    }
    std::rewind(file_.get());
  }

  int descriptor() const { return ::fileno(file_.get()); }

  std::string content() const {
    std::string text;
    char buffer[1 << 16];
    std::rewind(file_.get());
    while (const std::size_t read = std::fread(buffer, 1, sizeof buffer, file_.get())) {
      text.append(buffer, read);
    }
    return text;
  }

 private:
  std::unique_ptr<std::FILE, Close> file_;
};

// In the child, between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(const char* command, int input, int output, int errors) {
  constexpr rlim_t kLimit = 64 << 20;
  const rlimit limit{kLimit, kLimit};
  ::setpgid(0, 0);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  if (::dup2(input, 0) == 0 && ::dup2(output, 1) == 1 && ::dup2(errors, 2) == 2) {
    ::execl("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr));
  }
  ::_exit(127);
}

}  // namespace

Reply run_command(const std::string& command, const std::string& input,
                  std::chrono::milliseconds time_limit) {
  const Stream in(input);
  const Stream out;
  const Stream err;
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) become(command.c_str(), in.descriptor(), out.descriptor(), err.descriptor());
  ::setpgid(child, child);  // here too, so that the group exists whoever comes first

  const auto deadline = std::chrono::steady_clock::now() + time_limit;
  int status = 0;
  bool in_time = true;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= deadline) {
      in_time = false;
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ::kill(-child, SIGKILL);  // what it may have left behind

  Reply reply;
  if (!in_time) {
    reply.ending = Ending::out_of_time;
  } else if (WIFSIGNALED(status)) {
    reply = {Ending::signalled, WTERMSIG(status), {}, {}};
  } else if (const int code = WEXITSTATUS(status); code == 126 || code == 127) {
    reply = {Ending::not_run, code, {}, {}};
  } else if (code > 128) {  // how a shell reports the signal that ended its command
    reply = {Ending::signalled, code - 128, {}, {}};
  } else {
    reply = {Ending::exited, code, {}, {}};
  }
  reply.output = out.content();
  reply.errors = err.content();
  return reply;
}

}  // namespace mulgrad::matcher
