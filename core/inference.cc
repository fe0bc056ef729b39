#include "core/inference.h"

#include <algorithm>
#include <string>

#include "core/custom.h"

namespace mulgrad {
namespace {

using Operands = std::span<const OperandType>;

[[noreturn]] void fail(Category category, std::string_view constraint, const std::string& message) {
  throw Error(category, std::string(constraint) + ": " + message);
}

std::string name_of(DType dtype) { return std::string(to_string(dtype)); }

bool is_literal(const OperandType& operand) { return std::holds_alternative<Literal>(operand); }
DType dtype_of_operand(const OperandType& operand) {
  return is_literal(operand) ? std::get<Literal>(operand).dtype
                             : std::get<const Type*>(operand)->dtype;
}

bool is_number(DType dtype) { return dtype != DType::i1; }
bool is_logical(DType dtype) { return !is_float(dtype); }
bool is_signed(DType dtype) { return is_number(dtype) && !is_unsigned(dtype); }
bool is_any(DType) { return true; }

// Which dtypes an elementwise op's value operands may have.
struct DTypeRule {
  bool (*holds)(DType);
  std::string_view expected;
};
constexpr DTypeRule kAny{is_any, "any dtype"};
constexpr DTypeRule kNumber{is_number, "an integer or float dtype"};
constexpr DTypeRule kSigned{is_signed, "a signed integer or float dtype"};
constexpr DTypeRule kFloat{is_float, "a float dtype"};
constexpr DTypeRule kLogical{is_logical, "i1 or an integer dtype"};

DTypeRule dtype_rule(OpKind kind) {
  switch (kind) {
    case OpKind::Convert:
    case OpKind::StopGradient:
    case OpKind::Compare:
    case OpKind::Select:
      return kAny;
    case OpKind::Negate:
    case OpKind::Add:
    case OpKind::Subtract:
    case OpKind::Multiply:
    case OpKind::Divide:
    case OpKind::Maximum:
    case OpKind::Minimum:
    case OpKind::Power:
    case OpKind::Clamp:
      return kNumber;
    case OpKind::Abs:
    case OpKind::Sign:
      return kSigned;
    case OpKind::Not:
    case OpKind::And:
    case OpKind::Or:
      return kLogical;
    default:
      return kFloat;
  }
}

Type infer_elementwise(const Op& op, Operands operands) {
  // A select's predicate is typed apart from its branches.
  const bool is_select = std::holds_alternative<Select>(op);
  if (is_select) {
    if (is_literal(operands[0])) {
      fail(Category::invalid_literal, "Elementwise E1", "the predicate of a select is no literal");
    }
    if (dtype_of_operand(operands[0]) != DType::i1) {
      fail(
          Category::dtype_mismatch, "Elementwise E2",
          "found a predicate of dtype " + name_of(dtype_of_operand(operands[0])) + ", expected i1");
    }
  }
  const Operands values = operands.subspan(is_select ? 1 : 0);
  const auto first = std::find_if_not(values.begin(), values.end(), is_literal);
  if (first == values.end()) {
    fail(Category::invalid_literal, "Elementwise E1",
         "every value operand is a literal, expected at least one tensor");
  }
  const DType dtype = std::get<const Type*>(*first)->dtype;
  const DTypeRule rule = dtype_rule(kind_of(op));
  if (!rule.holds(dtype)) {
    fail(Category::dtype_mismatch, "Elementwise E2",
         "found dtype " + name_of(dtype) + ", expected " + std::string(rule.expected));
  }
  for (const OperandType& operand : values) {
    if (is_literal(operand) && dtype_of_operand(operand) == DType::i1) {
      fail(Category::invalid_literal, "Elementwise E4", "i1 literals do not exist");
    }
    if (dtype_of_operand(operand) != dtype) {
      fail(Category::dtype_mismatch, is_literal(operand) ? "Elementwise E4" : "Elementwise E3",
           "found dtypes " + name_of(dtype) + " and " + name_of(dtype_of_operand(operand)) +
               ", expected equal dtypes");
    }
  }
  const Shape* shape = nullptr;
  Shape together;  // where operands are shaped otherwise than the first
  for (const OperandType& operand : operands) {
    if (is_literal(operand)) continue;
    const Shape& next = std::get<const Type*>(operand)->shape;
    if (shape == nullptr) {
      shape = &next;
    } else if (*shape != next) {
      together = broadcast_shapes(*shape, next);
      shape = &together;
    }
  }
  DType result = dtype;
  if (const auto* convert = std::get_if<Convert>(&op)) result = convert->dtype;
  if (std::holds_alternative<Compare>(op) || std::holds_alternative<IsFinite>(op)) {
    result = DType::i1;
  }
  return {result, *shape};
}

bool unique_and_in_range(const Axes& axes, std::int64_t rank) {
  // Ranks are small: looking back needs no memory.
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= rank) return false;
    for (std::size_t before = 0; before < i; ++before) {
      if (axes[before] == axes[i]) return false;
    }
  }
  return true;
}

