#include "backends/cpu/planner.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "backends/cpu/forms.h"
#include "backends/cpu/fused_kernels.h"
#include "backends/cpu/groups.h"
#include "backends/cpu/layouts.h"
#include "backends/cpu/registry.h"
#include "core/interpreter.h"

namespace mulgrad::cpu {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

bool is_creation(const Node& node) { return node.operands.empty(); }

// One kernel call to be.
struct Unit {
  enum class Kind : std::uint8_t { group, product, node } kind = Kind::node;
  std::int64_t index = 0;      // of the group, the product or the node
  std::int64_t key = 0;        // smaller runs first where both can
  std::int32_t waits_for = 0;  // how many others
};

// A product with what it absorbs: movements of its result and the update of a parameter, or an
// epilogue.
struct PlannedProduct {
  LaidOutProduct form;
  std::int64_t node;                         // the dot_general
  std::int64_t result;                       // the node whose value it makes
  std::optional<ValueId> factor = {};        // rank 0: what its update is multiplied by
  std::optional<std::int64_t> changes = {};  // the input that it adds to
  std::vector<ValueId> epilogue = {};        // its operands
};

class Planner {
 public:
  Planner(const Program& program, const PlanTask& task, const std::shared_ptr<ThreadPool>& pool)
      : program_(program),
        task_(task),
        pool_(pool),
        uses_(program),
        artifact_(Artifact::untouched(program.name(), program)),
        registry_(make_cpu_registry(builder_, pool)) {}

  Plan run() {
    const std::size_t nodes = program_.nodes().size();
    roles_.resize(nodes);
    product_of_.assign(nodes, -1);
    buffers_.resize(nodes);
    mark_roles();
    for (std::int64_t i = 0; i < std::ssize(program_.nodes()); ++i) find_product(i);
    do {
      grouping_ = group_nodes(program_, roles_);
      make_units();
    } while (!order_units());
    emit();
    return builder_.finish();
  }

 private:
  const Node& node(std::int64_t index) const { return program_.nodes()[at(index)]; }
  ValueId behind(ValueId value) const { return behind_reshapes(program_, value); }

  void mark_roles() {
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      roles_[i].excluded = is_creation(program_.nodes()[i]) ||
                           std::holds_alternative<Reshape>(program_.nodes()[i].op);
    }
    for (std::size_t i = 0; i < task_.commits.size(); ++i) {
      if (!task_.commits[i]) continue;
      const ValueId value = behind(program_.outputs()[i].value);
      if (!value.is_node()) continue;
      roles_[at(value.index())].committed = true;
      mark_short_update(value.index());
    }
    if (!task_.checkpoint) return;
    const ValueId loss = program_.outputs()[*task_.checkpoint].value;
    if (loss.is_node()) roles_[at(loss.index())].before = true;
    if (behind(loss).is_node()) roles_[at(behind(loss).index())].may_follow = true;
    for (std::size_t i = roles_.size(); i-- > 0;) {
      if (!roles_[i].before) continue;
      for (const Operand& operand : program_.nodes()[i].operands) {
        if (!operand.is_literal() && operand.value().is_node()) {
          roles_[at(operand.value().index())].before = true;
        }
      }
    }
  }

  // parameter - rate * gradient, which may follow the loop that sums up the gradient.
  void mark_short_update(std::int64_t index) {
    const Node& update = node(index);
    if (!std::holds_alternative<Subtract>(update.op) || update.operands[1].is_literal()) return;
    const ValueId scaled = behind(update.operands[1].value());
    if (!scaled.is_node() || uses_.count(scaled) != 1 ||
        !std::holds_alternative<Multiply>(program_.node(scaled).op)) {
      return;
    }
    roles_[at(index)].may_follow = true;
    roles_[at(scaled.index())].may_follow = true;
  }

  // Products -----------------------------------------------------------------------------------

