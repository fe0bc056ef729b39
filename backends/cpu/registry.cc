#include "backends/cpu/registry.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "backends/cpu/fused.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/product.h"
#include "backends/cpu/strided.h"
#include "core/interpreter.h"

namespace mulgrad {
namespace {

using cpu::NamedKernel;
using Operands = std::span<const HandlerOperand<CpuValue>>;

std::string typed_name(std::string_view name, const Type& type) {
  return std::string(name) + "_" + std::string(to_string(type.dtype)) + " " +
         cpu::size_text(type.shape.sizes());
}
std::string typed_name(const Node& node) { return typed_name(info(node.op).name, node.type); }

// A literal is seen as the rank-0 tensor that it stands for.
std::vector<Type> types_of(Operands operands) {
  std::vector<Type> types;
  for (const auto& operand : operands) {
    types.push_back(operand.is_literal() ? Type{operand.dtype(), {}} : operand.type());
  }
  return types;
}

// May an elementwise kernel write its result over an operand of the same size?
enum class InPlace : std::uint8_t { no, yes };

bool contains(const Axes& axes, std::int64_t axis) { return std::ranges::count(axes, axis) > 0; }

// One side of a product: the axes in the order (batch, outer, inner) or (batch, inner, outer) where
// `outer` are the axes that the other side lacks and `inner` the contracted ones of the left side,
// the other way round on the right.
enum class Side : std::uint8_t { plain, transposed };
struct SideForm {
  std::optional<Axes> permutation;  // to apply first; none where the stored order will do
  Side side = Side::plain;
};

cpu::MatrixLayout layout_of(Side side, std::int64_t rows, std::int64_t columns) {
  if (side == Side::plain) return {{rows * columns}, columns, 1};
  return {{rows * columns}, 1, rows};
}

SideForm form_of(const Axes& batch, const Axes& rows, const Axes& columns) {
  const auto join = [&](const Axes& first, const Axes& second) {
    Axes all = batch;
    all.insert(all.end(), first.begin(), first.end());
    all.insert(all.end(), second.begin(), second.end());
    return all;
  };
  const Axes plain = join(rows, columns);
  if (std::ranges::is_sorted(plain)) return {std::nullopt, Side::plain};
  if (std::ranges::is_sorted(join(columns, rows))) return {std::nullopt, Side::transposed};
  return {plain, Side::plain};
}

class Handlers {
 public:
  Handlers(PlanBuilder& plan, std::shared_ptr<cpu::ThreadPool> pool)
      : plan_(plan), pool_(std::move(pool)) {}

  CpuValue creation(const Node& node) const { return {plan_.constant(evaluate_node(node, {}))}; }

  CpuValue elementwise(const Node& node, Operands operands) const {
    const bool is_identity =
        std::holds_alternative<StopGradient>(node.op) ||
        (std::holds_alternative<Convert>(node.op) && operands[0].dtype() == node.type.dtype);
    if (is_identity) return operands[0].value();
    const std::vector<Type> types = types_of(operands);
    std::vector<DType> dtypes;
    for (const Type& type : types) dtypes.push_back(type.dtype);
    if (cpu::can_fuse(node.op, dtypes, node.type.dtype)) return loop(node, operands);
    auto kernel = cpu::elementwise_kernel(node.op, types, node.type);
    if (!kernel) return fallback(node, operands);
    // Equal sizes in bytes then mean equal elements in equal places.
    const bool in_place = std::ranges::all_of(types, [&](const Type& type) {
      return byte_size(type.dtype) <= byte_size(node.type.dtype);
    });
    return call({typed_name(node), *std::move(kernel)}, operands, node.type,
                in_place ? InPlace::yes : InPlace::no);
  }

  CpuValue movement(const Node& node, Operands operands) const {
    const std::vector<Type> types = types_of(operands);
    if (std::holds_alternative<Reshape>(node.op)) return operands[0].value();
    Kernel kernel;
    if (const auto* broadcast = std::get_if<BroadcastInDim>(&node.op)) {
      kernel = cpu::broadcast_kernel(*broadcast, types[0]);
    } else if (const auto* transpose = std::get_if<Transpose>(&node.op)) {
      kernel = cpu::transpose_kernel(transpose->permutation, types[0]);
    } else if (const auto* slice = std::get_if<Slice>(&node.op)) {
      kernel = cpu::slice_kernel(*slice, types[0], node.type);
    } else if (const auto* concatenate = std::get_if<Concatenate>(&node.op)) {
      kernel = cpu::concatenate_kernel(*concatenate, types, node.type);
    } else if (const auto* pad = std::get_if<Pad>(&node.op)) {
      kernel = cpu::pad_kernel(*pad, types[0], node.type);
    } else {
      return fallback(node, operands);
    }
    return call({typed_name(node), std::move(kernel)}, operands, node.type, InPlace::no);
  }

