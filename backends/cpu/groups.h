// Which nodes of a program run together in one fused loop.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cpu/fused.h"
#include "core/lists.h"
#include "core/program.h"

namespace mulgrad::cpu {

// How an operand lies in the space of the node that reads it.
enum class EdgeKind : std::uint8_t { literal, same, row, column, scalar };
struct Edge {
  EdgeKind kind = EdgeKind::literal;
  ValueId value = ValueId::node(0);  // behind any reshapes
};

// The space of a node: `elements` in all; `columns` in a row, 0 where the node leaves it open.
struct Space {
  std::int64_t elements = 0;
  std::int64_t columns = 0;
};

// How a value of shape `from` repeats in a result of shape `to`: as `broadcast` says, or, without
// one, as operands of elementwise ops do. Restricts the columns of `space` to what this asks for;
// none where they are others or the value repeats in another way.
std::optional<EdgeKind> repetition(const Shape& from, const BroadcastInDim* broadcast,
                                   const Shape& to, Space& space);

struct GroupMember {
  std::int64_t node;
  Extent from;        // of the operands that are EdgeKind::same
  Extent extent;      // of the result
  bool ends = false;  // complete behind the loop only
};

struct Group {
  Space space;
  std::vector<GroupMember> members;  // in program order
};

// What the grouping is to know of a node.
struct NodeRole {
  bool excluded = false;    // runs elsewhere
  bool before = false;      // the loss waits for it
  bool committed = false;   // is written over a parameter or state
  bool may_follow = false;  // may run behind the loop of the sum that it reads
  bool alone = false;       // is in a group of its own
};

struct Grouping {
  std::vector<Group> groups;
  std::vector<std::int32_t> group_of;  // per node; -1 for none
  Lists<Edge> edges_of;                // per node, of those in a group per operand
};

// The value behind any reshapes.
ValueId behind_reshapes(const Program& program, ValueId value);

// The extent that an edge asks for, of a member.
Extent required_extent(const GroupMember& member, EdgeKind kind);

// No group holds both a node of `before` and a committed one. Linear in the nodes, for which it
// does not search all paths: groups may wait for each other in a circle, though they hardly ever
// do. Then the caller is to ask again, with the nodes of such groups alone.
Grouping group_nodes(const Program& program, const std::vector<NodeRole>& roles);

}  // namespace mulgrad::cpu