  void find_product(std::int64_t index) {
    const Node& dot = node(index);
    const auto* op = std::get_if<DotGeneral>(&dot.op);
    if (op == nullptr) return;
    const DType dtype = program_.type(dot.operands[0].value()).dtype;
    if (dtype != op->dtype || (dtype != DType::f32 && dtype != DType::f64)) return;
    if (find_update(index) || find_moved(index)) return;
    if (const auto form = lay_out(program_, dot, row_major(dot.type.shape.sizes()))) {
      PlannedProduct product{*form, index, index};
      find_bias(product);
      find_relu(product);
      find_gate(product);
      add_product(std::move(product));
    }
  }

  // The only reader of a product, behind reshapes, that may become part of it, or -1: it makes as
  // many elements, which are not committed.
  std::int64_t reader_of(const PlannedProduct& product) {
    std::int64_t next = only_reader(product.result);
    while (next >= 0 && std::holds_alternative<Reshape>(node(next).op)) next = only_reader(next);
    if (next < 0 || roles_[at(next)].committed) return -1;
    const Dim elements = node(product.result).type.shape.elements();
    return node(next).type.shape.elements() == elements ? next : -1;
  }

  // Takes an addition of the same row to every row of the product's result.
  void find_bias(PlannedProduct& product) {
    const std::int64_t next = reader_of(product);
    if (next < 0 || !std::holds_alternative<Add>(node(next).op)) return;
    const Shape& shape = node(next).type.shape;
    for (const Operand& operand : node(next).operands) {
      if (operand.is_literal()) return;
      if (behind(operand.value()) == ValueId::node(product.result)) continue;
      Space space{shape.elements().size(), product.form.spec.n};
      const auto kind = repetition(program_.type(operand.value()).shape, nullptr, shape, space);
      const bool is_only_row = kind == EdgeKind::same && space.elements == space.columns;
      if (kind != EdgeKind::row && !is_only_row) return;
      product.form.spec.bias = true;
      product.epilogue.push_back(behind(operand.value()));
      return absorb(next, product);
    }
  }

  // Takes the maximum of the product's result and 0.
  void find_relu(PlannedProduct& product) {
    const std::int64_t next = reader_of(product);
    if (next < 0 || !std::holds_alternative<Maximum>(node(next).op)) return;
    if (!is_zero(node(next).operands[1])) return;
    product.form.spec.relu = true;
    absorb(next, product);
  }

  // Takes select(x > 0, the product's result, 0), which is the derivative of max(x, 0).
  void find_gate(PlannedProduct& product) {
    const std::int64_t next = reader_of(product);
    if (next < 0 || !std::holds_alternative<Select>(node(next).op)) return;
    const std::vector<Operand>& operands = node(next).operands;
    if (operands[0].is_literal() || !operands[0].value().is_node() || !is_zero(operands[2])) return;
    const std::int64_t open = operands[0].value().index();
    const auto* compare = std::get_if<Compare>(&node(open).op);
    if (compare == nullptr || compare->direction != Comparison::GT) return;
    const Operand& x = node(open).operands[0];
    if (x.is_literal() || !is_zero(node(open).operands[1]) ||
        program_.type(x.value()) != node(next).type) {
      return;
    }
    if (uses_.count(ValueId::node(open)) == 1) roles_[at(open)].excluded = true;
    product.form.spec.gate = true;
    product.epilogue.push_back(behind(x.value()));
    absorb(next, product);
  }

  void absorb(std::int64_t index, PlannedProduct& product) {
    roles_[at(index)].excluded = true;
    product.result = index;
  }

  static bool is_zero(const Operand& operand) {
    return operand.is_literal() && operand.literal() == Literal::zero(operand.literal().dtype);
  }

  void add_product(PlannedProduct product) {
    roles_[at(product.node)].excluded = true;
    product_of_[at(product.result)] = static_cast<std::int32_t>(products_.size());
    products_.push_back(std::move(product));
  }