  CpuValue reduction(const Node& node, Operands operands) const {
    std::optional<Kernel> kernel;
    if (const auto* reduce = std::get_if<Reduce>(&node.op)) {
      kernel = cpu::reduce_kernel(reduce->kind, reduce->axes, operands[0].type());
    } else if (const auto* mean = std::get_if<Mean>(&node.op)) {
      kernel = cpu::mean_kernel(mean->axes, operands[0].type());
    }
    if (!kernel) return fallback(node, operands);
    return call({typed_name(node), *std::move(kernel)}, operands, node.type, InPlace::no);
  }

  CpuValue product(const Node& node, Operands operands) const {
    const auto& op = std::get<DotGeneral>(node.op);
    const DType dtype = operands[0].dtype();
    if (dtype != op.dtype || (dtype != DType::f32 && dtype != DType::f64)) {
      return fallback(node, operands);
    }
    const auto free_axes = [](const Type& type, const Axes& batch, const Axes& contracting) {
      Axes axes;
      for (std::int64_t axis = 0; axis < type.rank(); ++axis) {
        if (!contains(batch, axis) && !contains(contracting, axis)) axes.push_back(axis);
      }
      return axes;
    };
    const auto extent = [](const Type& type, const Axes& axes) {
      std::int64_t size = 1;
      for (const std::int64_t axis : axes) size *= type.shape[axis].size();
      return size;
    };
    const Type& left = operands[0].type();
    const Type& right = operands[1].type();
    const Axes rows = free_axes(left, op.lhs_batch, op.lhs_contracting);
    const Axes columns = free_axes(right, op.rhs_batch, op.rhs_contracting);
    cpu::ProductSpec spec;
    spec.dtype = dtype;
    spec.batch = {extent(left, op.lhs_batch)};
    spec.m = extent(left, rows);
    spec.n = extent(right, columns);
    spec.k = extent(left, op.lhs_contracting);
    // Both sides must list the contracted axes in one order, and so the left side's order may have
    // to give way to the right side's.
    DotGeneral sorted = op;
    sort_contracting(sorted);
    const SideForm lhs = form_of(sorted.lhs_batch, rows, sorted.lhs_contracting);
    const SideForm rhs = form_of(sorted.rhs_batch, sorted.rhs_contracting, columns);
    spec.lhs = layout_of(lhs.side, spec.m, spec.k);
    spec.rhs = layout_of(rhs.side, spec.k, spec.n);
    spec.result = layout_of(Side::plain, spec.m, spec.n);
    KernelCall product{cpu::product_name(spec),
                       {arranged(operands[0], lhs), arranged(operands[1], rhs)},
                       cpu::product_kernel(spec, pool_),
                       {{bytes_of(node.type)}}};
    return {plan_.call(std::move(product))[0]};
  }

  // The interpreter's result, computed on copies.
  CpuValue fallback(const Node& node, Operands operands) const {
    std::vector<Tensor> copies;
    for (const Type& type : types_of(operands)) {
      copies.emplace_back(type.dtype, type.shape.sizes());
    }
    std::vector<Buffer> buffers;
    for (const auto& operand : operands) {
      if (!operand.is_literal()) buffers.push_back(operand.value().buffer);
    }
    Kernel kernel = [node, copies](std::span<std::byte* const> results,
                                   std::span<const std::byte* const> values) mutable {
      std::vector<const Tensor*> tensors;
      std::size_t next = 0;
      for (std::size_t i = 0; i < copies.size(); ++i) {
        tensors.push_back(node.operands[i].is_literal() ? nullptr : &copies[i]);
        if (tensors.back() == nullptr) continue;
        const auto bytes = copies[i].bytes();
        if (!bytes.empty()) std::memcpy(bytes.data(), values[next], bytes.size());
        ++next;
      }
      const Tensor value = evaluate_node(node, tensors);
      if (!value.bytes().empty())
        std::memcpy(results[0], value.bytes().data(), value.bytes().size());
    };
    return {plan_.call({"interpreted " + typed_name(node),
                        std::move(buffers),
                        std::move(kernel),
                        {{bytes_of(node.type)}},
                        CallKind::fallback})[0]};
  }

