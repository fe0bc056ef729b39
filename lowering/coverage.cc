#include "lowering/coverage.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace mulgrad {
namespace {

double elements_of(const Type& type) { return static_cast<double>(type.shape.elements().size()); }
double bytes_of(const Type& type) {
  return elements_of(type) * static_cast<double>(byte_size(type.dtype));
}

double flops_of(const Program& program, const Node& node) {
  switch (info(node.op).op_class) {
    case OpClass::elementwise: {
      const OpKind kind = kind_of(node.op);
      const bool computes = kind != OpKind::Convert && kind != OpKind::StopGradient;
      return computes ? elements_of(node.type) : 0;
    }
    case OpClass::reduction: {
      const double terms = elements_of(program.type(node.operands[0].value()));
      return std::holds_alternative<Mean>(node.op) ? terms + elements_of(node.type) : terms;
    }
    case OpClass::product: {
      double terms = 1;
      const Shape& lhs = program.type(node.operands[0].value()).shape;
      for (const std::int64_t axis : std::get<DotGeneral>(node.op).lhs_contracting) {
        terms *= static_cast<double>(lhs[axis].size());
      }
      return 2 * elements_of(node.type) * terms;
    }
    default:
      return 0;
  }
}

Work operator*(const Work& work, double times) {
  return {work.flops * times, work.bytes * times, work.constant_bytes * times};
}

Work& operator+=(Work& total, const Work& work) {
  total.flops += work.flops;
  total.bytes += work.bytes;
  total.constant_bytes += work.constant_bytes;
  return total;
}

// The fate of one source node while the steps are read.
struct Fate {
  std::vector<std::string> rules;
  Numerics numerics;
  std::int64_t work_factor = 1;
  std::string declined;  // why the last pass that was for it left it
  std::string reason;    // why the target refuses it
};

class ArtifactCoverage {
 public:
  ArtifactCoverage(const CoverageArtifact& covered, const Target& target,
                   const HasHandler& has_handler)
      : artifact_(covered.artifact),
        multiplicity_(covered.multiplicity),
        target_(target),
        has_handler_(has_handler) {
    fates_.resize(artifact_.source.nodes().size());
    reached_ = reachable_nodes(artifact_.source);
    for (const PassReport& pass : covered.passes) {
      for (const TouchedNode& touched : pass.touched) read(pass.name, touched);
      for (const Declined& declined : pass.declined) {
        fates_[static_cast<std::size_t>(declined.node)].declined = declined.reason;
      }
    }
    read_lowered();
  }

  void report(Coverage& coverage) {
    using Key = std::tuple<OpKind, NodeFate, std::vector<std::string>, std::string, std::int64_t,
                           std::string>;
    std::map<Key, CoverageRow> rows;
    for (std::size_t i = 0; i < fates_.size(); ++i) {
      if (!reached_[i]) continue;
      const Fate& fate = fates_[i];
      const OpKind kind = kind_of(artifact_.source.nodes()[i].op);
      CoverageRow row{artifact_.name, kind, NodeFate::native, 0, {}, {}, 1, {}};
      if (!fate.reason.empty()) {
        row.fate = NodeFate::unsupported;
        row.reason = fate.reason;
      } else if (!fate.rules.empty()) {
        row.fate = NodeFate::rewritten;
        row.rules = fate.rules;
        row.numerics = fate.numerics;
        row.work_factor = fate.work_factor;
      }
      Key key{kind, row.fate, row.rules, row.numerics.to_string(), row.work_factor, row.reason};
      rows.emplace(std::move(key), std::move(row)).first->second.count += multiplicity_;
    }
    for (auto& [key, row] : rows) coverage.rows.push_back(std::move(row));
    for (const auto& [kind, count] : emitted_) {
      coverage.emitted.push_back({artifact_.name, kind, count * multiplicity_});
    }
    std::stable_sort(unsupported_.begin(), unsupported_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [source, refusal] : unsupported_) {
      coverage.unsupported.push_back(std::move(refusal));
    }
    const auto times = static_cast<double>(multiplicity_);
    const WorkRow& row = coverage.work.emplace_back(
        WorkRow{artifact_.name, work(artifact_.source) * times, work(artifact_.program) * times});
    coverage.before += row.before;
    coverage.after += row.after;
  }