  // The only reader of a value, or -1.
  std::int64_t only_reader(std::int64_t index) {
    if (uses_.count(ValueId::node(index)) != 1) return -1;
    if (readers_.empty()) {
      readers_.assign(program_.nodes().size(), -1);
      for (std::int64_t i = 0; i < std::ssize(program_.nodes()); ++i) {
        for (const Operand& operand : node(i).operands) {
          if (!operand.is_literal() && operand.value().is_node()) {
            readers_[at(operand.value().index())] = i;
          }
        }
      }
    }
    return readers_[at(index)];
  }

  static bool is_movement(const Node& node) {
    return std::holds_alternative<Reshape>(node.op) || std::holds_alternative<Transpose>(node.op);
  }

  // The product of node `index` lying as the movements `path` behind it, the last one first, ask
  // for.
  std::optional<LaidOutProduct> laid_out_behind(std::int64_t index,
                                                const std::vector<std::int64_t>& path) const {
    const std::int64_t last = path.empty() ? index : path.front();
    Strides strides = row_major(node(last).type.shape.sizes());
    for (const std::int64_t movement : path) {
      auto before = operand_strides(program_, node(movement), strides);
      if (!before) return std::nullopt;
      strides = *std::move(before);
    }
    return lay_out(program_, node(index), strides);
  }

  // A product whose result is only read in another order of its axes.
  bool find_moved(std::int64_t index) {
    std::vector<std::int64_t> path;
    std::size_t wanted = 0;  // up to the last transpose
    for (std::int64_t next = only_reader(index); next >= 0 && is_movement(node(next));
         next = only_reader(next)) {
      path.insert(path.begin(), next);
      if (std::holds_alternative<Transpose>(node(next).op)) wanted = path.size();
    }
    if (wanted == 0) return false;
    path.erase(path.begin(), path.end() - static_cast<std::ptrdiff_t>(wanted));
    const auto form = laid_out_behind(index, path);
    if (!form) return false;
    for (const std::int64_t movement : path) roles_[at(movement)].excluded = true;
    add_product({*form, index, path.front()});
    return true;
  }

  // parameter - rate * product, rate * ... being any numbers and at most one rank-0 value, where
  // the result takes the parameter's place and nothing else reads the product.
  bool find_update(std::int64_t index) {
    std::vector<std::int64_t> path;  // movements, the last first
    std::vector<std::int64_t> absorbed;
    double scale = 1;
    std::optional<ValueId> factor;
    std::int64_t from = index;
    std::int64_t next = only_reader(index);
    for (; next >= 0; from = next, next = only_reader(next)) {
      const Node& reader = node(next);
      if (is_movement(reader)) {
        path.insert(path.begin(), next);
      } else if (std::holds_alternative<Negate>(reader.op)) {
        scale = -scale;
      } else if (!multiplied(reader, from, scale, factor)) {
        break;
      }
      absorbed.push_back(next);
    }
    if (next < 0 || !roles_[at(next)].committed) return false;
    const Node& update = node(next);
    const bool subtracts = std::holds_alternative<Subtract>(update.op);
    if (!subtracts && !std::holds_alternative<Add>(update.op)) return false;
    const std::size_t place =
        subtracts || update.operands[1] == Operand(ValueId::node(from)) ? 1 : 0;
    if (!(update.operands[place] == Operand(ValueId::node(from)))) return false;
    const Operand& parameter = update.operands[1 - place];
    if (parameter.is_literal() || !parameter.value().is_input()) return false;
    const std::int64_t input = parameter.value().index();
    if (!commits_to(next, input) || node(from).type != update.type ||
        program_.type(parameter.value()) != update.type) {
      return false;
    }
    auto form = laid_out_behind(index, path);
    if (!form) return false;
    form->spec.scale = subtracts ? -scale : scale;
    form->spec.write = factor ? ProductWrite::add_scaled : ProductWrite::add;
    for (const std::int64_t node : absorbed) roles_[at(node)].excluded = true;
    roles_[at(next)].excluded = true;
    add_product({*std::move(form), index, next, factor, input});
    return true;
  }

