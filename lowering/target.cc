#include "lowering/target.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/custom.h"

namespace mulgrad {
namespace {

const DTypeSet kReal{DType::f32, DType::f64};
const DTypeSet kLogical{DType::i1};

// Everything that the op could have.
OpSupport full_support(OpKind kind) {
  OpSupport support;
  const OpInfo& op = info(kind);
  if (op.arity == 0) support.operands = {};
  if (op.op_class != OpClass::elementwise) support.operand_form = OperandForm::plain;
  if (kind != OpKind::DotGeneral) support.product_form = ProductForm::plain;
  return support;
}

std::string quote(DType dtype) { return std::string(to_string(dtype)); }

bool is_plain_operand(const Shape& operand, const Shape& result) {
  return operand.rank() == 0 || operand == result;
}

std::string list(const Axes& axes) {
  std::string text = "[";
  for (std::size_t i = 0; i < axes.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(axes[i]);
  }
  return text + "]";
}

// `form` is one that is not `any`.
std::optional<std::string> product_refusal(const Program& program, const Node& node,
                                           ProductForm form) {
  const auto& product = std::get<DotGeneral>(node.op);
  const Type& lhs = program.type(node.operands[0].value());
  const Type& rhs = program.type(node.operands[1].value());
  const auto batch = std::ssize(product.lhs_batch);
  Axes leading(product.lhs_batch.size());
  std::iota(leading.begin(), leading.end(), 0);
  const bool batches_fit = form == ProductForm::plain
                               ? batch == 0
                               : product.lhs_batch == leading && product.rhs_batch == leading;
  if (!batches_fit) {
    const bool takes_none = form == ProductForm::plain;
    return "found batching dims " + list(product.lhs_batch) + " x " + list(product.rhs_batch) +
           ", expected " + (takes_none ? "none" : list(leading) + " x " + list(leading));
  }
  if (lhs.rank() != batch + 2 || rhs.rank() != batch + 2) {
    const std::string expected = std::to_string(batch + 2);
    return "found a product of ranks " + std::to_string(lhs.rank()) + " and " +
           std::to_string(rhs.rank()) + ", expected " + expected + " and " + expected;
  }
  if (product.lhs_contracting != Axes{batch + 1} || product.rhs_contracting != Axes{batch}) {
    return "found contracting dims " + list(product.lhs_contracting) + " x " +
           list(product.rhs_contracting) + ", expected " + list({batch + 1}) + " x " +
           list({batch});
  }
  if (product.dtype != lhs.dtype) {
    return "found a product of " + quote(lhs.dtype) + " with a result of " + quote(product.dtype) +
           ", expected equal dtypes";
  }
  return std::nullopt;
}

}  // namespace

OpSupport matmul_support(OpKind kind) {
  OpSupport support{kReal, kReal, {}, OperandForm::plain, ProductForm::plain};
  if (info(kind).arity == 0) support.operands = {};
  switch (kind) {
    case OpKind::Compare:
    case OpKind::IsFinite:
      support.results = kLogical;
      break;
    case OpKind::And:
    case OpKind::Or:
    case OpKind::Not:
      support.operands = support.results = kLogical;
      break;
    case OpKind::Convert:
      support.operands = kReal | kLogical;
      support.from_inputs = DTypeSet::integers();
      break;
    default:
      break;
  }
  return support;
}

DTypeSet DTypeSet::all() {
  DTypeSet result;
#define X(name, storage) result.bits_ |= bit(DType::name);
  MULGRAD_DTYPES(X)
#undef X
  return result;
}

DTypeSet DTypeSet::integers() {
  return {DType::i8, DType::i16, DType::i32, DType::i64,
          DType::u8, DType::u16, DType::u32, DType::u64};
}

DTypeSet DTypeSet::operator|(DTypeSet other) const {
  other.bits_ |= bits_;
  return other;
}

DTypeSet DTypeSet::operator&(DTypeSet other) const {
  other.bits_ &= bits_;
  return other;
}

std::string DTypeSet::to_string() const {
  std::string text;
#define X(name, storage) \
  if (contains(DType::name)) text += (text.empty() ? "" : ", ") + std::string(#name);
  MULGRAD_DTYPES(X)
#undef X
  return text.empty() ? "none" : text;
}

Target Target::matmul_only() {
  Target target("matmul_only", kReal | DTypeSet::integers());
  for (const OpInfo& op : all_ops()) {
    const bool has = op.op_class == OpClass::elementwise || op.kind == OpKind::Fill ||
                     op.kind == OpKind::Constant || op.kind == OpKind::Reshape ||
                     op.kind == OpKind::Transpose || op.kind == OpKind::DotGeneral;
    if (has && op.kind != OpKind::StopGradient) target.ops_[op.kind] = matmul_support(op.kind);
  }
  return target;
}

Target Target::matmul_move() {
  Target target = matmul_only();
  target.name_ = "matmul_move";
  for (const OpKind kind : {OpKind::Slice, OpKind::Concatenate, OpKind::Pad}) {
    target.ops_[kind] = matmul_support(kind);
  }
  return target;
}

Target Target::matmul_batched() {
  Target target = matmul_only();
  target.name_ = "matmul_batched";
  target.ops_.at(OpKind::DotGeneral).product_form = ProductForm::batched;
  return target;
}

Target Target::cpu() {
  Target target("cpu", DTypeSet::all());
  for (const OpInfo& op : all_ops()) {
    if (op.kind != OpKind::Custom) target.ops_[op.kind] = full_support(op.kind);
  }
  return target;
}

Target Target::of_ops(std::string name, std::span<const OpKind> kinds) {
  Target target(std::move(name), DTypeSet::all());
  for (const OpKind kind : kinds) target.ops_[kind] = full_support(kind);
  return target;
}

OperandForm Target::operand_form(OpKind kind) const {
  const auto row = ops_.find(kind);
  return row == ops_.end() ? OperandForm::plain : row->second.operand_form;
}

ProductForm Target::product_form() const {
  const auto row = ops_.find(OpKind::DotGeneral);
  return row == ops_.end() ? ProductForm::plain : row->second.product_form;
}

std::optional<std::string> Target::refusal(const Program& program, std::int64_t node) const {
  const ValueId id = ValueId::node(node);
  const Node& found = program.node(id);
  const auto row = ops_.find(kind_of(found.op));
  if (row == ops_.end()) return "the target " + name_ + " does not have this op";
  const OpSupport& support = row->second;
  const bool is_select = std::holds_alternative<Select>(found.op);
  for (std::size_t i = 0; i < found.operands.size(); ++i) {
    const Operand& operand = found.operands[i];
    if (operand.is_literal()) continue;
    const Type& type = program.type(operand.value());
    const bool is_input = operand.value().is_input();
    if (is_input) {
      if (const auto reason = interface_refusal(type.dtype)) return reason;
    }
    const bool is_predicate = is_select && i == 0;
    const bool takes = is_predicate || support.operands.contains(type.dtype) ||
                       (is_input && support.from_inputs.contains(type.dtype));
    if (!takes) {
      return "found an operand of dtype " + quote(type.dtype) + ", expected one of " +
             support.operands.to_string();
    }
    if (support.operand_form == OperandForm::plain && is_elementwise(found.op) &&
        !is_plain_operand(type.shape, found.type.shape)) {
      return "found an operand of shape " + type.shape.to_string() + " for the result shape " +
             found.type.shape.to_string() + ", expected equal shapes, rank 0 or a literal";
    }
  }
  if (!support.results.contains(found.type.dtype)) {
    return "found a result of dtype " + quote(found.type.dtype) + ", expected one of " +
           support.results.to_string();
  }
  if (const auto reason = interface_refusal(found.type.dtype)) {
    for (const Output& output : program.outputs()) {
      if (output.value == id) return reason;
    }
  }
  if (std::holds_alternative<DotGeneral>(found.op) && support.product_form != ProductForm::any) {
    return product_refusal(program, found, support.product_form);
  }
  return std::nullopt;
}

std::optional<std::string> Target::interface_refusal(DType dtype) const {
  if (interface_.contains(dtype)) return std::nullopt;
  return "found an input or output of the program of dtype " + quote(dtype) + ", expected one of " +
         interface_.to_string();
}

std::vector<Target> built_in_targets() {
  return {Target::matmul_only(), Target::matmul_move(), Target::matmul_batched(), Target::cpu()};
}

Property only_target_ops(Target target) {
  std::string name = "only_target_ops(" + target.name() + ")";
  return {std::move(name),
          [target = std::move(target)](const Program& program) -> std::optional<std::string> {
            for (const Output& output : program.outputs()) {
              if (!output.value.is_input()) continue;
              if (const auto reason = target.interface_refusal(program.type(output.value).dtype)) {
                return program.describe(output.value) + ": " + *reason;
              }
            }
            const std::vector<bool> reached = reachable_nodes(program);
            for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
              if (!reached[static_cast<std::size_t>(i)]) continue;
              if (const auto reason = target.refusal(program, i)) {
                return program.describe(ValueId::node(i)) + ": " + *reason;
              }
            }
            return std::nullopt;
          }};
}

}  // namespace mulgrad
