// What the example trains: the handwritten digits, and exclusive or.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "examples/custom_backend/library.h"
#include "examples/custom_backend/training.h"

namespace mulgrad::examples {

// 64-64-10 with ReLU, softmax cross-entropy and SGD with momentum; a fifth of the rows is held out,
// the others are one epoch of batches of 32 and a last one of 30.
class DigitsTask {
 public:
  explicit DigitsTask(std::uint64_t seed);

  std::string c_text() const { return full_.text() + partial_.text(); }
  const CTrainingStep& step() const { return full_; }
  // Trains one epoch with the C functions and one with the interpreter, from the same parameters on
  // the same batches, and prints per tensor the largest difference over the largest value. Returns
  // the largest of these.
  double compare(const CLibrary& library) const;

 private:
  // Makes one step on the inputs of its program, in place, and returns the loss.
  using OneStep = std::function<double(const CTrainingStep&, std::span<Tensor>)>;
  struct Epoch {
    std::vector<double> losses;
    std::vector<Tensor> values;  // the inputs of the step's program, as the last step left them
  };
  Epoch train(const OneStep& one_step) const;
  void fill(std::span<const std::int64_t> rows, Tensor& x, Tensor& labels) const;

  std::uint64_t seed_;
  Tensor table_;                    // pixels 0..16 and the label, by row
  std::vector<std::int64_t> rows_;  // those that are trained on, shuffled
  CTrainingStep full_;
  CTrainingStep partial_;
};

// 2-8-1 with tanh and a logistic output, mean squared error and AdamW, whose step scalars depend on
// the count.
class XorTask {
 public:
  explicit XorTask(std::uint64_t seed);

  std::string c_text() const;
  // Trains with the C function alone, prints a line per row, and returns the last loss, or infinity
  // where a row is on the wrong side of 0.5.
  double learn(const CLibrary& library) const;

 private:
  std::uint64_t seed_;
  CTrainingStep step_;
};

}  // namespace mulgrad::examples