  // Takes a multiplication of node `from` by a number, or by a rank-0 value where `factor` is free.
  bool multiplied(const Node& reader, std::int64_t from, double& scale,
                  std::optional<ValueId>& factor) const {
    if (!std::holds_alternative<Multiply>(reader.op)) return false;
    const std::size_t place = reader.operands[0] == Operand(ValueId::node(from)) ? 0 : 1;
    const Operand& other = reader.operands[1 - place];
    if (other.is_literal()) {
      scale *= other.literal().as_double();
      return true;
    }
    if (program_.type(other.value()).rank() != 0 || factor) return false;
    factor = behind(other.value());
    return true;
  }

  bool commits_to(std::int64_t index, std::int64_t input) const {
    for (std::size_t i = 0; i < task_.commits.size(); ++i) {
      if (task_.commits[i] == at(input) && program_.outputs()[i].value == ValueId::node(index)) {
        return true;
      }
    }
    return false;
  }

  // Units --------------------------------------------------------------------------------------

  // Makes a unit for every node whose value something needs, from the outputs backwards.
  void make_units() {
    units_.clear();
    reads_ = {};
    unit_of_.assign(program_.nodes().size(), -1);
    std::vector<bool> needed(program_.nodes().size());
    const auto need = [&](ValueId value) {
      const ValueId base = behind(value);
      if (base.is_node()) needed[at(base.index())] = true;
    };
    for (const Output& output : program_.outputs()) need(output.value);
    std::vector<std::int32_t> group_units(grouping_.groups.size(), -1);
    for (std::int64_t i = std::ssize(program_.nodes()) - 1; i >= 0; --i) {
      const std::int32_t group = grouping_.group_of[at(i)];
      if (group >= 0) {
        std::int32_t& unit = group_units[at(group)];
        if (unit < 0) {
          unit = add_unit({Unit::Kind::group, group, i});
          append_reads(group);
        }
        unit_of_[at(i)] = unit;
        for (const Edge& edge : grouping_.edges_of[at(i)]) {
          if (edge.kind != EdgeKind::literal) need(edge.value);
        }
        continue;
      }
      if (!needed[at(i)] || is_creation(node(i))) continue;
      if (const std::int32_t product = product_of_[at(i)]; product >= 0) {
        const PlannedProduct& planned = products_[at(product)];
        unit_of_[at(i)] = add_unit({Unit::Kind::product, product, planned.node});
        reads_.append(behind(planned.form.lhs));
        reads_.append(behind(planned.form.rhs));
        if (planned.factor) reads_.append(*planned.factor);
        for (const ValueId read : planned.epilogue) reads_.append(read);
      } else {
        unit_of_[at(i)] = add_unit({Unit::Kind::node, i, i});
        for (const Operand& operand : node(i).operands) {
          if (!operand.is_literal()) reads_.append(behind(operand.value()));
        }
      }
      for (const ValueId read : reads_[at(unit_of_[at(i)])]) need(read);
    }
  }

  // What is appended to reads_ next is what the unit reads.
  std::int32_t add_unit(const Unit& unit) {
    units_.push_back(unit);
    reads_.start();
    return static_cast<std::int32_t>(units_.size() - 1);
  }

  // Of the group that is the last unit.
  void append_reads(std::int32_t group) {
    for (const GroupMember& member : grouping_.groups[at(group)].members) {
      for (const Edge& edge : grouping_.edges_of[at(member.node)]) {
        if (edge.kind == EdgeKind::literal) continue;
        const bool inside =
            edge.value.is_node() && grouping_.group_of[at(edge.value.index())] == group;
        const std::span<const ValueId> reads = reads_[reads_.size() - 1];
        if (!inside && std::ranges::count(reads, edge.value) == 0) reads_.append(edge.value);
      }
    }
  }

  // The unit that makes a value, or -1.
  std::int32_t maker(ValueId value) const {
    const ValueId base = behind(value);
    return base.is_node() ? unit_of_[at(base.index())] : -1;
  }