 private:
  static void sort_contracting(DotGeneral& op) {
    std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
    for (std::size_t i = 0; i < op.lhs_contracting.size(); ++i) {
      pairs.emplace_back(op.lhs_contracting[i], op.rhs_contracting[i]);
    }
    std::ranges::sort(pairs);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      op.lhs_contracting[i] = pairs[i].first;
      op.rhs_contracting[i] = pairs[i].second;
    }
  }

  // All elements in one loop; an operand that repeats otherwise than as one number does that first.
  CpuValue loop(const Node& node, Operands operands) const {
    const Shape& shape = node.type.shape;
    cpu::FusedStep step{node.op, {}, node.type.dtype, cpu::Extent::full};
    std::vector<cpu::FusedInput> inputs;
    std::vector<Buffer> buffers;
    KernelResult made{bytes_of(node.type)};
    for (const auto& operand : operands) {
      if (operand.is_literal()) {
        step.arguments.push_back(operand.literal());
        continue;
      }
      const Type& type = operand.type();
      const auto number = static_cast<std::int32_t>(inputs.size());
      step.arguments.push_back(cpu::FromInput{number});
      buffers.push_back(operand.value().buffer);
      inputs.push_back({type.dtype, cpu::Extent::full});
      if (type.shape == shape) {
        made.may_overlay.push_back(number);
      } else if (type.shape.elements() == Dim(1)) {
        inputs.back().extent = cpu::Extent::scalar;
      } else {
        BroadcastInDim repeat{shape, Axes(static_cast<std::size_t>(type.rank()))};
        std::iota(repeat.dims.begin(), repeat.dims.end(), 0);
        const Type repeated{type.dtype, shape};
        buffers.back() = plan_.call({typed_name("BroadcastInDim", repeated),
                                     {buffers.back()},
                                     cpu::broadcast_kernel(repeat, type),
                                     {{bytes_of(repeated)}}})[0];
      }
    }
    const cpu::FusedLoop made_loop{
        shape.elements().size(), 1, std::move(inputs), {std::move(step)}, {0}};
    return {plan_.call({typed_name(node),
                        std::move(buffers),
                        cpu::fused_kernel(made_loop),
                        {std::move(made)}})[0]};
  }

  Buffer arranged(const HandlerOperand<CpuValue>& operand, const SideForm& form) const {
    if (!form.permutation) return operand.value().buffer;
    return plan_.call({typed_name("arrange", operand.type()),
                       {operand.value().buffer},
                       cpu::transpose_kernel(*form.permutation, operand.type()),
                       {{bytes_of(operand.type())}}})[0];
  }

  CpuValue call(NamedKernel kernel, Operands operands, const Type& result, InPlace in_place) const {
    std::vector<Buffer> buffers;
    for (const auto& operand : operands) {
      buffers.push_back(operand.is_literal() ? plan_.constant(Tensor::filled(operand.literal(), {}))
                                             : operand.value().buffer);
    }
    KernelResult made{bytes_of(result)};
    if (in_place == InPlace::yes) {
      made.may_overlay.resize(buffers.size());
      std::iota(made.may_overlay.begin(), made.may_overlay.end(), 0);
    }
    return {plan_.call({std::move(kernel.name),
                        std::move(buffers),
                        std::move(kernel.kernel),
                        {std::move(made)}})[0]};
  }

  PlanBuilder& plan_;
  std::shared_ptr<cpu::ThreadPool> pool_;
};

}  // namespace

std::size_t bytes_of(const Type& type) {
  return static_cast<std::size_t>((type.shape.elements() * Dim(byte_size(type.dtype))).size());
}

HandlerRegistry<CpuValue> make_cpu_registry(PlanBuilder& plan,
                                            std::shared_ptr<cpu::ThreadPool> pool) {
  HandlerRegistry<CpuValue> registry;
  const Handlers handlers(plan, std::move(pool));
  for (const OpInfo& op : all_ops()) {
    registry.add(op.kind,
                 [handlers, op_class = op.op_class](const HandlerContext& context,
                                                    Operands operands) -> CpuValue {
                   const Node& node = context.node();
                   switch (op_class) {
                     case OpClass::creation:
                       return handlers.creation(node);
                     case OpClass::elementwise:
                       return handlers.elementwise(node, operands);
                     case OpClass::broadcast:
                     case OpClass::movement:
                       return handlers.movement(node, operands);
                     case OpClass::reduction:
                       return handlers.reduction(node, operands);
                     case OpClass::product:
                       return handlers.product(node, operands);
                     case OpClass::custom:
                       return handlers.fallback(node, operands);
                   }
                   internal_check_failed("an op class", __FILE__, __LINE__);
                 });
  }
  return registry;
}

}  // namespace mulgrad
