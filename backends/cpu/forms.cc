#include "backends/cpu/forms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/cpu/form_constants.h"
#include "core/interpreter.h"
#include "core/rewrite/rewriter.h"
#include "lowering/cleaning.h"
#include "lowering/legalize.h"
#include "lowering/target.h"

namespace mulgrad::cpu {
namespace {

bool contains(const Axes& axes, std::int64_t axis) { return std::ranges::count(axes, axis) > 0; }

Axes others(std::int64_t rank, const Axes& a, const Axes& b) {
  Axes result;
  for (std::int64_t i = 0; i < rank; ++i) {
    if (!contains(a, i) && !contains(b, i)) result.push_back(i);
  }
  return result;
}

Axes ascending(std::int64_t rank) {
  Axes axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

bool has_kernels(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

bool is_one(const Literal& literal) { return literal == Literal::one(literal.dtype); }

// Rebuilds the program, each node in the form that its operands, already in theirs, ask for.
class Forms {
 public:
  explicit Forms(const Program& source)
      : source_(source), uses_(source), rewriter_(source), builder_(rewriter_.builder()) {}

  Program run() {
    const std::vector<bool> reached = reachable_nodes(source_);
    for (std::int64_t i = 0; i < std::ssize(source_.nodes()); ++i) {
      if (!reached[static_cast<std::size_t>(i)]) continue;
      builder_.set_origin(source_.origins()[static_cast<std::size_t>(i)]);
      const ValueId source = ValueId::node(i);
      const ValueId made = form(source_.node(source));
      INTERNAL_CHECK(builder_.type(made) == source_.type(source));
      rewriter_.replace(i, made);
      if (made.is_node()) {
        // Several source nodes may become one.
        const auto index = static_cast<std::size_t>(made.index());
        if (readings_.size() <= index) readings_.resize(builder_.nodes().size());
        if (readings_[index] != Readings::several) {
          readings_[index] = uses_.count(source) == 1 ? Readings::one : Readings::several;
        }
      }
    }
    return rewriter_.finish();
  }

 private:
  // What a run of shifted maxima holds: at column j the maximum of columns j .. j + width - 1 of
  // `base`, cyclically.
  struct Window {
    ValueId base;
    std::int64_t width;
  };
  // The extremum of the parts of `base` along an axis.
  struct Fold {
    ValueId base;
    std::int64_t axis;
    Reduction kind;
  };
  struct Shift {
    ValueId of;
    std::int64_t by;
  };

  // The node behind a value, or null. Valid until the next node is added.
  const Node* node_of(ValueId value) const {
    return value.is_input() ? nullptr : &builder_.nodes()[static_cast<std::size_t>(value.index())];
  }
  template <class T>
  const Node* made_by(ValueId value) const {
    const Node* node = node_of(value);
    return node != nullptr && std::holds_alternative<T>(node->op) ? node : nullptr;
  }
  template <class T>
  const Node* made_by(const Operand& operand) const {
    return operand.is_literal() ? nullptr : made_by<T>(operand.value());
  }
  std::optional<Literal> fill_value(const Operand& operand) const {
    if (operand.is_literal()) return operand.literal();
    const Node* node = made_by<Fill>(operand.value());
    if (node == nullptr) return std::nullopt;
    return std::get<Fill>(node->op).value;
  }
  // Behind any reshapes.
  ValueId unshaped(ValueId value) const {
    while (const Node* node = made_by<Reshape>(value)) value = node->operands[0].value();
    return value;
  }
  Var var(ValueId value) { return {builder_, value}; }
  ValueId reshaped(ValueId value, const Shape& shape) {
    if (builder_.type(value).shape == shape) return value;
    if (const auto literal = fill_value(value)) return builder_.add(Fill{*literal, shape}, {});
    const ValueId base = unshaped(value);
    return reshape(var(base), shape).id();
  }
  // Does it stand for source nodes that are read once?
  bool is_single(ValueId value) const {
    const auto index = static_cast<std::size_t>(value.index());
    return value.is_node() && index < readings_.size() && readings_[index] == Readings::one;
  }

  ValueId form(const Node& node) {
    std::vector<Operand>& operands = operands_;
    operands.clear();
    for (const Operand& operand : node.operands) operands.push_back(rewriter_.at(operand));
    if (is_elementwise(node.op)) return elementwise(node, operands);
    if (std::holds_alternative<Reshape>(node.op)) {
      return reshaped(operands[0].value(), node.type.shape);
    }
    if (const auto* op = std::get_if<BroadcastInDim>(&node.op)) {
      return broadcast(operands[0].value(), *op);
    }
    if (const auto* op = std::get_if<Transpose>(&node.op)) {
      return transposed(operands[0].value(), op->permutation);
    }
    if (const auto* op = std::get_if<Reduce>(&node.op)) return reduced(operands[0].value(), *op);
    if (const auto* op = std::get_if<Mean>(&node.op)) {
      if (has_kernels(node.type.dtype)) return mean_of(operands[0].value(), *op, node.type.shape);
    }
    if (const auto* op = std::get_if<DotGeneral>(&node.op)) {
      return product(operands[0].value(), operands[1].value(), *op);
    }
    if (const auto* op = std::get_if<Concatenate>(&node.op)) {
      const auto batched = product_of_slices(*op, operands);
      if (batched) return reshaped(*batched, node.type.shape);
    }
    if (const auto* op = std::get_if<Constant>(&node.op)) {
      if (const auto row = row_of(*op->value)) return repeated_row(*row, node.type.shape);
    }
    return builder_.add(node.op, operands);
  }

  ValueId broadcast(ValueId x, const BroadcastInDim& op) {
    if (const auto literal = fill_value(x)) return builder_.add(Fill{*literal, op.shape}, {});
    const Type type = builder_.type(x);
    if (type.shape.elements() == op.shape.elements() && std::ranges::is_sorted(op.dims)) {
      return reshaped(x, op.shape);
    }
    return builder_.add(op, {x});
  }

  // The row that a [rows, columns] constant repeats.
  std::optional<Tensor> row_of(const Tensor& matrix) const {
    if (matrix.rank() != 2 || matrix.sizes()[0] < 2 || matrix.bytes().empty()) return std::nullopt;
    const std::int64_t rows = matrix.sizes()[0];
    const std::span<const std::byte> bytes = matrix.bytes();
    const std::size_t length = bytes.size() / static_cast<std::size_t>(rows);
    for (std::size_t i = length; i < bytes.size(); ++i) {
      if (bytes[i] != bytes[i - length]) return std::nullopt;
    }
    Tensor row(matrix.dtype(), {1, matrix.sizes()[1]});
    std::ranges::copy(bytes.first(length), row.bytes().begin());
    return row;
  }
  ValueId repeated_row(const Tensor& row, const Shape& shape) {
    const ValueId one = builder_.add(Constant{std::make_shared<const Tensor>(row)}, {});
    return builder_.add(BroadcastInDim{shape, {0, 1}}, {one});
  }

  ValueId transposed(ValueId x, Axes permutation) {
    if (const Node* inner = made_by<Transpose>(x)) {
      for (std::int64_t& axis : permutation) {
        axis = std::get<Transpose>(inner->op).permutation[static_cast<std::size_t>(axis)];
      }
      x = inner->operands[0].value();
    }
    const Shape shape = builder_.type(x).shape;
    Shape result;
    std::int64_t last = -1;
    bool moves = false;
    for (const std::int64_t axis : permutation) {
      result.push_back(shape[axis]);
      if (shape[axis] == Dim(1)) continue;
      moves = moves || axis < last;
      last = axis;
    }
    if (!moves || fill_value(x)) return reshaped(x, result);
    if (const auto swapped = swapped_product(x, permutation)) return *swapped;
    return builder_.add(Transpose{std::move(permutation)}, {x});
  }

  // The product whose free axes come in the other order.
  std::optional<ValueId> swapped_product(ValueId x, const Axes& permutation) {
    const Node* node = made_by<DotGeneral>(x);
    if (node == nullptr || !is_single(x)) return std::nullopt;
    const DotGeneral op = std::get<DotGeneral>(node->op);
    const ValueId left = node->operands[0].value();
    const ValueId right = node->operands[1].value();
    const auto batch = static_cast<std::int64_t>(op.lhs_batch.size());
    const std::int64_t rows =
        builder_.type(left).rank() - batch - static_cast<std::int64_t>(op.lhs_contracting.size());
    const std::int64_t rank = static_cast<std::int64_t>(permutation.size());
    Axes swap = ascending(batch);
    for (std::int64_t axis = batch + rows; axis < rank; ++axis) swap.push_back(axis);
    for (std::int64_t axis = batch; axis < batch + rows; ++axis) swap.push_back(axis);
    if (swap != permutation) return std::nullopt;
    return builder_.add(
        DotGeneral{op.rhs_batch, op.lhs_batch, op.rhs_contracting, op.lhs_contracting, op.dtype},
        {right, left});
  }

  ValueId reduced(ValueId x, const Reduce& op) {
    const Shape shape = builder_.type(x).shape;
    const DType dtype = builder_.type(x).dtype;
    Shape kept;
    std::int64_t terms = 1;
    for (std::int64_t i = 0; i < shape.rank(); ++i) {
      if (contains(op.axes, i)) {
        terms *= shape[i].size();
      } else {
        kept.push_back(shape[i]);
      }
    }
    if (terms == 1 && has_kernels(dtype)) return reshaped(x, kept);
    if (op.kind == Reduction::sum && op.axes == Axes{1}) {
      if (const auto batched = product_of_blocks(x)) return reshaped(*batched, kept);
    }
    const auto literal = fill_value(x);
    if (literal && has_kernels(dtype) && terms > 0 && op.kind == Reduction::sum) {
      const double total = literal->as_double() * static_cast<double>(terms);
      return builder_.add(Fill{Literal::from_double(dtype, total), kept}, {});
    }
    return builder_.add(op, {x});
  }

  bool masks_blocks(const Operand& numbers, std::int64_t block, std::int64_t batch) const {
    if (numbers.is_literal() || !has_kernels(builder_.type(numbers.value()).dtype)) return false;
    const auto constant = [&](const Operand& operand) -> const Tensor* {
      const Node* node = made_by<Constant>(operand);
      return node == nullptr ? nullptr : std::get<Constant>(node->op).value.get();
    };
    const Tensor* whole = constant(numbers);
    const Node* product = made_by<DotGeneral>(numbers);
    const bool is_product = product != nullptr && is_plain(std::get<DotGeneral>(product->op));
    const Tensor* rows = is_product ? constant(product->operands[0]) : nullptr;
    const Tensor* columns = is_product ? constant(product->operands[1]) : nullptr;
    if (whole != nullptr) return is_block_mask(*whole, block, batch);
    return rows != nullptr && columns != nullptr && is_block_mask(*rows, *columns, block, batch);
  }
  // x is [batch * rows * columns, batch], and its sum over the last axis is asked for. Where x
  // holds of a product [batch * rows, inner] by [inner, columns * batch] the blocks of equal
  // batches, and zeros elsewhere, that is the product of each batch.
  std::optional<ValueId> product_of_blocks(ValueId x) {
    const Node* wanted = made_by<Select>(x);
    if (wanted == nullptr || wanted->operands[1].is_literal() ||
        !is_literal_value(wanted->operands[2], 0)) {
      return std::nullopt;
    }
    const Node* equal = made_by<Compare>(wanted->operands[0]);
    const Node* all = made_by<DotGeneral>(unshaped(wanted->operands[1].value()));
    const Shape shape = builder_.type(x).shape;
    if (equal == nullptr || std::get<Compare>(equal->op).direction != Comparison::EQ ||
        all == nullptr || !is_plain(std::get<DotGeneral>(all->op)) || shape.elements() == Dim(0)) {
      return std::nullopt;
    }
    const ValueId left = all->operands[0].value();
    const ValueId right = all->operands[1].value();
    const DType dtype = std::get<DotGeneral>(all->op).dtype;
    const std::int64_t batch = shape[1].size();
    const std::int64_t rows = builder_.type(left).shape[0].size() / batch;
    const std::int64_t inner = builder_.type(left).shape[1].size();
    const std::int64_t columns = builder_.type(right).shape[1].size() / batch;
    const std::int64_t block = rows * columns;
    if (inner == 0 || Dim(batch * block) != shape[0] ||
        !is_literal_value(equal->operands[1], static_cast<double>(batch - 1)) ||
        !masks_blocks(equal->operands[0], block, batch)) {
      return std::nullopt;
    }
    return product_by_batch(left, {batch, rows, inner}, right, {inner, columns, batch}, 2, 0,
                            dtype);
  }
  // Products of what lies below each other in two matrices, themselves below each other.
  std::optional<ValueId> product_of_slices(const Concatenate& op,
                                           std::span<const Operand> operands) {
    const std::int64_t batch = std::ssize(operands);
    if (op.dimension != 0 || batch < 2) return std::nullopt;
    std::vector<ValueId> sides;
    DType dtype = DType::f32;
    for (std::int64_t i = 0; i < batch; ++i) {
      const Node* one = made_by<DotGeneral>(operands[static_cast<std::size_t>(i)]);
      if (one == nullptr || !is_plain(std::get<DotGeneral>(one->op))) return std::nullopt;
      dtype = std::get<DotGeneral>(one->op).dtype;
      for (const std::size_t side : {0u, 1u}) {
        const Node* part = made_by<Slice>(one->operands[side]);
        if (part == nullptr) return std::nullopt;
        const ValueId from = part->operands[0].value();
        if (i == 0) sides.push_back(from);
        const Shape& shape = builder_.type(from).shape;
        const std::int64_t height = shape[0].size() / batch;
        const Slice expected{{i * height, 0}, {(i + 1) * height, shape[1]}, {1, 1}};
        if (from != sides[side] || Dim(batch * height) != shape[0] ||
            !(std::get<Slice>(part->op) == expected)) {
          return std::nullopt;
        }
      }
    }
    const Shape lhs = builder_.type(sides[0]).shape;
    const Shape rhs = builder_.type(sides[1]).shape;
    return product_by_batch(sides[0], {batch, lhs[0].size() / batch, lhs[1].size()}, sides[1],
                            {batch, rhs[0].size() / batch, rhs[1].size()}, 0, 1, dtype);
  }
  // The product of each batch of lhs, in parts [batch, rows, inner], with that of rhs, whose parts
  // at `batch` and `inner` are these. With the axes that lie behind reshapes, transposes among them
  // can be read through.
  ValueId product_by_batch(ValueId lhs, const std::array<std::int64_t, 3>& lhs_sizes, ValueId rhs,
                           const std::array<std::int64_t, 3>& rhs_sizes, std::size_t batch,
                           std::size_t inner, DType dtype) {
    const ValueId left = unshaped(lhs);
    const ValueId right = unshaped(rhs);
    const auto a = parts_of(builder_.type(left).shape, lhs_sizes);
    const auto b = parts_of(builder_.type(right).shape, rhs_sizes);
    if (a && b && sizes_of(left, (*a)[0]) == sizes_of(right, (*b)[batch]) &&
        sizes_of(left, (*a)[2]) == sizes_of(right, (*b)[inner])) {
      return product(left, right, {(*a)[0], (*b)[batch], (*a)[2], (*b)[inner], dtype});
    }
    const auto shaped = [&](ValueId x, const std::array<std::int64_t, 3>& sizes) {
      return reshaped(x, {sizes[0], sizes[1], sizes[2]});
    };
    const ValueId lhs_parts = shaped(lhs, lhs_sizes);
    const ValueId rhs_parts = shaped(rhs, rhs_sizes);
    const auto axis = [](std::size_t part) { return Axes{static_cast<std::int64_t>(part)}; };
    return product(lhs_parts, rhs_parts, {{0}, axis(batch), {2}, axis(inner), dtype});
  }
  Shape sizes_of(ValueId x, const Axes& axes) const {
    Shape result;
    for (const std::int64_t axis : axes) result.push_back(builder_.type(x).shape[axis]);
    return result;
  }

  ValueId mean_of(ValueId x, const Mean& op, const Shape& result) {
    const Shape shape = builder_.type(x).shape;
    const DType dtype = builder_.type(x).dtype;
    std::int64_t terms = 1;
    for (const std::int64_t axis : op.axes) terms *= shape[axis].size();
    ValueId total = reduced(x, {Reduction::sum, op.axes});
    if (terms != 1) {
      total = binary(Divide{}, total, Literal::from_int(dtype, terms), builder_.type(total));
    }
    return reshaped(total, result);
  }

  ValueId product(ValueId left, ValueId right, DotGeneral op) {
    const DType dtype = builder_.type(left).dtype;
    untranspose(left, op.lhs_batch, op.lhs_contracting);
    untranspose(right, op.rhs_batch, op.rhs_contracting);
    if (dtype == op.dtype && has_kernels(dtype)) {
      if (op.lhs_batch.empty()) {
        const auto ones_left = fill_value(left);
        const auto ones_right = fill_value(right);
        if (ones_right && is_one(*ones_right)) {
          return sums(left, op.lhs_contracting, right, op.rhs_contracting, Side::left);
        }
        if (ones_left && is_one(*ones_left)) {
          return sums(right, op.rhs_contracting, left, op.lhs_contracting, Side::right);
        }
      }
      if (const auto maximum = shifted_product(left, right, op)) return *maximum;
    }
    const ValueId made = builder_.add(op, {left, right});
    note_shift(made, left, right, op);
    return made;
  }

  // Reads through a transpose where the free axes keep their order.
  void untranspose(ValueId& x, Axes& batch, Axes& contracting) const {
    const Node* node = made_by<Transpose>(x);
    if (node == nullptr) return;
    const Axes& permutation = std::get<Transpose>(node->op).permutation;
    const auto moved = [&](const Axes& axes) {
      Axes result;
      for (const std::int64_t axis : axes) {
        result.push_back(permutation[static_cast<std::size_t>(axis)]);
      }
      return result;
    };
    const Axes free = moved(others(std::ssize(permutation), batch, contracting));
    if (!std::ranges::is_sorted(free)) return;
    batch = moved(batch);
    contracting = moved(contracting);
    x = node->operands[0].value();
  }

  enum class Side : std::uint8_t { left, right };
  // The product of x, on the given side, with ones: sums repeated along the free axes of the ones.
  ValueId sums(ValueId x, const Axes& contracting, ValueId ones, const Axes& ones_contracting,
               Side side) {
    const Shape ones_shape = builder_.type(ones).shape;
    Axes axes = contracting;
    std::ranges::sort(axes);
    const ValueId total = reduced(x, {Reduction::sum, axes});
    const Shape kept = builder_.type(total).shape;
    Shape repeats;
    for (const std::int64_t axis : others(ones_shape.rank(), ones_contracting, {})) {
      repeats.push_back(ones_shape[axis]);
    }
    std::vector<Dim> result(kept.begin(), kept.end());
    result.insert(side == Side::left ? result.end() : result.begin(), repeats.begin(),
                  repeats.end());
    Axes dims = ascending(kept.rank());
    if (side == Side::right) {
      for (std::int64_t& axis : dims) axis += repeats.rank();
    }
    return broadcast(total, {Shape(std::move(result)), std::move(dims)});
  }

  // Never NaN or infinite, whatever the inputs hold.
  bool is_finite_value(ValueId value) const {
    for (;;) {
      const Node* node = node_of(value);
      if (node == nullptr) return false;
      if (std::holds_alternative<Reshape>(node->op) ||
          std::holds_alternative<Transpose>(node->op) ||
          std::holds_alternative<BroadcastInDim>(node->op)) {
        value = node->operands[0].value();
      } else if (const auto* op = std::get_if<Reduce>(&node->op)) {
        // Shifts are made for axes that have elements.
        if (op->kind != Reduction::max && op->kind != Reduction::min) return false;
        value = node->operands[0].value();
      } else {
        return guarded(*node).has_value();
      }
    }
  }
  // x of select(is_finite(x), x, finite literal).
  std::optional<ValueId> guarded(const Node& node) const {
    if (!std::holds_alternative<Select>(node.op)) return std::nullopt;
    const Node* predicate = made_by<IsFinite>(node.operands[0]);
    const auto other = fill_value(node.operands[2]);
    if (predicate == nullptr || node.operands[1].is_literal() || !other || !other->is_finite()) {
      return std::nullopt;
    }
    if (!(predicate->operands[0] == node.operands[1])) return std::nullopt;
    return node.operands[1].value();
  }

  static bool is_plain(const DotGeneral& op) {
    return op.lhs_batch.empty() && op.lhs_contracting == Axes{1} && op.rhs_contracting == Axes{0};
  }
  void note_shift(ValueId made, ValueId left, ValueId right, const DotGeneral& op) {
    const Node* matrix = made_by<Constant>(right);
    if (matrix == nullptr || !is_plain(op) || builder_.type(left).rank() != 2) return;
    const Tensor& values = *std::get<Constant>(matrix->op).value;
    if (values.rank() != 2) return;
    const auto by = shift_of(values);
    if (!by) return;
    if (windows_.count(left.index()) == 0) {
      if (!is_finite_value(left)) return;
      windows_.insert({left.index(), {left, 1}});
    }
    shifts_.insert({made.index(), {left, *by}});
  }
  void note_window(ValueId made, std::span<const Operand> operands) {
    if (operands[0].is_literal() || operands[1].is_literal()) return;
    for (const std::size_t i : {0u, 1u}) {
      const ValueId kept = operands[i].value();
      const ValueId moved = operands[1 - i].value();
      if (kept.is_input() || moved.is_input()) continue;
      const auto shift = shifts_.find(moved.index());
      const auto window = windows_.find(kept.index());
      if (shift == shifts_.end() || window == windows_.end() || shift->second.of != kept) continue;
      if (shift->second.by > window->second.width) continue;
      const Window wider{window->second.base, window->second.width + shift->second.by};
      windows_.insert_or_assign(made.index(), wider);
      return;
    }
  }
  // A column of a window over whole rows is the rows' maximum.
  std::optional<ValueId> shifted_product(ValueId left, ValueId right, const DotGeneral& op) {
    const Node* matrix = made_by<Constant>(right);
    if (matrix == nullptr || left.is_input() || !is_plain(op)) return std::nullopt;
    const auto window = windows_.find(left.index());
    if (window == windows_.end()) return std::nullopt;
    const Shape shape = builder_.type(left).shape;
    const Tensor& values = *std::get<Constant>(matrix->op).value;
    if (values.rank() != 2 || values.sizes()[1] != 1 || !picks_a_column(values)) {
      return std::nullopt;
    }
    if (Dim(window->second.width) == shape[1] || window->second.width > shape[1].size()) {
      const ValueId base = window->second.base;
      return reshaped(reduced(base, {Reduction::max, {1}}), {shape[0], 1});
    }
    return std::nullopt;
  }

  bool is_literal_value(const Operand& operand, double value) const {
    const auto literal = fill_value(operand);
    return literal && literal->as_double() == value;
  }
  // Is it max(x, 0)?
  bool is_positive_part(const Operand& operand, const Operand& x) const {
    const Node* node = made_by<Maximum>(operand);
    return node != nullptr && node->operands[0] == x && is_literal_value(node->operands[1], 0);
  }
  // select(is_finite(mark), select(mark > 0, maximum of the finite, -inf), mark), where mark is the
  // sum over a row of select(is_finite(x), 1, max(x, 0)).
  std::optional<ValueId> row_maximum(std::span<const Operand> outer, const Shape& result) {
    const Operand& mark = outer[2];
    const Node* finite = made_by<IsFinite>(outer[0]);
    const Node* inner = made_by<Select>(outer[1]);
    if (mark.is_literal() || finite == nullptr || !(finite->operands[0] == mark) ||
        inner == nullptr || inner->operands[1].is_literal() ||
        !is_literal_value(inner->operands[2], -std::numeric_limits<double>::infinity())) {
      return std::nullopt;
    }
    const Node* positive = made_by<Compare>(inner->operands[0]);
    if (positive == nullptr || std::get<Compare>(positive->op).direction != Comparison::GT ||
        !(positive->operands[0] == mark) || !is_literal_value(positive->operands[1], 0)) {
      return std::nullopt;
    }
    const Node* total = made_by<Reduce>(unshaped(mark.value()));
    const Node* largest = made_by<Reduce>(unshaped(inner->operands[1].value()));
    if (total == nullptr || largest == nullptr) return std::nullopt;
    const auto reduces_rows = [&](const Node& node, Reduction kind) {
      const auto& reduce = std::get<Reduce>(node.op);
      const std::int64_t rank = builder_.type(node.operands[0].value()).rank();
      return reduce.kind == kind && reduce.axes == Axes{rank - 1};
    };
    const Shape shape = builder_.type(largest->operands[0].value()).shape;
    const Shape summed = builder_.type(total->operands[0].value()).shape;
    const Node* guard = node_of(unshaped(largest->operands[0].value()));
    const Node* marks = made_by<Select>(unshaped(total->operands[0].value()));
    if (!reduces_rows(*total, Reduction::sum) || !reduces_rows(*largest, Reduction::max) ||
        summed[summed.rank() - 1] != shape[shape.rank() - 1] || guard == nullptr ||
        !guarded(*guard) || marks == nullptr) {
      return std::nullopt;
    }
    const Operand x = *guarded(*guard);
    const Node* finite_element = made_by<IsFinite>(marks->operands[0]);
    if (finite_element == nullptr || !(finite_element->operands[0] == x) ||
        !is_literal_value(marks->operands[1], 1) || !is_positive_part(marks->operands[2], x)) {
      return std::nullopt;
    }
    const ValueId rows = reshaped(x.value(), shape);
    return reshaped(reduced(rows, {Reduction::max, {shape.rank() - 1}}), result);
  }

  ValueId binary(const Op& op, const Operand& a, const Operand& b, const Type& type) {
    std::array<Operand, 2> operands{a, b};
    return elementwise({op, {}, type}, operands);
  }

  ValueId elementwise(const Node& node, std::span<Operand> operands) {
    if (std::holds_alternative<StopGradient>(node.op)) return operands[0].value();
    if (std::holds_alternative<Convert>(node.op) &&
        builder_.type(operands[0].value()).dtype == node.type.dtype) {
      return operands[0].value();
    }
    if (const auto value = folded(node, operands)) {
      return builder_.add(Fill{*value, node.type.shape}, {});
    }
    if (const auto same = without_factor_one(node, operands)) return *same;
    if (std::holds_alternative<Select>(node.op)) {
      if (const auto maximum = row_maximum(operands, node.type.shape)) return *maximum;
    }
    fills_to_literals(node, operands);
    if (const auto* compare = std::get_if<Compare>(&node.op)) {
      if (compare->direction == Comparison::GT) read_maximum(operands);
    }
    const ValueId made = builder_.add(node.op, operands);
    if (const auto whole = folded_halves(made, operands)) return *whole;
    if (std::holds_alternative<Maximum>(node.op)) {
      note_window(made, operands);
      if (!operands[0].is_literal() && operands[1].is_literal()) {
        const std::int64_t key = key_of(operands[0].value());
        maxima_.emplace(key, std::pair(operands[1].literal(), made));
      }
    }
    return made;
  }

  // What the last extremum of two halves, along an axis and down to one element, stands for: that
  // of the whole. The halves overlap where the size is odd.
  std::optional<ValueId> folded_halves(ValueId made, std::span<const Operand> operands) {
    const Node* fold = node_of(made);
    const bool is_maximum = std::holds_alternative<Maximum>(fold->op);
    if (!is_maximum && !std::holds_alternative<Minimum>(fold->op)) return std::nullopt;
    const Node* low = made_by<Slice>(operands[0]);
    const Node* high = made_by<Slice>(operands[1]);
    const Shape result = fold->type.shape;
    if (low == nullptr || high == nullptr || !(low->operands[0] == high->operands[0]) ||
        low->type.shape != result || high->type.shape != result || !has_kernels(fold->type.dtype)) {
      return std::nullopt;
    }
    const ValueId x = low->operands[0].value();
    const Shape shape = builder_.type(x).shape;
    std::int64_t axis = 0;
    while (axis + 1 < shape.rank() && shape[axis] == result[axis]) ++axis;
    const std::int64_t size = shape[axis].size();
    const std::int64_t half = result[axis].size();
    Slice expected{std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank()), 0),
                   {result.begin(), result.end()},
                   std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank()), 1)};
    if (half >= size || 2 * half < size || !(std::get<Slice>(low->op) == expected)) {
      return std::nullopt;
    }
    expected.start[static_cast<std::size_t>(axis)] = size - half;
    expected.limit = {shape.begin(), shape.end()};
    if (!(std::get<Slice>(high->op) == expected)) return std::nullopt;
    Fold whole{x, axis, is_maximum ? Reduction::max : Reduction::min};
    const auto inner = x.is_input() ? folds_.end() : folds_.find(x.index());
    if (inner != folds_.end() && inner->second.axis == axis && inner->second.kind == whole.kind) {
      whole.base = inner->second.base;
    }
    if (half == 1) return reshaped(reduced(whole.base, {whole.kind, {axis}}), result);
    folds_.emplace(made.index(), whole);
    return std::nullopt;
  }