std::string list(const Axes& axes) {
  std::string text = "[";
  for (std::size_t i = 0; i < axes.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(axes[i]);
  }
  return text + "]";
}

bool contains(const Axes& axes, std::int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

Category size_category(const Dim& a, const Dim& b, Category when_static) {
  return a.is_static() && b.is_static() ? when_static : Category::symbolic_shape_mismatch;
}

void check_length(std::string_view constraint, std::size_t found, std::int64_t rank) {
  if (static_cast<std::int64_t>(found) != rank) {
    fail(Category::shape_mismatch, constraint,
         "found " + std::to_string(found) + " entries for an operand of rank " +
             std::to_string(rank));
  }
}

Shape without_axes(const Shape& shape, const Axes& axes, bool keepdims) {
  std::vector<Dim> result;
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    if (!contains(axes, axis)) {
      result.push_back(shape[axis]);
    } else if (keepdims) {
      result.push_back(1);
    }
  }
  return Shape(std::move(result));
}

Type infer_op(const Fill& op, std::span<const Type>) { return {op.value.dtype, op.shape}; }
Type infer_op(const Constant& op, std::span<const Type>) { return op.value->type(); }

Type infer_op(const Iota& op, std::span<const Type>) {
  if (op.dtype == DType::i1) {
    fail(Category::dtype_mismatch, "Iota C1", "found dtype i1, expected an integer or float dtype");
  }
  if (op.dimension < 0 || op.dimension >= op.shape.rank()) {
    fail(Category::invalid_attribute, "Iota C2",
         "found dimension " + std::to_string(op.dimension) + " for rank " +
             std::to_string(op.shape.rank()));
  }
  return {op.dtype, op.shape};
}

Type infer_op(const BroadcastInDim& op, std::span<const Type> x) {
  if (std::ssize(op.dims) != x[0].rank()) {
    fail(Category::broadcast_shape_mismatch, "BroadcastInDim C1",
         "found " + std::to_string(op.dims.size()) + " dims for an operand of rank " +
             std::to_string(x[0].rank()));
  }
  if (!unique_and_in_range(op.dims, op.shape.rank())) {
    fail(Category::broadcast_shape_mismatch, "BroadcastInDim C2",
         "found dims " + list(op.dims) + ", expected unique axes of a result of rank " +
             std::to_string(op.shape.rank()));
  }
  for (std::int64_t i = 0; i < x[0].rank(); ++i) {
    const Dim& from = x[0].shape[i];
    const Dim& to = op.shape[op.dims[static_cast<std::size_t>(i)]];
    if (!(from == Dim(1)) && !(from == to)) {
      fail(size_category(from, to, Category::broadcast_shape_mismatch), "BroadcastInDim C3",
           "found size " + from.to_string() + " for the result size " + to.to_string() +
               " at operand axis " + std::to_string(i) + ", expected 1 or the same size");
    }
  }
  return {x[0].dtype, op.shape};
}

Type infer_op(const Reshape& op, std::span<const Type> x) {
  const Dim from = x[0].shape.elements();
  const Dim to = op.shape.elements();
  if (!(from == to)) {
    fail(size_category(from, to, Category::shape_mismatch), "Reshape C1",
         "found " + from.to_string() + " elements in " + x[0].shape.to_string() +
             ", expected the " + to.to_string() + " of " + op.shape.to_string());
  }
  return {x[0].dtype, op.shape};
}

Type infer_op(const Transpose& op, std::span<const Type> x) {
  if (std::ssize(op.permutation) != x[0].rank() ||
      !unique_and_in_range(op.permutation, x[0].rank())) {
    fail(Category::invalid_permutation, "Transpose C1",
         "found " + list(op.permutation) + ", expected a permutation of " +
             std::to_string(x[0].rank()) + " axes");
  }
  std::vector<Dim> shape;
  for (const std::int64_t axis : op.permutation) shape.push_back(x[0].shape[axis]);
  return {x[0].dtype, Shape(std::move(shape))};
}

