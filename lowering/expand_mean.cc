#include "lowering/expand_mean.h"

#include <algorithm>

#include "core/rewrite/rewriter.h"

namespace mulgrad {
namespace {

constexpr char kName[] = "expand_mean";
const Numerics kNumerics{.sign_of_zero = true, .reassociates = true, .ulp = 1};

struct Offence {
  int clause;
  Category category;
  std::string message;
};
using Verdict = std::optional<Offence>;

Verdict clause2_rank(const Type& x, const Mean&) {
  if (x.rank() == 2) return std::nullopt;
  return Offence{2, Category::unsupported_reduction,
                 "found an operand of rank " + std::to_string(x.rank()) + ", expected rank 2"};
}

Verdict clause3_axes(const Type&, const Mean& mean) {
  if (mean.axes.size() == 2) return std::nullopt;  // in range, unique and sorted by construction
  std::string axes;
  for (const std::int64_t axis : mean.axes) axes += std::to_string(axis);
  return Offence{3, Category::unsupported_reduction,
                 "found a partial reduction over axes [" + axes + "], expected axes [0, 1]"};
}

Verdict clause4_sizes(const Type& x, const Mean&) {
  const std::string sizes = "found sizes " + x.shape.to_string() + ", expected ";
  if (!x.shape.is_static()) {
    return Offence{4, Category::unresolved_symbolic_shape,
                   sizes + "static sizes: bind the program first"};
  }
  const std::int64_t r = x.shape[0].size();
  const std::int64_t c = x.shape[1].size();
  std::int64_t count = 0;
  if (r == 0 || c == 0) {
    return Offence{4, Category::unsupported_reduction, sizes + "sizes > 0"};
  }
  if (__builtin_mul_overflow(r, c, &count)) {
    return Offence{4, Category::unsupported_reduction, sizes + "a product below 2^63"};
  }
  const Literal reciprocal = Literal::reciprocal(x.dtype, count);
  if (!reciprocal.is_finite() || reciprocal.as_double() == 0) {
    return Offence{4, Category::unsupported_reduction,
                   sizes + "a product whose reciprocal is finite and not zero in " +
                       std::string(to_string(x.dtype))};
  }
  return std::nullopt;
}

Verdict clause5_dtype(const Type& x, const Mean&) {
  if (x.dtype == DType::f32 || x.dtype == DType::f64) return std::nullopt;
  return Offence{5, Category::dtype_not_differentiable,
                 "found dtype " + std::string(to_string(x.dtype)) + ", expected f32 or f64"};
}

const Type& operand_type(const Program& program, std::int64_t node) {
  return program.type(program.node(ValueId::node(node)).operands[0].value());
}

Verdict judge(const Program& program, std::int64_t node) {
  const Type& x = operand_type(program, node);
  const Mean& mean = std::get<Mean>(program.node(ValueId::node(node)).op);
  for (const auto clause : {clause2_rank, clause3_axes, clause4_sizes, clause5_dtype}) {
    if (auto offence = clause(x, mean)) return offence;
  }
  return std::nullopt;
}

std::vector<std::int64_t> all_means(const Program& program) {
  std::vector<std::int64_t> means;
  for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
    if (std::holds_alternative<Mean>(program.node(ValueId::node(i)).op)) means.push_back(i);
  }
  return means;
}

std::vector<std::int64_t> reachable_means(const Program& program) {
  std::vector<std::int64_t> means = all_means(program);
  const std::vector<bool> reached = reachable_nodes(program);
  std::erase_if(means, [&](std::int64_t node) { return !reached[static_cast<std::size_t>(node)]; });
  return means;
}

std::string clause_text(const Offence& offence) {
  return "clause " + std::to_string(offence.clause) + ": " +
         std::string(to_string(offence.category)) + ": " + offence.message;
}

void refuse_offenders(const Program& program, const std::vector<std::int64_t>& means) {
  std::optional<Category> category;
  std::string first;
  std::string list;
  for (const std::int64_t node : means) {
    const Verdict offence = judge(program, node);
    if (!offence) continue;
    const std::string name = program.describe(ValueId::node(node));
    if (!category) {
      category = offence->category;
      first = name;
      list = name + ": " + clause_text(*offence);
    } else {
      list += "; " + name + ": " + clause_text(*offence);
    }
  }
  if (category) throw Error(*category, std::string(kName) + " does not apply: " + list, first);
}

Var emit(Rewriter& rewriter, std::int64_t node) {
  const Var x = rewriter.operands(node)[0];
  const Literal one = Literal::one(x.dtype());
  const Dim r = x.shape()[0];
  const Dim c = x.shape()[1];
  const Literal scale = Literal::reciprocal(x.dtype(), r.size() * c.size());
  const Shape result = rewriter.source().type(ValueId::node(node)).shape;
  const Var row_ones = fill(rewriter.builder(), one, {c, 1});
  const Var row_sums = matmul(x, row_ones);
  const Var column_ones = fill(rewriter.builder(), one, {1, r});
  return reshape(matmul(column_ones, row_sums) * scale, result);
}

PassResult run(const Program& program, OutsideDomain outside) {
  std::vector<std::int64_t> means = reachable_means(program);
  if (outside == OutsideDomain::refuse) {
    refuse_offenders(program, means);
  } else {
    std::erase_if(means, [&](std::int64_t node) { return judge(program, node).has_value(); });
  }
  std::vector<Replacement> replacements;
  for (const std::int64_t node : means) {
    replacements.push_back(
        {node, {}, kNumerics, [node](Rewriter& rewriter) { return emit(rewriter, node); }});
  }
  return apply(program, kName, replacements);
}

std::vector<std::string> explain(const Program& program, OutsideDomain outside) {
  const std::vector<std::int64_t> reachable = reachable_means(program);
  const bool refused =
      outside == OutsideDomain::refuse && std::ranges::any_of(reachable, [&](std::int64_t node) {
        return judge(program, node).has_value();
      });
  std::vector<std::string> lines;
  for (const std::int64_t node : all_means(program)) {
    const std::string name = brief_name(program, ValueId::node(node)) + ": ";
    if (!std::ranges::binary_search(reachable, node)) {
      lines.push_back(name + "no output or capture depends on it");
    } else if (const Verdict offence = judge(program, node)) {
      lines.push_back(name + clause_text(*offence));
    } else if (refused) {
      lines.push_back(name + "every clause holds, but not for every mean of the program");
    } else {
      lines.push_back(name + "rewritten by " + kName);
    }
  }
  return lines;
}

std::optional<std::string> find_mean(const Program& program) {
  const std::vector<std::int64_t> means = reachable_means(program);
  if (means.empty()) return std::nullopt;
  return "found " + program.describe(ValueId::node(means.front()));
}

}  // namespace

Pass expand_mean(OutsideDomain outside) {
  Pass pass{kName, {Slot::forward}, kNumerics, {}, {}, {}, {}};
  pass.run = [outside](const Program& program) { return run(program, outside); };
  pass.explain = [outside](const Program& program) { return explain(program, outside); };
  if (outside == OutsideDomain::refuse) pass.leaves = {{"no mean", find_mean}};
  return pass;
}

}  // namespace mulgrad
