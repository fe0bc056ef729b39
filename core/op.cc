#include "core/op.h"

#include <array>

#include "core/custom.h"

namespace mulgrad {
namespace {

constexpr std::array kOps = {
#define X(Struct, text, arity, op_class) \
  OpInfo{OpKind::Struct, #Struct, text, arity, OpClass::op_class},
#include "core/op_list.def"
#undef X
};

static_assert(kOps.size() == std::variant_size_v<OpBase>);

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) { return hash_mix(hash, value); }
std::uint64_t mix(std::uint64_t hash, std::int64_t value) {
  return hash_mix(hash, static_cast<std::uint64_t>(value));
}
std::uint64_t mix(std::uint64_t hash, bool value) { return hash_mix(hash, value ? 1 : 0); }
template <class E>
requires std::is_enum_v<E> std::uint64_t mix(std::uint64_t hash, E value) {
  return hash_mix(hash, static_cast<std::uint64_t>(value));
}
std::uint64_t mix(std::uint64_t hash, const std::string& text) {
  return hash_bytes(hash, std::as_bytes(std::span(text)));
}
std::uint64_t mix(std::uint64_t hash, const Literal& literal) {
  return mix(mix(hash, literal.dtype), literal.bits);
}
std::uint64_t mix(std::uint64_t hash, const Dim& dim) {
  hash = mix(hash, dim.coefficient());
  for (const std::string& symbol : dim.symbols()) hash = mix(hash, symbol);
  return hash;
}
template <class T>
std::uint64_t mix(std::uint64_t hash, const std::vector<T>& list) {
  hash = mix(hash, static_cast<std::uint64_t>(list.size()));
  for (const T& item : list) hash = mix(hash, item);
  return hash;
}
std::uint64_t mix(std::uint64_t hash, const Shape& shape) {
  hash = mix(hash, shape.rank());
  for (const Dim& dim : shape) hash = mix(hash, dim);
  return hash;
}
std::uint64_t mix(std::uint64_t hash, const Tensor& tensor) {
  return hash_bytes(hash_type(hash, tensor.type()), tensor.bytes());
}

}  // namespace

Op::Op(const Op&) = default;
Op::Op(Op&&) noexcept = default;
Op& Op::operator=(const Op&) = default;
Op& Op::operator=(Op&&) noexcept = default;
Op::~Op() = default;

bool Op::operator==(const Op& other) const {
  return static_cast<const OpBase&>(*this) == static_cast<const OpBase&>(other);
}

std::string_view to_string(Comparison comparison) {
  constexpr std::string_view kNames[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  return kNames[static_cast<int>(comparison)];
}

std::string_view comparison_type(DType dtype) {
  if (is_float(dtype)) return "FLOAT";
  return is_unsigned(dtype) || dtype == DType::i1 ? "UNSIGNED" : "SIGNED";
}

std::string_view to_string(Reduction reduction) {
  constexpr std::string_view kNames[] = {"stablehlo.add",     "stablehlo.maximum",
                                         "stablehlo.minimum", "stablehlo.multiply",
                                         "stablehlo.and",     "stablehlo.or"};
  return kNames[static_cast<int>(reduction)];
}

const std::string& Custom::name() const { return definition->name(); }

std::span<const OpInfo> all_ops() { return kOps; }
const OpInfo& info(OpKind kind) { return kOps[static_cast<std::size_t>(kind)]; }
OpKind kind_of(const Op& op) { return static_cast<OpKind>(op.index()); }

std::uint64_t hash_op(const Op& op) {
  return std::visit(
      [&](const auto& attributes) {
        return std::apply(
            [&](const auto&... field) {
              // The name, not the index: a longer op list keeps the hashes.
              std::uint64_t hash = hash_bytes(0, std::as_bytes(std::span(info(op).name)));
              ((hash = mix(hash, field)), ...);
              return hash;
            },
            attributes.fields());
      },
      op);
}

Op bind(const Op& op, const Bindings& bindings) {
  Op result = op;
  std::visit(
      [&]<class T>(T& attributes) {
        if constexpr (requires { attributes.shape; }) {
          attributes.shape = attributes.shape.bind(bindings);
        } else if constexpr (std::is_same_v<T, Slice>) {
          for (Dim& limit : attributes.limit) limit = limit.bind(bindings);
        }
      },
      result);
  return result;
}

std::uint64_t hash_mix(std::uint64_t hash, std::uint64_t value) {
  // The 64-bit finaliser of MurmurHash3 (A. Appleby, public domain) over the combined words.
  std::uint64_t x = hash * 0x9E3779B97F4A7C15u + value + 0x632BE59BD9B4E019u;
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDu;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53u;
  x ^= x >> 33;
  return x;
}

std::uint64_t hash_bytes(std::uint64_t hash, std::span<const std::byte> bytes) {
  hash = hash_mix(hash, bytes.size());
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    word |= static_cast<std::uint64_t>(bytes[i]) << (8 * (i % 8));
    if (i % 8 == 7 || i + 1 == bytes.size()) {
      hash = hash_mix(hash, word);
      word = 0;
    }
  }
  return hash;
}

std::uint64_t hash_type(std::uint64_t hash, const Type& type) {
  return mix(mix(hash, type.dtype), type.shape);
}

}  // namespace mulgrad
