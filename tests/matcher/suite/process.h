// Runs a rewriter, which may be anything, and survives it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace mulgrad::matcher {

enum class Ending : std::uint8_t {
  exited,       // `code` is the exit code
  signalled,    // `code` is the signal
  not_run,      // the shell did not find the command, or may not run it
  out_of_time,  // it was killed
};

struct Reply {
  Ending ending = Ending::exited;
  int code = 0;
  std::string output;
  std::string errors;
};

// Runs /bin/sh -c `command` with `input` as its standard input, in a process group of its own that
// is killed when the shell ends or the time is over. What it writes is limited to 64 MiB a stream.
// Throws std::system_error where no process or file can be had.
Reply run_command(const std::string& command, const std::string& input,
                  std::chrono::milliseconds time_limit);

}  // namespace mulgrad::matcher