Type infer_op(const Slice& op, std::span<const Type> x) {
  check_length("Slice C1", op.start.size(), x[0].rank());
  check_length("Slice C1", op.limit.size(), x[0].rank());
  check_length("Slice C1", op.stride.size(), x[0].rank());
  std::vector<Dim> shape;
  for (std::int64_t axis = 0; axis < x[0].rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const Dim& size = x[0].shape[axis];
    if (op.stride[i] <= 0) {
      fail(Category::invalid_attribute, "Slice C2",
           "found stride " + std::to_string(op.stride[i]) + " at axis " + std::to_string(axis) +
               ", expected a stride > 0");
    }
    if (op.start[i] == 0 && op.stride[i] == 1 && op.limit[i] == size) {
      shape.push_back(size);  // the whole axis, also a symbolic one
      continue;
    }
    const std::int64_t limit = op.limit[i].size();
    if (op.start[i] < 0 || op.start[i] > limit || limit > size.size()) {
      fail(Category::invalid_attribute, "Slice C3",
           "found " + std::to_string(op.start[i]) + ":" + std::to_string(limit) + " at axis " +
               std::to_string(axis) + ", expected 0 <= start <= limit <= " + size.to_string());
    }
    shape.push_back((limit - op.start[i]) / op.stride[i] +
                    ((limit - op.start[i]) % op.stride[i] != 0 ? 1 : 0));
  }
  return {x[0].dtype, Shape(std::move(shape))};
}

Type infer_op(const Concatenate& op, std::span<const Type> x) {
  if (x.empty()) fail(Category::arity_mismatch, "Concatenate C1", "found no operand, expected one");
  if (op.dimension < 0 || op.dimension >= x[0].rank()) {
    fail(Category::invalid_attribute, "Concatenate C2",
         "found dimension " + std::to_string(op.dimension) + " for rank " +
             std::to_string(x[0].rank()));
  }
  Shape shape = x[0].shape;
  std::int64_t total = 0;
  for (const Type& part : x) {
    if (part.dtype != x[0].dtype) {
      fail(Category::dtype_mismatch, "Concatenate C3",
           "found dtypes " + name_of(x[0].dtype) + " and " + name_of(part.dtype) +
               ", expected equal dtypes");
    }
    if (part.rank() != x[0].rank()) {
      fail(Category::shape_mismatch, "Concatenate C4",
           "found shapes " + x[0].shape.to_string() + " and " + part.shape.to_string() +
               ", expected equal ranks");
    }
    for (std::int64_t axis = 0; axis < part.rank(); ++axis) {
      if (axis != op.dimension && !(part.shape[axis] == x[0].shape[axis])) {
        fail(size_category(part.shape[axis], x[0].shape[axis], Category::shape_mismatch),
             "Concatenate C4",
             "found shapes " + x[0].shape.to_string() + " and " + part.shape.to_string() +
                 ", expected equal sizes off axis " + std::to_string(op.dimension));
      }
    }
    if (__builtin_add_overflow(total, part.shape[op.dimension].size(), &total)) {
      fail(Category::invalid_argument, "Concatenate C5", "the result size leaves 63 bits");
    }
  }
  shape[op.dimension] = total;
  return {x[0].dtype, shape};
}

Type infer_op(const Pad& op, std::span<const Type> x) {
  check_length("Pad C1", op.low.size(), x[0].rank());
  check_length("Pad C1", op.high.size(), x[0].rank());
  check_length("Pad C1", op.interior.size(), x[0].rank());
  if (x[1].dtype != x[0].dtype) {
    fail(Category::dtype_mismatch, "Pad C2",
         "found a padding value of dtype " + name_of(x[1].dtype) + ", expected " +
             name_of(x[0].dtype));
  }
  if (x[1].rank() != 0) {
    fail(Category::shape_mismatch, "Pad C3",
         "found a padding value of shape " + x[1].shape.to_string() + ", expected rank 0");
  }
  std::vector<Dim> shape;
  for (std::int64_t axis = 0; axis < x[0].rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (op.interior[i] < 0) {
      fail(Category::invalid_attribute, "Pad C4",
           "found interior padding " + std::to_string(op.interior[i]) + ", expected >= 0");
    }
    if (op.low[i] == 0 && op.high[i] == 0 && op.interior[i] == 0) {
      shape.push_back(x[0].shape[axis]);
      continue;
    }
    const std::int64_t size = x[0].shape[axis].size();
    std::int64_t padded = 0;
    const bool overflow =
        __builtin_mul_overflow(size > 0 ? size - 1 : 0, op.interior[i], &padded) ||
        __builtin_add_overflow(padded, size, &padded) ||
        __builtin_add_overflow(padded, op.low[i], &padded) ||
        __builtin_add_overflow(padded, op.high[i], &padded);
    if (overflow || padded < 0) {
      fail(Category::invalid_attribute, "Pad C5",
           "the padding at axis " + std::to_string(axis) + " leaves no size between 0 and 2^63");
    }
    shape.push_back(padded);
  }
  return {x[0].dtype, Shape(std::move(shape))};
}