 private:
  void read(const std::string& pass, const TouchedNode& touched) {
    Fate& fate = fates_[static_cast<std::size_t>(touched.node)];
    if (std::find(fate.rules.begin(), fate.rules.end(), pass) == fate.rules.end()) {
      fate.rules.push_back(pass);
    }
    fate.numerics = fate.numerics | touched.numerics;
    fate.work_factor = std::max(fate.work_factor, touched.work_factor);
  }

  void read_lowered() {
    const Program& lowered = artifact_.program;
    for (const Output& output : lowered.outputs()) {
      if (!output.value.is_input()) continue;
      if (const auto reason = target_.interface_refusal(lowered.type(output.value).dtype)) {
        unsupported_.push_back({-1, {artifact_.input_label(output.value.index()), *reason}});
      }
    }
    const std::vector<bool> reached = reachable_nodes(lowered);
    for (std::int64_t i = 0; i < std::ssize(lowered.nodes()); ++i) {
      if (!reached[static_cast<std::size_t>(i)]) continue;
      const Node& node = lowered.nodes()[static_cast<std::size_t>(i)];
      ++emitted_[kind_of(node.op)];
      std::optional<std::string> reason = target_.refusal(lowered, i);
      if (!reason && has_handler_ && !has_handler_(node.op)) reason = "no handler is registered";
      if (!reason) continue;
      const Origin origin = lowered.origins()[static_cast<std::size_t>(i)];
      if (origin != kNoOrigin) {
        std::string& first = fates_[static_cast<std::size_t>(origin)].reason;
        if (!first.empty()) continue;  // one reason per source node
        const std::string& declined = fates_[static_cast<std::size_t>(origin)].declined;
        if (!declined.empty()) *reason += "; " + declined;
        first = *reason;
      }
      unsupported_.push_back({origin, {artifact_.label(i), *reason}});
    }
  }

  const Artifact& artifact_;
  const std::int64_t multiplicity_;
  const Target& target_;
  const HasHandler& has_handler_;
  std::vector<Fate> fates_;    // per source node
  std::vector<bool> reached_;  // likewise
  std::map<OpKind, std::int64_t> emitted_;
  std::vector<std::pair<std::int64_t, Refusal>> unsupported_;  // with the source node
};

std::string_view to_string(NodeFate fate) {
  constexpr std::string_view kNames[] = {"native", "rewritten", "unsupported"};
  return kNames[static_cast<int>(fate)];
}

std::string number(double value) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.0f", value);
  return text.data();
}

std::string count_text(std::int64_t count, const char* what) {
  return std::to_string(count) + " " + what;
}

using Line = std::vector<std::string>;

bool is_number(const std::string& cell) {
  return std::all_of(cell.begin(), cell.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Columns as wide as their longest cell, two spaces apart; numbers are flushed right, and so is
// their heading.
std::string align(const std::vector<Line>& lines) {
  const std::size_t columns = lines[0].size();
  std::vector<std::size_t> widths(columns);
  std::vector<bool> right(columns, lines.size() > 1);
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < columns; ++i) {
      widths[i] = std::max(widths[i], line[i].size());
      if (&line != &lines[0] && !is_number(line[i])) right[i] = false;
    }
  }
  std::string text;
  for (const Line& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::string space(widths[i] - line[i].size(), ' ');
      row += (i > 0 ? "  " : "") + (right[i] ? space + line[i] : line[i] + space);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

std::string op_text(OpKind kind) {
  return kind == OpKind::Fill ? "fill" : std::string(info(kind).text_name);
}

}  // namespace

Work work(const Program& program) {
  Work total;
  const std::vector<bool> reached = reachable_nodes(program);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (!reached[i]) continue;
    const Node& node = program.nodes()[i];
    total.flops += flops_of(program, node);
    total.bytes += bytes_of(node.type);
    for (const Operand& operand : node.operands) {
      if (!operand.is_literal()) total.bytes += bytes_of(program.type(operand.value()));
    }
    if (std::holds_alternative<Fill>(node.op) || std::holds_alternative<Constant>(node.op)) {
      total.constant_bytes += bytes_of(node.type);
    }
  }
  return total;
}

std::int64_t Coverage::count(NodeFate fate) const {
  std::int64_t total = 0;
  for (const CoverageRow& row : rows) total += row.fate == fate ? row.count : 0;
  return total;
}

