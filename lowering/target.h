// Target: what a device can do, as a table. A pass asks it what to replace, coverage asks it what
// is left, and a compiled step holds nothing that it refuses.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/program.h"
#include "core/rewrite/pass.h"

namespace mulgrad {

// A set of dtypes.
class DTypeSet {
 public:
  DTypeSet() = default;
  DTypeSet(std::initializer_list<DType> dtypes) {
    for (const DType dtype : dtypes) bits_ |= bit(dtype);
  }
  static DTypeSet all();
  static DTypeSet integers();

  bool contains(DType dtype) const { return (bits_ & bit(dtype)) != 0; }
  DTypeSet operator|(DTypeSet other) const;
  DTypeSet operator&(DTypeSet other) const;
  bool operator==(const DTypeSet&) const = default;
  // "f32, f64".
  std::string to_string() const;

 private:
  static unsigned bit(DType dtype) { return 1U << static_cast<int>(dtype); }
  unsigned bits_ = 0;
};

// Which elementwise operands the kernels take.
enum class OperandForm : std::uint8_t {
  plain,  // the shape of the result, rank 0, or a literal
  any     // also a size of 1 against another size
};

// Which products the device has.
enum class ProductForm : std::uint8_t {
  plain,    // rank 2 by rank 2, contracting [1] x [0], the result of the operands' dtype
  batched,  // b >= 0 batching dims lead both: rank b+2 by b+2, contracting [b+1] x [b], the same
  any
};

// What the device takes of one op kind.
struct OpSupport {
  DTypeSet operands = DTypeSet::all();  // of the value operands; of a select, its branches
  DTypeSet results = DTypeSet::all();
  DTypeSet from_inputs;  // further operand dtypes, where the operand is an input of the program
  OperandForm operand_form = OperandForm::any;  // elementwise ops only
  ProductForm product_form = ProductForm::any;  // dot_general only

  bool operator==(const OpSupport&) const = default;
};

// The row of the op as all matmul targets have it: f32 and f64, i1 where matmul_only lets it live,
// operands and products plain.
OpSupport matmul_support(OpKind kind);

class Target {
 public:
  // Fill, constant, plain products in f32 and f64, elementwise ops, reshape and transpose. i1 lives
  // only between compare, is_finite, and, or, not and the predicate of select or convert; integers
  // only from an input into convert.
  static Target matmul_only();
  // The same with slice, concatenate and pad.
  static Target matmul_move();
  // matmul_only with leading batching dims in its product.
  static Target matmul_batched();
  // Every op and dtype, in any form; no custom ops.
  static Target cpu();
  // Exactly the given kinds, in any form.
  static Target of_ops(std::string name, std::span<const OpKind> kinds);
  // A device described by a JSON object:
  //   {
  //     "name": "my_npu",              required
  //     "base": "matmul_only",         a built-in target, whose rows come first; without it none
  //     "interface": ["f32", "i32"],   dtypes of inputs and outputs of programs; else as the base,
  //                                    or all
  //     "without": ["exponential"],    rows that go, by the names of ops without dialect
  //     "ops": {                       rows that come, or change where there is one
  //       "dot_general": {"product": "batched"},
  //       "convert": {"dtypes": ["f32", "i1"], "results": ["f32"], "from_inputs": ["i32"]},
  //       "add": {"operands": "any"}
  //     },
  //     "dtypes": ["f32", "i32", "i1"]  what the device knows at all: every list above and of the
  //                                     base is cut to it, and rows that are left without go
  //   }
  // The keys of a row are the fields of OpSupport: dtypes (of operands), results, from_inputs,
  // operands (plain or any) and product (plain, batched or any). What a row does not say is as in
  // the base, or as matmul_support() has it. Throws Error located as "file:line:col": parse_error
  // for malformed JSON, a key that comes twice, nesting beyond the format and a value of another
  // kind; invalid_target for a missing name and for keys, bases, ops and dtypes that do not exist
  // or do not fit.
  static Target from_json(std::string_view text, std::string_view file = "<json>");
  // The same of a file; io_error where it cannot be read.
  static Target from_json_file(const std::string& path);
  // What from_json reads back as an equal target, but for custom ops, which JSON cannot say.
  std::string to_json() const;
  // What a HandlerRegistry has handlers for, in any form.
  template <class Registry>
  static Target of(const Registry& registry) {
    return of_ops("registry", registry.ops());
  }

  bool operator==(const Target&) const = default;
  const std::string& name() const { return name_; }
  bool has(OpKind kind) const { return ops_.count(kind) != 0; }
  // Slice, and concatenate to put the parts together again.
  bool has_slices() const { return has(OpKind::Slice) && has(OpKind::Concatenate); }

  // How the target's kernel of an elementwise op reads its operands; `plain` for an op it lacks.
  OperandForm operand_form(OpKind kind) const;
  // Which products it has; `plain` where it has none.
  ProductForm product_form() const;

  // Why the target refuses the node: one line, what was found and what is expected. Nothing where
  // the target takes it. Symbolic sizes are compared as they stand.
  std::optional<std::string> refusal(const Program& program, std::int64_t node) const;
  // Why the target refuses a value of this dtype as input or output of a program.
  std::optional<std::string> interface_refusal(DType dtype) const;

 private:
  Target(std::string name, DTypeSet interface_dtypes)
      : name_(std::move(name)), interface_(interface_dtypes) {}

  std::string name_;
  DTypeSet interface_;               // of the inputs and outputs of a program
  std::map<OpKind, OpSupport> ops_;  // absent: the target does not have the op
};

// The targets that come with the library: matmul_only, matmul_move, matmul_batched and cpu.
std::vector<Target> built_in_targets();

// Holds where every node that an output or capture depends on is taken by the target, and every
// input and output has a dtype that crosses its interface.
Property only_target_ops(Target target);

}  // namespace mulgrad