void check_reduction_axes(std::string_view constraint, const Axes& axes, const Type& x) {
  if (!unique_and_in_range(axes, x.rank())) {
    fail(Category::reduction_shape_mismatch, constraint,
         "found axes " + list(axes) + ", expected unique axes of an operand of rank " +
             std::to_string(x.rank()));
  }
}

Type infer_op(const Reduce& op, std::span<const Type> x) {
  check_reduction_axes("Reduce C1", op.axes, x[0]);
  const bool logical = op.kind == Reduction::and_ || op.kind == Reduction::or_;
  const DTypeRule rule = logical ? kLogical : kNumber;
  if (!rule.holds(x[0].dtype)) {
    fail(Category::dtype_mismatch, "Reduce C2",
         "found dtype " + name_of(x[0].dtype) + ", expected " + std::string(rule.expected));
  }
  return {x[0].dtype, without_axes(x[0].shape, op.axes, false)};
}

Type infer_op(const Mean& op, std::span<const Type> x) {
  check_reduction_axes("Mean C1", op.axes, x[0]);
  if (!is_float(x[0].dtype)) {
    fail(Category::dtype_not_differentiable, "Mean C2",
         "found dtype " + name_of(x[0].dtype) + ", expected a float dtype");
  }
  return {x[0].dtype, without_axes(x[0].shape, op.axes, op.keepdims)};
}

Type infer_op(const DotGeneral& op, std::span<const Type> x) {
  const Type& lhs = x[0];
  const Type& rhs = x[1];
  if (op.lhs_batch.size() != op.rhs_batch.size() ||
      op.lhs_contracting.size() != op.rhs_contracting.size()) {
    fail(Category::matmul_shape_mismatch, "DotGeneral C1",
         "found batching dims " + list(op.lhs_batch) + " x " + list(op.rhs_batch) +
             " and contracting dims " + list(op.lhs_contracting) + " x " +
             list(op.rhs_contracting) + ", expected as many on both sides");
  }
  const auto check_side = [&](const Axes& batch, const Axes& contracting, const Type& type) {
    Axes both = batch;
    both.insert(both.end(), contracting.begin(), contracting.end());
    if (!unique_and_in_range(both, type.rank())) {
      fail(Category::matmul_shape_mismatch, "DotGeneral C2",
           "found batching dims " + list(batch) + " and contracting dims " + list(contracting) +
               ", expected unique axes of an operand of rank " + std::to_string(type.rank()));
    }
  };
  check_side(op.lhs_batch, op.lhs_contracting, lhs);
  check_side(op.rhs_batch, op.rhs_contracting, rhs);
  const auto check_sizes = [&](std::string_view constraint, const Axes& left, const Axes& right) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      const Dim& a = lhs.shape[left[i]];
      const Dim& b = rhs.shape[right[i]];
      if (a == b) continue;
      fail(size_category(a, b, Category::matmul_shape_mismatch), constraint,
           "found sizes " + a.to_string() + " and " + b.to_string() + " in " +
               lhs.shape.to_string() + " and " + rhs.shape.to_string() + ", expected equal sizes");
    }
  };
  check_sizes("DotGeneral C3", op.lhs_batch, op.rhs_batch);
  check_sizes("DotGeneral C4", op.lhs_contracting, op.rhs_contracting);
  if (lhs.dtype != rhs.dtype) {
    fail(Category::dtype_mismatch, "DotGeneral C5",
         "found dtypes " + name_of(lhs.dtype) + " and " + name_of(rhs.dtype) +
             ", expected equal dtypes");
  }
  if (!is_number(lhs.dtype) || !is_number(op.dtype) || is_float(lhs.dtype) != is_float(op.dtype)) {
    fail(Category::dtype_mismatch, "DotGeneral C6",
         "found operands of dtype " + name_of(lhs.dtype) + " for a result of dtype " +
             name_of(op.dtype) + ", expected two float or two integer dtypes");
  }
  std::vector<Dim> shape;
  for (const std::int64_t axis : op.lhs_batch) shape.push_back(lhs.shape[axis]);
  for (std::int64_t axis = 0; axis < lhs.rank(); ++axis) {
    if (!contains(op.lhs_batch, axis) && !contains(op.lhs_contracting, axis)) {
      shape.push_back(lhs.shape[axis]);
    }
  }
  for (std::int64_t axis = 0; axis < rhs.rank(); ++axis) {
    if (!contains(op.rhs_batch, axis) && !contains(op.rhs_contracting, axis)) {
      shape.push_back(rhs.shape[axis]);
    }
  }
  return {op.dtype, Shape(std::move(shape))};
}