  // The value of an op on nothing but equal elements.
  std::optional<Literal> folded(const Node& node, std::span<const Operand> operands) const {
    if (!std::ranges::all_of(operands,
                             [&](const Operand& x) { return fill_value(x).has_value(); })) {
      return std::nullopt;
    }
    if (node.type.shape.elements() == Dim(0)) return std::nullopt;
    std::vector<Tensor> values;
    for (const Operand& operand : operands) {
      values.push_back(Tensor::filled(*fill_value(operand), {}));
    }
    Node scalar{node.op, {}, {node.type.dtype, {}}};
    std::vector<const Tensor*> pointers;
    for (const Tensor& value : values) {
      scalar.operands.emplace_back(ValueId::input(std::ssize(pointers)));
      pointers.push_back(&value);
    }
    return evaluate_node(scalar, pointers).element(0);
  }

  // x of x * 1 and x / 1, repeated where only the one had the shape.
  std::optional<ValueId> without_factor_one(const Node& node, std::span<const Operand> operands) {
    const bool multiplies = std::holds_alternative<Multiply>(node.op);
    if (!multiplies && !std::holds_alternative<Divide>(node.op)) return std::nullopt;
    for (const std::size_t i : {1u, 0u}) {
      if (i == 0 && !multiplies) break;
      const auto value = fill_value(operands[i]);
      const Operand& other = operands[1 - i];
      if (!value || !is_one(*value) || other.is_literal()) continue;
      const Type type = builder_.type(other.value());
      if (type.shape == node.type.shape) return other.value();
      if (type.rank() == 0) return broadcast(other.value(), {node.type.shape, {}});
      if (type.rank() == node.type.rank()) {
        return broadcast(other.value(), {node.type.shape, ascending(type.rank())});
      }
    }
    return std::nullopt;
  }

