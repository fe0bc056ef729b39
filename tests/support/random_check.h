// Holds a rewriter of mean regions to what the clauses say, on any program; and makes a program
// that it fails on small.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/rewrite/pass.h"
#include "core/tensor.h"

namespace mulgrad::testing {

// A node that the rule looks at.
struct Candidate {
  std::int64_t node;
  int clause;                        // the first that fails, 0 where all hold
  std::vector<std::int64_t> source;  // the nodes of the region, ascending, where all hold
};

// The rule by its definition: written again for these tests, node by node, without the library's
// patterns and clauses, so that a mistake there shows.
std::vector<Candidate> judge_mean_derivative(const Program& program);
std::vector<Candidate> judge_mean(const Program& program);  // those that an output depends on

// A rewriter and the rule that it claims to apply.
struct Subject {
  Pass pass;
  std::function<std::vector<Candidate>(const Program&)> judge;
  // May the terminal have the value `got`, where the source node computes `want` from `operand`?
  std::function<bool(const Tensor& got, const Tensor& want, const Tensor& operand)> agree;
};

Subject mean_derivative_subject(Pass pass);
Subject mean_subject(Pass pass);

enum class Fault : std::uint8_t {
  threw,
  fired_elsewhere,  // a good region is left, or something else is replaced
  structure,        // a node outside of the regions changed, or a region is not the five nodes
  explanation,      // another clause is named than the first that fails
  second_run,       // changes something
  values,           // further apart than the numerics say
  round_trip        // parse(print(p)) is another program
};
std::string_view to_string(Fault fault);

struct Failure {
  Fault fault;
  std::string text;
};

enum class Depth : std::uint8_t { without_text, with_text };

// Symbols are 3 where values are computed, inputs are random and finite.
std::optional<Failure> check(const Subject& subject, const Program& program, Depth depth);

// A program on which check() still finds that fault, from which no output, input or node can be
// taken (a node by an input in its place) without losing the fault.
Program shrink(const Subject& subject, const Program& program, Fault fault);

}  // namespace mulgrad::testing