std::string Coverage::print() const {
  std::string text = "target " + target + ": " + count_text(count(NodeFate::native), "native, ") +
                     count_text(count(NodeFate::rewritten), "rewritten, ") +
                     count_text(count(NodeFate::unsupported), "unsupported") + "\n\n";
  std::vector<Line> lines{{"artifact", "source op", "nodes", "fate", "how"}};
  for (const CoverageRow& row : rows) {
    std::string how = row.reason;
    for (const std::string& rule : row.rules) how += (how.empty() ? "" : ", ") + rule;
    if (row.fate == NodeFate::rewritten) how += " " + row.numerics.to_string();
    if (row.work_factor != 1) how += ", " + std::to_string(row.work_factor) + " times the work";
    lines.push_back({row.artifact, op_text(row.kind), std::to_string(row.count),
                     std::string(to_string(row.fate)), how});
  }
  text += align(lines) + "\n";
  lines = {{"artifact", "emitted op", "nodes"}};
  for (const EmittedRow& row : emitted) {
    lines.push_back({row.artifact, op_text(row.kind), std::to_string(row.count)});
  }
  text += align(lines) + "\n";
  lines = {{"work", "flops before", "flops after", "bytes before", "bytes after",
            "constant bytes before", "constant bytes after"}};
  const auto add_work = [&](const std::string& name, const Work& from, const Work& to) {
    lines.push_back({name, number(from.flops), number(to.flops), number(from.bytes),
                     number(to.bytes), number(from.constant_bytes), number(to.constant_bytes)});
  };
  for (const WorkRow& row : work) add_work(row.artifact, row.before, row.after);
  add_work("all", before, after);
  text += align(lines);
  if (!unsupported.empty()) text += "\nunsupported:\n";
  for (const Refusal& refusal : unsupported) {
    text += "  " + refusal.label + ": " + refusal.reason + "\n";
  }
  return text;
}

std::string Coverage::json() const {
  using Json = nlohmann::ordered_json;
  const auto work_object = [](const Work& work) {
    return Json{
        {"flops", work.flops}, {"bytes", work.bytes}, {"constant_bytes", work.constant_bytes}};
  };
  Json result;
  result["target"] = target;
  for (const NodeFate fate : {NodeFate::native, NodeFate::rewritten, NodeFate::unsupported}) {
    result["nodes"][std::string(to_string(fate))] = count(fate);
  }
  result["rows"] = Json::array();
  for (const CoverageRow& row : rows) {
    Json object{{"artifact", row.artifact},
                {"op", op_text(row.kind)},
                {"fate", to_string(row.fate)},
                {"nodes", row.count}};
    if (row.fate == NodeFate::rewritten) {
      object["rules"] = row.rules;
      object["numerics"] = {{"sign_of_zero", row.numerics.sign_of_zero},
                            {"finite_only", row.numerics.finite_only},
                            {"reassociates", row.numerics.reassociates},
                            {"needs_exact_product", row.numerics.needs_exact_product},
                            {"ulp", row.numerics.ulp}};
      object["work_factor"] = row.work_factor;
    }
    if (row.fate == NodeFate::unsupported) object["reason"] = row.reason;
    result["rows"].push_back(std::move(object));
  }
  result["emitted"] = Json::array();
  for (const EmittedRow& row : emitted) {
    result["emitted"].push_back(
        {{"artifact", row.artifact}, {"op", op_text(row.kind)}, {"nodes", row.count}});
  }
  Json artifacts = Json::array();
  for (const WorkRow& row : work) {
    artifacts.push_back({{"artifact", row.artifact},
                         {"before", work_object(row.before)},
                         {"after", work_object(row.after)}});
  }
  result["work"] = {{"before", work_object(before)},
                    {"after", work_object(after)},
                    {"artifacts", std::move(artifacts)}};
  result["unsupported"] = Json::array();
  for (const Refusal& refusal : unsupported) {
    result["unsupported"].push_back({{"node", refusal.label}, {"reason", refusal.reason}});
  }
  return result.dump(2) + "\n";
}

Coverage coverage(std::span<const CoverageArtifact> artifacts, const Target& target,
                  const HasHandler& has_handler) {
  Coverage result;
  result.target = target.name();
  for (const CoverageArtifact& artifact : artifacts) {
    ArtifactCoverage(artifact, target, has_handler).report(result);
  }
  return result;
}

}  // namespace mulgrad