  // A fill is a literal where the other operands have the shape, and one of them stays a value.
  void fills_to_literals(const Node& node, std::span<Operand> operands) const {
    const bool selects = std::holds_alternative<Select>(node.op);
    const bool clamps = std::holds_alternative<Clamp>(node.op);
    if (operands.size() < 2) return;
    for (std::size_t i = selects ? 1 : 0; i < operands.size(); ++i) {
      if (operands[i].is_literal() || (clamps && i == 1)) continue;
      const auto value = fill_value(operands[i]);
      if (!value || value->dtype == DType::i1) continue;
      bool shaped = false;
      bool stays = false;
      for (std::size_t k = 0; k < operands.size(); ++k) {
        if (k == i || operands[k].is_literal()) continue;
        shaped = shaped || builder_.type(operands[k].value()).shape == node.type.shape;
        stays = stays || !selects || k > 0;
      }
      if (shaped && stays) operands[i] = *value;
    }
  }

  // x > c is max(x, c) > c, and the maximum is most often in memory anyway.
  void read_maximum(std::span<Operand> operands) const {
    if (operands[0].is_literal() || !operands[1].is_literal()) return;
    const auto [first, last] = maxima_.equal_range(key_of(operands[0].value()));
    for (auto known = first; known != last; ++known) {
      if (known->second.first == operands[1].literal()) operands[0] = known->second.second;
    }
  }
  static std::int64_t key_of(ValueId value) {
    return value.is_input() ? ~value.index() : value.index();
  }

  const Program& source_;
  Uses uses_;
  Rewriter rewriter_;
  Builder& builder_;
  std::vector<Operand> operands_;  // of the node that gets its form: kept for their memory
  // How often the source nodes are read that a node stands for.
  enum class Readings : std::uint8_t { none, one, several };
  std::vector<Readings> readings_;
  std::unordered_map<std::int64_t, Window> windows_;
  std::unordered_map<std::int64_t, Fold> folds_;
  std::unordered_map<std::int64_t, Shift> shifts_;
  std::unordered_multimap<std::int64_t, std::pair<Literal, ValueId>> maxima_;
};

}  // namespace

Program kernel_forms(const Program& program) {
  const Program formed = Forms(program).run();
  const Program elided = elide_broadcasts(Target::cpu()).run(formed).program;
  const Program composed = transpose_pairs().run(elided).program;
  const Program common = common_subexpressions().run(composed).program;
  return dead_code().run(common).program;
}

}  // namespace mulgrad::cpu
