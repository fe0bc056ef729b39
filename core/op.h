// The ops: one small attribute struct each, gathered in the closed variant Op.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "core/literal.h"
#include "core/tensor.h"
#include "core/type.h"

namespace mulgrad {

using Axes = std::vector<std::int64_t>;

// A struct lists its attributes once, in fields(); equality, hashing and binding walk them.
#define MULGRAD_FIELDS(Struct, ...)                     \
  auto fields() const { return std::tie(__VA_ARGS__); } \
  bool operator==(const Struct& other) const { return fields() == other.fields(); }

#define MULGRAD_PLAIN_OP(Struct) \
  struct Struct {                \
    MULGRAD_FIELDS(Struct)       \
  };

// A tensor of `shape` whose elements all are `value`.
struct Fill {
  Literal value;
  Shape shape;
  MULGRAD_FIELDS(Fill, value, shape)
};

// Any other tensor constant; the builder turns a splat into a Fill. Never null.
struct Constant {
  std::shared_ptr<const Tensor> value;
  auto fields() const { return std::tie(*value); }
  bool operator==(const Constant& other) const { return *value == *other.value; }
};

// Element [i0, i1, ...] is i_dimension.
struct Iota {
  DType dtype = DType::f32;
  Shape shape;
  std::int64_t dimension = 0;
  MULGRAD_FIELDS(Iota, dtype, shape, dimension)
};

MULGRAD_PLAIN_OP(Negate)
MULGRAD_PLAIN_OP(Abs)
MULGRAD_PLAIN_OP(Sign)
MULGRAD_PLAIN_OP(Exponential)
MULGRAD_PLAIN_OP(ExponentialMinusOne)
MULGRAD_PLAIN_OP(Log)
MULGRAD_PLAIN_OP(LogPlusOne)
MULGRAD_PLAIN_OP(Sqrt)
MULGRAD_PLAIN_OP(Rsqrt)
MULGRAD_PLAIN_OP(Tanh)
MULGRAD_PLAIN_OP(Logistic)
MULGRAD_PLAIN_OP(Sine)
MULGRAD_PLAIN_OP(Cosine)
MULGRAD_PLAIN_OP(Floor)
MULGRAD_PLAIN_OP(Ceil)
MULGRAD_PLAIN_OP(RoundNearestEven)
MULGRAD_PLAIN_OP(Not)
MULGRAD_PLAIN_OP(IsFinite)
MULGRAD_PLAIN_OP(Erf)
MULGRAD_PLAIN_OP(StopGradient)

struct Convert {
  DType dtype = DType::f32;
  MULGRAD_FIELDS(Convert, dtype)
};

MULGRAD_PLAIN_OP(Add)
MULGRAD_PLAIN_OP(Subtract)
MULGRAD_PLAIN_OP(Multiply)
MULGRAD_PLAIN_OP(Divide)
MULGRAD_PLAIN_OP(Maximum)
MULGRAD_PLAIN_OP(Minimum)
MULGRAD_PLAIN_OP(Power)
MULGRAD_PLAIN_OP(And)
MULGRAD_PLAIN_OP(Or)

enum class Comparison : std::uint8_t { EQ, NE, LT, LE, GT, GE };
std::string_view to_string(Comparison comparison);
// How StableHLO says that operands of `dtype` are compared: "FLOAT", "SIGNED" or "UNSIGNED".
std::string_view comparison_type(DType dtype);

struct Compare {
  Comparison direction = Comparison::EQ;
  MULGRAD_FIELDS(Compare, direction)
};

MULGRAD_PLAIN_OP(Select)  // (predicate, on true, on false)
MULGRAD_PLAIN_OP(Clamp)   // (low, value, high)

// Operand axis i becomes result axis dims[i]; an operand size of 1 expands.
struct BroadcastInDim {
  Shape shape;
  Axes dims;
  MULGRAD_FIELDS(BroadcastInDim, shape, dims)
};

struct Reshape {
  Shape shape;
  MULGRAD_FIELDS(Reshape, shape)
};

// Result axis i is operand axis permutation[i].
struct Transpose {
  Axes permutation;
  MULGRAD_FIELDS(Transpose, permutation)
};

// Per axis: the elements start, start + stride, ... below limit.
struct Slice {
  std::vector<std::int64_t> start;
  std::vector<Dim> limit;
  std::vector<std::int64_t> stride;
  MULGRAD_FIELDS(Slice, start, limit, stride)
};

struct Concatenate {
  std::int64_t dimension = 0;
  MULGRAD_FIELDS(Concatenate, dimension)
};

// (operand, rank-0 padding value). low and high may be negative (they crop); interior >= 0.
struct Pad {
  std::vector<std::int64_t> low;
  std::vector<std::int64_t> high;
  std::vector<std::int64_t> interior;
  MULGRAD_FIELDS(Pad, low, high, interior)
};

enum class Reduction : std::uint8_t { sum, max, min, product, and_, or_ };
// The StableHLO op that a reduction applies: "stablehlo.add" and so on.
std::string_view to_string(Reduction reduction);

// Axes are ascending and dropped from the result. The initial value is the reduction's identity.
struct Reduce {
  Reduction kind = Reduction::sum;
  Axes axes;
  MULGRAD_FIELDS(Reduce, kind, axes)
};

// divide(reduce sum, count rounded to the dtype); float dtypes only. Axes are ascending.
struct Mean {
  Axes axes;
  bool keepdims = false;
  MULGRAD_FIELDS(Mean, axes, keepdims)
};

// Result axes: batch, then free axes of the left side, then free axes of the right side.
struct DotGeneral {
  Axes lhs_batch;
  Axes rhs_batch;
  Axes lhs_contracting;
  Axes rhs_contracting;
  DType dtype = DType::f32;  // of the result
  MULGRAD_FIELDS(DotGeneral, lhs_batch, rhs_batch, lhs_contracting, rhs_contracting, dtype)
};

class CustomDefinition;  // core/custom.h

// The one open alternative, for third parties. Compared by name and attributes.
struct Custom {
  std::shared_ptr<const CustomDefinition> definition;  // never null
  std::string attributes;                              // free text, handed to the definition

