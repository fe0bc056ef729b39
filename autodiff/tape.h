// Tape: records expressions into a Program. Var and its functions (core/expr.h) do the recording;
// the tape names what goes in and out.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/expr.h"

namespace mulgrad {

class Tape {
 public:
  explicit Tape(std::string name = "main") : builder_(std::make_unique<Builder>(std::move(name))) {}

  // The tape that was moved from is left empty, with the default name.
  Tape(Tape&& other) : builder_(std::exchange(other.builder_, std::make_unique<Builder>())) {}
  Tape& operator=(Tape&& other) {
    Tape moved(std::move(other));
    builder_.swap(moved.builder_);
    return *this;
  }
  ~Tape() = default;

  // Throws invalid_name for a name that is malformed or used twice.
  Var input(std::string name, Type type) {
    return {*builder_, builder_->input(std::move(name), std::move(type))};
  }
  void output(std::string name, Var value) { builder_->output(std::move(name), value.id()); }
  Builder& builder() { return *builder_; }

  // The recorded program; the tape is left empty.
  Program finish() { return builder_->finish(); }

 private:
  std::unique_ptr<Builder> builder_;  // on the heap, so that a moved tape keeps its Vars valid
};

}  // namespace mulgrad