Type infer_op(const Custom& op, std::span<const Type> x) {
  return op.definition->infer(op.attributes, x);
}

void normalize_axes(Axes& axes, const OperandType& operand) {
  if (is_literal(operand)) return;  // refused by infer
  const std::int64_t rank = std::get<const Type*>(operand)->rank();
  for (std::int64_t& axis : axes) {
    if (axis < 0 && axis >= -rank) axis += rank;
  }
  std::sort(axes.begin(), axes.end());
}

}  // namespace

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  if (a.rank() == 0) return b;
  if (b.rank() == 0) return a;
  if (a.rank() != b.rank()) {
    fail(Category::broadcast_shape_mismatch, "Elementwise E5",
         "found shapes " + a.to_string() + " and " + b.to_string() + ", rank " +
             std::to_string(a.rank()) + " vs " + std::to_string(b.rank()) +
             "; expected equal ranks or a rank-0 operand");
  }
  Shape result = a;
  for (std::int64_t axis = 0; axis < a.rank(); ++axis) {
    if (a[axis] == b[axis] || b[axis] == Dim(1)) continue;
    if (!(a[axis] == Dim(1))) {
      fail(size_category(a[axis], b[axis], Category::broadcast_shape_mismatch), "Elementwise E5",
           "found sizes " + a[axis].to_string() + " and " + b[axis].to_string() + " at axis " +
               std::to_string(axis) + " of " + a.to_string() + " and " + b.to_string() +
               ", expected equal sizes or a size of 1");
    }
    result[axis] = b[axis];
  }
  return result;
}

Op canonicalize(Op op, std::span<const OperandType> operands) {
  if (auto* constant = std::get_if<Constant>(&op)) {
    const Tensor& value = *constant->value;
    const auto width = static_cast<std::size_t>(byte_size(value.dtype()));
    const auto bytes = value.bytes();
    // Splat: every element repeats the one before it.
    if (bytes.empty()) return Fill{Literal::zero(value.dtype()), value.type().shape};
    if (std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(width), bytes.end(),
                   bytes.begin())) {
      return Fill{value.element(0), value.type().shape};
    }
  } else if (auto* reduce = std::get_if<Reduce>(&op); reduce != nullptr && !operands.empty()) {
    normalize_axes(reduce->axes, operands[0]);
  } else if (auto* mean = std::get_if<Mean>(&op); mean != nullptr && !operands.empty()) {
    normalize_axes(mean->axes, operands[0]);
  } else if (auto* fill = std::get_if<Fill>(&op);
             fill != nullptr && std::ranges::count(fill->shape, Dim(0)) > 0) {
    fill->value = Literal::zero(fill->value.dtype);
  }
  return op;
}

Type infer(const Op& op, std::span<const OperandType> operands) {
  const int arity = info(op).arity;
  if (arity != kVariadic && static_cast<std::size_t>(arity) != operands.size()) {
    throw Error(Category::arity_mismatch, "found " + std::to_string(operands.size()) +
                                              " operands, expected " + std::to_string(arity));
  }
  if (is_elementwise(op)) return infer_elementwise(op, operands);
  std::vector<Type> types;
  for (const OperandType& operand : operands) {
    if (is_literal(operand)) {
      throw Error(Category::invalid_literal,
                  "found the literal " + std::get<Literal>(operand).to_string() +
                      ", expected a tensor: only elementwise ops take literals");
    }
    types.push_back(*std::get<const Type*>(operand));
  }
  return std::visit(
      [&]<class T>(const T& attributes) -> Type {
        if constexpr (requires { infer_op(attributes, std::span<const Type>(types)); }) {
          return infer_op(attributes, types);
        } else {
          INTERNAL_CHECK(false);
          return {};
        }
      },
      op);
}

}  // namespace mulgrad