  // Topological, the loss first; of several units that can run, the one that comes first in the
  // program. What is committed waits for the other readers of the old value, unless that would be
  // a circle. False where groups wait for each other; their nodes are alone from then on.
  bool order_units() {
    order_.clear();
    std::vector<std::vector<std::int32_t>> writers(program_.inputs().size());
    for (std::size_t i = 0; i < task_.commits.size(); ++i) {
      const std::int32_t unit = maker(program_.outputs()[i].value);
      if (task_.commits[i] && unit >= 0) writers[*task_.commits[i]].push_back(unit);
    }
    std::vector<std::int32_t> delays(units_.size());  // preferred readers still to run
    Lists<std::int32_t> delayed;                      // per unit, the writers that wait for it
    // What waits for what: a unit that reads, and the one that makes what it reads.
    std::vector<std::int32_t> readers, makers;
    for (std::int32_t u = 0; u < static_cast<std::int32_t>(units_.size()); ++u) {
      delayed.start();
      for (const ValueId read : reads_[at(u)]) {
        const std::int32_t from = maker(read);
        if (from >= 0) {
          readers.push_back(u);
          makers.push_back(from);
          ++units_[at(u)].waits_for;
        } else if (read.is_input()) {
          for (const std::int32_t writer : writers[at(read.index())]) {
            if (writer == u) continue;
            delayed.append(writer);
            ++delays[at(writer)];
          }
        }
      }
    }
    const Lists<std::int32_t> followers =
        numbers_by_list(units_.size(), makers.size(), [&](std::size_t i) { return at(makers[i]); });
    const std::vector<bool> first = units_before_the_loss();
    // An update runs as soon as it can: what it reads is in the cache, and is read by nothing else.
    // Loops over a single number, such as the rate, come first: updates may wait for them.
    for (Unit& unit : units_) {
      if (unit.kind == Unit::Kind::group && grouping_.groups[at(unit.index)].space.elements == 1) {
        unit.key = -2;
      }
    }
    for (const std::vector<std::int32_t>& of_input : writers) {
      for (const std::int32_t writer : of_input) units_[at(writer)].key = -1;
    }
    using Entry = std::tuple<bool, std::int64_t, std::int32_t>;  // later part, key, unit
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready, waiting;
    const auto offer = [&](std::int32_t u) {
      const Entry entry{!first[at(u)], units_[at(u)].key, u};
      (delays[at(u)] == 0 ? ready : waiting).push(entry);
    };
    for (std::int32_t u = 0; u < static_cast<std::int32_t>(units_.size()); ++u) {
      if (units_[at(u)].waits_for == 0) offer(u);
    }
    std::vector<bool> done(units_.size());
    while (!ready.empty() || !waiting.empty()) {
      auto& queue = ready.empty() ? waiting : ready;
      const std::int32_t u = std::get<2>(queue.top());
      queue.pop();
      if (done[at(u)]) continue;
      done[at(u)] = true;
      order_.push_back(u);
      for (const std::int32_t reading : followers[at(u)]) {
        const std::int32_t next = readers[at(reading)];
        if (--units_[at(next)].waits_for == 0) offer(next);
      }
      for (const std::int32_t writer : delayed[at(u)]) {
        if (--delays[at(writer)] == 0 && units_[at(writer)].waits_for == 0) offer(writer);
      }
    }
    if (order_.size() == units_.size()) return true;
    leave_alone(std::move(done));
    return false;
  }