  const std::string& name() const;
  auto fields() const { return std::tie(name(), attributes); }
  bool operator==(const Custom& other) const { return fields() == other.fields(); }
};

namespace detail {
template <class, class... Structs>
using OpVariant = std::variant<Structs...>;
}  // namespace detail

using OpBase = detail::OpVariant<void
#define X(Struct, text, arity, op_class) , Struct
#include "core/op_list.def"
#undef X
                                 >;

// A variant over every attribute struct; std::get_if, std::visit and the like work as on any. Its
// copies, moves and destruction are compiled once, in op.cc: they are code for every alternative,
// and every file that holds a Node would make them again.
class Op : public OpBase {
 public:
  using OpBase::OpBase;
  Op(const Op&);
  Op(Op&&) noexcept;
  Op& operator=(const Op&);
  Op& operator=(Op&&) noexcept;
  ~Op();
  bool operator==(const Op& other) const;
};

// One enumerator per op, in the order of the list: OpKind::Add and so on.
enum class OpKind : std::uint8_t {
#define X(Struct, text, arity, op_class) Struct,
#include "core/op_list.def"
#undef X
};

enum class OpClass : std::uint8_t {
  creation,
  elementwise,
  broadcast,
  movement,
  reduction,
  product,
  custom
};

inline constexpr int kVariadic = -1;

// A line of the op list, as data.
struct OpInfo {
  OpKind kind;
  std::string_view name;       // of the struct: "Add"
  std::string_view text_name;  // "stablehlo.add"
  int arity;                   // kVariadic where any number of operands is taken
  OpClass op_class;
};

std::span<const OpInfo> all_ops();  // in the order of the list
const OpInfo& info(OpKind kind);
OpKind kind_of(const Op& op);
inline const OpInfo& info(const Op& op) { return info(kind_of(op)); }
inline bool is_elementwise(const Op& op) { return info(op).op_class == OpClass::elementwise; }

// Stable across processes; sees every attribute.
std::uint64_t hash_op(const Op& op);

// Replaces symbols in the attributes.
Op bind(const Op& op, const Bindings& bindings);

// Mixes a value into a running hash; the building block of the stable hashes.
std::uint64_t hash_mix(std::uint64_t hash, std::uint64_t value);
std::uint64_t hash_bytes(std::uint64_t hash, std::span<const std::byte> bytes);
std::uint64_t hash_type(std::uint64_t hash, const Type& type);

}  // namespace mulgrad
