// The backend's compiler half: a handler per op of the target `matmul_only` that writes C99.
//
// Every node becomes one static array and one loop (nest) that computes it literally: a product is
// three loops, an elementwise op one. Nothing is fused, reordered or approximated, so the file can
// be read next to the printed program.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowering/registry.h"
#include "lowering/walk.h"

namespace mulgrad::examples {

// Whose memory an array is.
enum class Owner : std::uint8_t { caller, function };

// What a value is to this backend: the name of a C array that holds its elements row-major. The
// library never looks inside, and never copies it: V may be move-only, as this one is.
class CValue {
 public:
  CValue(std::string array, Owner owner) : array_(std::move(array)), owner_(owner) {}
  CValue(CValue&&) = default;
  CValue& operator=(CValue&&) = default;

  const std::string& array() const { return array_; }
  Owner owner() const { return owner_; }

 private:
  std::string array_;
  Owner owner_;
};

std::string_view c_type(DType dtype);
// `name` with everything that C does not take in a name replaced.
std::string c_name(std::string_view name);
// "const float in[12]": how an array of the type is declared.
std::string c_array(const Type& type, std::string_view name);

// What stands at the head of every file: includes, and the few functions that C's library lacks.
std::string c_prelude();
// "void <function>_run(void* const* a)": calls the function with `count` arguments from an array,
// so that a host can call any of them through one signature.
std::string c_entry(const std::string& function, std::size_t count);

// Collects C functions, one per artifact that is lowered with handlers() and inputs(). All names
// carry the prefix, so that several units share a file. Must outlive what it hands out.
class CUnit {
 public:
  explicit CUnit(std::string prefix) : prefix_(std::move(prefix)) {}
  CUnit(const CUnit&) = delete;
  CUnit& operator=(const CUnit&) = delete;

  // Handlers of exactly the ops of Target::matmul_only(). Each appends to the artifact's function.
  HandlerRegistry<CValue> handlers();
  // An input is a parameter of the artifact's function.
  InputHandler<CValue> inputs();

  // The C function of an artifact: "<prefix>_<artifact>".
  std::string function(const Artifact& artifact) const;
  // Ends the artifact's function, static and void: it takes a pointer per input, then one per
  // output (captures too), all in the order of the program, and copies the results out last, so
  // that an output may lie where an input lies. Returns its text, after the constants that it
  // reads.
  std::string finish(const Artifact& artifact, const Lowered<CValue>& lowered);

 private:
  using Operands = std::span<const HandlerOperand<CValue>>;
  struct Body {
    std::string constants;
    std::string statements;
    int arrays = 0;
  };

  Body& body(const Artifact& artifact) { return bodies_[artifact.name]; }
  // Declares the array of a node's result and says in a comment which node it is.
  CValue declare(const HandlerContext& context);
  // One loop over all elements; the formula is that of a row of the table in the source.
  CValue elementwise(const HandlerContext& context, Operands operands, std::string_view formula);
  CValue constant(const HandlerContext& context);
  CValue product(const HandlerContext& context, Operands operands);
  CValue transpose(const HandlerContext& context, Operands operands);

  std::string prefix_;
  std::map<std::string, Body> bodies_;  // by artifact name
};

}  // namespace mulgrad::examples