  // The nodes of the groups that wait in a circle, or between two: those of the units that are not
  // done, less those that no other waits for.
  void leave_alone(std::vector<bool> done) {
    std::vector<std::int32_t> readers(units_.size());
    const auto for_each_maker = [&](std::size_t u, auto use) {
      for (const ValueId read : reads_[u]) {
        if (const std::int32_t from = maker(read); from >= 0 && !done[at(from)]) use(at(from));
      }
    };
    std::vector<std::size_t> last;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (!done[u]) for_each_maker(u, [&](std::size_t from) { ++readers[from]; });
    }
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (!done[u] && readers[u] == 0) last.push_back(u);
    }
    while (!last.empty()) {
      const std::size_t u = last.back();
      last.pop_back();
      done[u] = true;
      for_each_maker(u, [&](std::size_t from) {
        if (--readers[from] == 0) last.push_back(from);
      });
    }
    bool more = false;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (done[u] || units_[u].kind != Unit::Kind::group) continue;
      for (const GroupMember& member : grouping_.groups[at(units_[u].index)].members) {
        more = more || !roles_[at(member.node)].alone;
        roles_[at(member.node)].alone = true;
      }
    }
    INTERNAL_CHECK(more);  // nodes that are alone wait for no one in a circle
  }

  std::vector<bool> units_before_the_loss() const {
    std::vector<bool> before(units_.size());
    if (!task_.checkpoint) return before;
    std::vector<std::int32_t> stack;
    const auto visit = [&](ValueId value) {
      const std::int32_t unit = maker(value);
      if (unit < 0 || before[at(unit)]) return;
      before[at(unit)] = true;
      stack.push_back(unit);
    };
    visit(program_.outputs()[*task_.checkpoint].value);
    while (!stack.empty()) {
      const std::int32_t unit = stack.back();
      stack.pop_back();
      for (const ValueId read : reads_[at(unit)]) visit(read);
    }
    return before;
  }

  // Emission -----------------------------------------------------------------------------------

  void emit() {
    for (std::size_t i = 0; i < program_.inputs().size(); ++i) {
      inputs_.push_back(task_.memory[i]
                            ? builder_.external(*task_.memory[i])
                            : builder_.bound_input(bytes_of(program_.inputs()[i].type)));
    }
    builder_.reserve(order_.size());
    for (const std::int32_t u : order_) {
      const Unit& unit = units_[at(u)];
      switch (unit.kind) {
        case Unit::Kind::group:
          emit_group(static_cast<std::int32_t>(unit.index));
          break;
        case Unit::Kind::product:
          emit_product(products_[at(unit.index)]);
          break;
        case Unit::Kind::node:
          emit_node(unit.index);
          break;
      }
    }
    for (std::size_t i = 0; i < program_.outputs().size(); ++i) {
      const Buffer value = buffer(program_.outputs()[i].value);
      if (!task_.commits[i]) builder_.output(value);
      if (task_.checkpoint == i) builder_.checkpoint(value);
    }
    for (std::size_t i = 0; i < program_.outputs().size(); ++i) {
      if (!task_.commits[i]) continue;
      builder_.commit(buffer(program_.outputs()[i].value), inputs_[*task_.commits[i]]);
    }
  }

  Buffer buffer(ValueId value) {
    const ValueId base = behind(value);
    if (base.is_input()) return inputs_[at(base.index())];
    Buffer& made = buffers_[at(base.index())];
    if (made.index < 0) {
      INTERNAL_CHECK(is_creation(program_.node(base)));
      made = builder_.constant(evaluate_node(program_.node(base), {}));
    }
    return made;
  }

  void emit_node(std::int64_t index) {
    const Node& n = node(index);
    std::vector<CpuValue> values;
    values.reserve(n.operands.size());
    std::vector<HandlerOperand<CpuValue>> operands;
    for (const Operand& operand : n.operands) {
      if (operand.is_literal()) {
        operands.emplace_back(operand.literal());
      } else {
        values.push_back({buffer(operand.value())});
        operands.emplace_back(values.back(), program_.type(operand.value()));
      }
    }
    buffers_[at(index)] = (*registry_.find(n.op))({artifact_, index}, operands).buffer;
  }

  void emit_product(const PlannedProduct& product) {
    const ProductSpec& spec = product.form.spec;
    KernelCall call{product_name(spec),
                    {buffer(product.form.lhs), buffer(product.form.rhs)},
                    product_kernel(spec, pool_),
                    {{bytes_of(node(product.result).type)}}};
    if (product.factor) call.operands.push_back(buffer(*product.factor));
    for (const ValueId read : product.epilogue) call.operands.push_back(buffer(read));
    if (product.changes) call.results[0].changes = inputs_[at(*product.changes)];
    const std::int64_t epilogue = (spec.bias ? 1 : 0) + (spec.relu ? 1 : 0) + (spec.gate ? 1 : 0);
    call.flops = (2 * spec.k + epilogue) * spec.m * spec.n;
    for (const std::int64_t size : spec.batch) call.flops *= size;
    buffers_[at(product.result)] = builder_.call(std::move(call))[0];
  }

  void emit_group(std::int32_t index) {
    const Group& group = grouping_.groups[at(index)];
    if (group.members.size() == 1 &&
        std::holds_alternative<BroadcastInDim>(node(group.members[0].node).op)) {
      emit_node(group.members[0].node);
      return;
    }
    FusedLoop& loop = loop_;
    loop.columns = columns_of(group);
    loop.rows = group.space.elements / loop.columns;
    loop.inputs.clear();
    loop.steps.clear();
    loop.results.clear();
    loop_inputs_.clear();
    values_.clear();
    results_.clear();
    std::int64_t flops = 0;
    const auto place_of = [&](std::int64_t member) {
      return std::ranges::lower_bound(group.members, member, {}, &GroupMember::node) -
             group.members.begin();
    };
    for (const GroupMember& member : group.members) {
      const Node& n = node(member.node);
      const std::span<const Edge> edges = grouping_.edges_of[at(member.node)];
      FusedStep step{n.op, {}, n.type.dtype, member.extent};
      for (std::size_t i = 0; i < edges.size(); ++i) {
        const Edge& edge = edges[i];
        if (edge.kind == EdgeKind::literal) {
          step.arguments.push_back(n.operands[i].literal());
          continue;
        }
        if (edge.value.is_node() && grouping_.group_of[at(edge.value.index())] == index) {
          step.arguments.push_back(values_[at(place_of(edge.value.index()))]);
          continue;
        }
        const std::pair input(edge.value, required_extent(member, edge.kind));
        const auto number = std::ranges::find(loop_inputs_, input) - loop_inputs_.begin();
        if (number == std::ssize(loop_inputs_)) {
          loop.inputs.push_back({program_.type(edge.value).dtype, input.second});
          loop_inputs_.push_back(input);
        }
        step.arguments.push_back(FromInput{static_cast<std::int32_t>(number)});
      }
      flops +=
          step.extent == Extent::full || member.from == Extent::full ? group.space.elements : 0;
      if (std::holds_alternative<BroadcastInDim>(n.op)) {
        if (!is_read_elsewhere(member.node) && !is_reduced(member.node, group)) {
          values_.push_back(step.arguments[0]);
          continue;
        }
        step.op = StopGradient{};
      }
      if (is_read_elsewhere(member.node)) {
        loop.results.push_back(static_cast<std::int32_t>(loop.steps.size()));
        results_.push_back(member.node);
      }
      values_.emplace_back(FromStep{static_cast<std::int32_t>(loop.steps.size())});
      loop.steps.push_back(std::move(step));
    }
    const NamedKernel& kernel = fused_kernels_.of(loop);
    KernelCall call{kernel.name, {}, kernel.kernel, {}};
    call.flops = flops;
    call.operands.reserve(loop_inputs_.size());
    for (const auto& input : loop_inputs_) call.operands.push_back(buffer(input.first));
    call.results.reserve(results_.size());
    for (const std::int64_t result : results_) {
      KernelResult& made = call.results.emplace_back(KernelResult{bytes_of(node(result).type)});
      const Extent extent = group.members[at(place_of(result))].extent;
      for (std::size_t i = 0; i < loop.inputs.size(); ++i) {
        const Extent input = loop.inputs[i].extent;
        if (input == Extent::full || (input == extent && input != Extent::column)) {
          made.may_overlay.push_back(static_cast<std::int32_t>(i));
        }
      }
    }
    const CallResults made = builder_.call(std::move(call));
    for (std::size_t i = 0; i < made.size(); ++i) buffers_[at(results_[i])] = made[i];
  }

  // Is the value reduced within the group? Then it must have all its elements.
  bool is_reduced(std::int64_t index, const Group& group) const {
    return std::ranges::any_of(group.members, [&](const GroupMember& member) {
      const Node& n = node(member.node);
      return std::holds_alternative<Reduce>(n.op) &&
             behind(n.operands[0].value()) == ValueId::node(index);
    });
  }

  // Where nothing in the group says how long a row is, as long as the innermost axis.
  std::int64_t columns_of(const Group& group) const {
    if (group.space.columns != 0) return group.space.columns;
    const Type& type = node(group.members.front().node).type;
    if (type.rank() > 0 && type.shape.elements() == Dim(group.space.elements)) {
      const std::int64_t last = type.shape[type.rank() - 1].size();
      if (last <= max_fused_columns()) return last;
    }
    return group.space.elements <= max_fused_columns() ? group.space.elements : 1;
  }

  // Does anything but the loop of its group read the value?
  bool is_read_elsewhere(std::int64_t index) {
    if (read_outside_.empty()) {
      read_outside_.resize(program_.nodes().size());
      const auto note = [&](ValueId value, std::int32_t reader) {
        if (!value.is_node()) return;
        const std::int32_t own = grouping_.group_of[at(value.index())];
        if (own >= 0 && own != reader) read_outside_[at(value.index())] = true;
      };
      for (std::size_t i = 0; i < units_.size(); ++i) {
        const bool grouped = units_[i].kind == Unit::Kind::group;
        for (const ValueId read : reads_[i]) {
          note(read, grouped ? static_cast<std::int32_t>(units_[i].index) : -1);
        }
      }
      for (const Output& output : program_.outputs()) note(behind(output.value), -1);
    }
    return read_outside_[at(index)];
  }

  const Program& program_;
  const PlanTask& task_;
  std::shared_ptr<ThreadPool> pool_;
  Uses uses_;
  Artifact artifact_;
  PlanBuilder builder_;
  HandlerRegistry<CpuValue> registry_;
  std::vector<NodeRole> roles_;
  std::vector<std::int64_t> readers_;  // per node, one that reads it
  std::vector<PlannedProduct> products_;
  std::vector<std::int32_t> product_of_;  // per node, the product that makes its value, or -1
  Grouping grouping_;
  std::vector<Unit> units_;
  Lists<ValueId> reads_;               // per unit, the memory that it reads, behind reshapes
  std::vector<std::int32_t> unit_of_;  // per node, the unit that makes its value, or -1
  std::vector<std::int32_t> order_;
  std::vector<Buffer> inputs_;
  std::vector<Buffer> buffers_;  // per node
  std::vector<bool> read_outside_;
  FusedKernels fused_kernels_;
  // Of the group that is emitted: its loop, the loop's inputs and results, and per member what
  // reads its value. Kept for their memory.
  FusedLoop loop_;
  std::vector<std::pair<ValueId, Extent>> loop_inputs_;
  std::vector<std::int64_t> results_;
  std::vector<FusedArgument> values_;
};

}  // namespace

PlanTask PlanTask::plain(const Program& program) {
  PlanTask task;
  task.memory.resize(program.inputs().size());
  task.commits.resize(program.outputs().size());
  return task;
}

Plan make_plan(const Program& program, const PlanTask& task,
               const std::shared_ptr<ThreadPool>& pool) {
  const std::vector<std::string> unbound = symbols(program);
  if (!unbound.empty()) {
    throw Error(Category::unresolved_symbolic_shape,
                "found the symbol " + unbound[0] + ", expected a bound program");
  }
  const Program formed = kernel_forms(program);
  return Planner(formed, task, pool).run();
}

}  // namespace mulgrad::cpu
