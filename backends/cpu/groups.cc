#include "backends/cpu/groups.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace mulgrad::cpu {
namespace {

constexpr std::size_t kMaxMembers = 64;
// How many units a search for a path between groups visits before it takes one for given.
constexpr int kMaxVisits = 64;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

bool varies_by_row(Extent extent) { return extent == Extent::full || extent == Extent::column; }
bool varies_by_column(Extent extent) { return extent == Extent::full || extent == Extent::row; }

// The same elements, in a space in which one of the two axes may have size 1.
bool matches(Extent a, Extent b, const Space& space) {
  if (a == b || space.elements == 1) return true;
  if (space.columns == 0) return false;
  const bool rows = space.elements == space.columns || varies_by_row(a) == varies_by_row(b);
  return rows && (space.columns == 1 || varies_by_column(a) == varies_by_column(b));
}

// Sets the columns of a space; false where it has others.
bool restrict_columns(Space& space, std::int64_t columns) {
  if (space.columns != 0 && space.columns != columns) return false;
  space.columns = columns;
  return true;
}

std::optional<Space> unify(const Space& a, const Space& b) {
  Space space = a;
  if (a.elements != b.elements) return std::nullopt;
  if (b.columns != 0 && !restrict_columns(space, b.columns)) return std::nullopt;
  return space;
}

class Grouper {
 public:
  Grouper(const Program& program, const std::vector<NodeRole>& roles)
      : program_(program), roles_(roles) {
    result_.group_of.assign(program.nodes().size(), -1);
    result_.edges_of.reserve(program.nodes().size());
  }

  Grouping run() {
    for (std::int64_t i = 0; i < std::ssize(program_.nodes()); ++i) {
      result_.edges_of.start();
      if (!roles_[at(i)].excluded) place(i);
    }
    merge_readers();
    return finish();
  }

 private:
  // No op of a loop reads more.
  using Edges = ShortList<Edge, 3>;
  // A node on its own: its space, its edges, and where its result lies in the space.
  struct Candidate {
    std::int64_t node;
    Space space;
    Extent extent = Extent::full;
    bool ends = false;  // complete behind the loop only
    Edges edges = {};
  };
  struct Building {
    Space space;
    std::vector<GroupMember> members;
    std::vector<std::int64_t> reads;  // nodes outside that its members read
    std::int64_t first = 0;
    std::int64_t last = 0;
    bool before = false;
    bool committed = false;
    std::int32_t merged_into = -1;
  };

  const Node& node(std::int64_t index) const { return program_.nodes()[at(index)]; }
  std::int32_t group_of(ValueId value) const {
    return value.is_input() ? -1 : find(result_.group_of[at(value.index())]);
  }
  std::int32_t find(std::int32_t group) const {
    while (group >= 0 && groups_[at(group)].merged_into >= 0) {
      group = groups_[at(group)].merged_into;
    }
    return group;
  }

  std::optional<Candidate> candidate(std::int64_t index) const {
    const Node& n = node(index);
    const auto* reduce = std::get_if<Reduce>(&n.op);
    const auto* broadcast = std::get_if<BroadcastInDim>(&n.op);
    if (reduce == nullptr && broadcast == nullptr && !is_elementwise(n.op)) return std::nullopt;
    const std::int64_t elements = n.type.shape.elements().size();
    if (elements == 0) return std::nullopt;
    Candidate result{index, {elements}};
    ShortList<DType, 3> dtypes;
    for (const Operand& operand : n.operands) {
      dtypes.push_back(operand.is_literal() ? operand.literal().dtype
                                            : program_.type(operand.value()).dtype);
    }
    if (reduce != nullptr) {
      if (!can_fuse(n.op, dtypes, n.type.dtype) || !reduction(*reduce, n, result)) {
        return std::nullopt;
      }
      return result;
    }
    // Where a repeated value is stored, the identity does it.
    if (!can_fuse(broadcast != nullptr ? Op(StopGradient{}) : n.op, dtypes, n.type.dtype)) {
      return std::nullopt;
    }
    for (const Operand& operand : n.operands) {
      if (operand.is_literal()) {
        result.edges.push_back({});
        continue;
      }
      const Shape& shape = program_.type(operand.value()).shape;
      const auto kind = repetition(shape, broadcast, n.type.shape, result.space);
      if (!kind) return std::nullopt;
      result.edges.push_back({*kind, behind_reshapes(program_, operand.value())});
    }
    return result;
  }

  bool reduction(const Reduce& op, const Node& n, Candidate& result) const {
    const Shape& shape = program_.type(n.operands[0].value()).shape;
    const Dim elements = shape.elements();
    if (elements == Dim(0) || op.axes.empty()) return false;
    result.space = {elements.size()};
    result.edges.push_back({EdgeKind::same, behind_reshapes(program_, n.operands[0].value())});
    const std::int64_t kept = n.type.shape.elements().size();
    const auto count = static_cast<std::int64_t>(op.axes.size());
    const bool last = op.axes.front() == shape.rank() - count && op.axes.back() == shape.rank() - 1;
    // Whether the axes before or behind those that are reduced have elements to keep.
    bool kept_before = false;
    bool kept_behind = false;
    std::int64_t first_reduced = shape.rank();
    std::int64_t last_reduced = -1;
    for (const std::int64_t axis : op.axes) {
      if (shape[axis] == Dim(1)) continue;
      first_reduced = std::min(first_reduced, axis);
      last_reduced = std::max(last_reduced, axis);
    }
    for (std::int64_t i = 0; i < shape.rank(); ++i) {
      const bool reduced = std::ranges::count(op.axes, i) > 0;
      if (reduced || shape[i] == Dim(1)) continue;
      if (i > first_reduced && i < last_reduced) return false;
      (i < first_reduced ? kept_before : kept_behind) = true;
    }
    if (kept_before && kept_behind) return false;
    if (!kept_behind && count < shape.rank() && (kept_before || last)) {
      result.extent = Extent::column;
      return restrict_columns(result.space, elements.size() / kept) &&
             result.space.columns <= max_fused_columns();
    }
    result.ends = true;
    if (!kept_behind) {
      result.extent = Extent::scalar;
      return true;
    }
    result.extent = Extent::row;
    return restrict_columns(result.space, kept);
  }

  void place(std::int64_t index) {
    auto found = candidate(index);
    if (!found) return;
    ShortList<std::int32_t, 3> groups;
    for (const Edge& edge : found->edges) {
      const std::int32_t group = edge.kind == EdgeKind::literal ? -1 : group_of(edge.value);
      if (group >= 0 && std::ranges::count(groups, group) == 0) groups.push_back(group);
    }
    if (groups.size() > 1) {
      std::ranges::stable_sort(groups, [&](std::int32_t a, std::int32_t b) {
        return groups_[at(a)].members.size() > groups_[at(b)].members.size();
      });
    }
    for (const Edge& edge : found->edges) result_.edges_of.append(edge);
    for (const std::int32_t group : groups) {
      if (!join(*found, group)) continue;
      for (const std::int32_t other : groups) {
        if (other != group) merge(find(group), find(other));
      }
      return;
    }
    start(*found);
  }

  void start(const Candidate& candidate) {
    Building group;
    group.space = candidate.space;
    group.first = candidate.node;
    groups_.push_back(std::move(group));
    add(static_cast<std::int32_t>(groups_.size() - 1), candidate,
        {candidate.node, Extent::full, candidate.extent, candidate.ends});
  }

  void add(std::int32_t group, const Candidate& candidate, const GroupMember& member) {
    Building& to = groups_[at(group)];
    to.members.push_back(member);
    to.last = std::max(to.last, member.node);
    to.first = std::min(to.first, member.node);
    to.before = to.before || roles_[at(member.node)].before;
    to.committed = to.committed || roles_[at(member.node)].committed;
    result_.group_of[at(member.node)] = group;
    for (const Edge& edge : candidate.edges) note_read(to, group, edge);
  }
  void note_read(Building& to, std::int32_t group, const Edge& edge) {
    if (edge.kind == EdgeKind::literal || !edge.value.is_node()) return;
    if (group_of(edge.value) == group) return;
    if (node(edge.value.index()).operands.empty()) return;
    to.reads.push_back(edge.value.index());
  }

  // The node as a member whose operands and result, were they full in its own space, have extent
  // `as` in the group's.
  std::optional<GroupMember> embedded(const Candidate& c, Extent as) const {
    GroupMember member{c.node, as, c.extent, c.ends};
    if (as == Extent::full) return member;
    if (c.space.columns != 0) return std::nullopt;
    if (!std::holds_alternative<Reduce>(node(c.node).op)) {
      member.extent = as;
      return member;
    }
    if (as == Extent::scalar) return std::nullopt;
    member.extent = Extent::scalar;
    member.ends = true;
    return member;
  }

  bool fits(std::span<const Edge> edges, const GroupMember& member, std::int32_t group,
            const Space& space, std::optional<Extent> lifted) const {
    for (const Edge& edge : edges) {
      if (edge.kind == EdgeKind::literal || group_of(edge.value) != group) continue;
      const GroupMember& source = member_of(group, edge.value.index());
      // What is there behind the loop only is read by what follows the loop.
      if (source.ends &&
          (edge.kind != EdgeKind::same || !follows(member) || source.extent != member.extent)) {
        return false;
      }
      Extent extent = source.extent;
      if (lifted && extent == Extent::full) extent = *lifted;
      if (!matches(extent, required_extent(member, edge.kind), space)) return false;
    }
    return true;
  }
  bool follows(const GroupMember& member) const {
    return roles_[at(member.node)].may_follow && is_elementwise(node(member.node).op) &&
           (member.extent == Extent::row || member.extent == Extent::scalar);
  }
  const GroupMember& member_of(std::int32_t group, std::int64_t index) const {
    const auto& members = groups_[at(group)].members;
    return *std::ranges::find(members, index, [](const GroupMember& m) { return m.node; });
  }

  // What the members' full extents become where a group's space is one side of a larger one.
  static std::optional<Extent> side_of(const Space& small, const Space& large) {
    if (small.columns != 0 || small.elements == 1 || large.columns == 0) return std::nullopt;
    if (small.elements == large.elements / large.columns) return Extent::column;
    if (small.elements == large.columns) return Extent::row;
    return std::nullopt;
  }
  static void lift(Building& group, const Space& space, Extent as) {
    for (GroupMember& member : group.members) {
      if (member.from == Extent::full) member.from = as;
      if (member.extent == Extent::full) member.extent = as;
    }
    group.space = space;
  }

  bool is_alone(const Building& group) const {
    return roles_[at(group.members.front().node)].alone;
  }

  bool join(const Candidate& c, std::int32_t group) {
    Building& to = groups_[at(group)];
    const NodeRole& role = roles_[at(c.node)];
    if (to.members.size() >= kMaxMembers || role.alone || is_alone(to)) return false;
    if ((to.before || role.before) && (to.committed || role.committed)) return false;
    for (const Edge& edge : c.edges) {
      if (edge.kind == EdgeKind::literal || !edge.value.is_node()) continue;
      if (group_of(edge.value) != group && reaches(edge.value.index(), group, -1)) return false;
    }
    if (const auto space = unify(to.space, c.space)) {
      if (within_row(to, c, *space)) {
        const auto member = embedded(c, Extent::full);
        if (member && fits(c.edges, *member, group, *space, std::nullopt)) {
          to.space = *space;
          add(group, c, *member);
          return true;
        }
      }
    }
    if (to.space.columns != 0) {
      const std::int64_t rows = to.space.elements / to.space.columns;
      for (const Extent as : {Extent::column, Extent::row}) {
        if (c.space.elements != (as == Extent::column ? rows : to.space.columns)) continue;
        // A single number belongs here only as the number of a row.
        if (c.space.elements == 1 && as == Extent::row) continue;
        if (add_if_fitting(c, group, as)) return true;
      }
    }
    if (c.space.elements == 1 && role.may_follow && to.space.elements > 1 &&
        add_if_fitting(c, group, Extent::scalar)) {
      return true;
    }
    if (const auto side = side_of(to.space, c.space)) {
      const auto member = embedded(c, Extent::full);
      if (member && fits(c.edges, *member, group, c.space, side)) {
        lift(to, c.space, *side);
        add(group, c, *member);
        return true;
      }
    }
    return false;
  }

  bool add_if_fitting(const Candidate& c, std::int32_t group, Extent as) {
    auto member = embedded(c, as);
    if (!member || !fits(c.edges, *member, group, groups_[at(group)].space, std::nullopt)) {
      return false;
    }
    // What reads something behind the loop is behind the loop.
    for (const Edge& edge : c.edges) {
      if (edge.kind == EdgeKind::literal || group_of(edge.value) != group) continue;
      member->ends = member->ends || member_of(group, edge.value.index()).ends;
    }
    add(group, c, *member);
    return true;
  }

  // A row of a loop that reduces its columns must fit.
  bool within_row(const Building& group, const Candidate& c, const Space& space) const {
    if (space.columns <= max_fused_columns()) return true;
    const auto reduces = [](Extent extent) { return extent == Extent::column; };
    return !reduces(c.extent) && std::ranges::none_of(group.members, [&](const GroupMember& m) {
      return reduces(m.extent);
    });
  }

  bool merge(std::int32_t group, std::int32_t other) {
    if (group == other) return true;
    Building& a = groups_[at(group)];
    Building& b = groups_[at(other)];
    if (a.members.size() + b.members.size() > kMaxMembers || is_alone(a) || is_alone(b)) {
      return false;
    }
    if ((a.before || b.before) && (a.committed || b.committed)) return false;
    // The space of both, and what becomes of the full extents of each.
    Space space;
    std::optional<Extent> a_as, b_as;
    if (const auto same = unify(a.space, b.space)) {
      space = *same;
    } else if ((b_as = side_of(b.space, a.space))) {
      space = a.space;
    } else if ((a_as = side_of(a.space, b.space))) {
      space = b.space;
    } else {
      return false;
    }
    if (!fit_together(group, a_as, other, b_as, space) ||
        !fit_together(other, b_as, group, a_as, space)) {
      return false;
    }
    for (const std::int64_t read : a.reads) {
      if (result_.group_of[at(read)] >= 0 && group_of(ValueId::node(read)) == other) continue;
      if (reaches(read, other, group)) return false;
    }
    for (const std::int64_t read : b.reads) {
      if (result_.group_of[at(read)] >= 0 && group_of(ValueId::node(read)) == group) continue;
      if (reaches(read, group, other)) return false;
    }
    if (a_as) lift(a, space, *a_as);
    if (b_as) lift(b, space, *b_as);
    a.space = space;
    std::vector<GroupMember> members;
    members.reserve(a.members.size() + b.members.size());
    std::ranges::merge(a.members, b.members, std::back_inserter(members),
                       [](const GroupMember& x, const GroupMember& y) { return x.node < y.node; });
    a.members = std::move(members);
    a.before = a.before || b.before;
    a.committed = a.committed || b.committed;
    a.first = std::min(a.first, b.first);
    a.last = std::max(a.last, b.last);
    b.merged_into = group;
    b.members.clear();
    std::vector<std::int64_t> reads;
    for (const std::vector<std::int64_t>* part : {&a.reads, &b.reads}) {
      for (const std::int64_t read : *part) {
        if (group_of(ValueId::node(read)) != group) reads.push_back(read);
      }
    }
    a.reads = std::move(reads);
    b.reads.clear();
    return true;
  }

  // Loops that read all elements of the same value become one where they can: it is read once.
  void merge_readers() {
    std::vector<std::int32_t> reader(program_.nodes().size(), -1);  // the last group, per value
    for (std::int64_t i = 0; i < std::ssize(program_.nodes()); ++i) {
      for (const Edge& edge : result_.edges_of[at(i)]) {
        if (edge.kind != EdgeKind::same || !edge.value.is_node()) continue;
        const std::int32_t group = group_of(ValueId::node(i));
        if (group < 0 || group_of(edge.value) == group || !is_whole(edge.value, group)) continue;
        std::int32_t& last = reader[at(edge.value.index())];
        if (last >= 0 && groups_[at(find(last))].before == groups_[at(group)].before) {
          merge(find(last), group);
        }
        last = find(group);
      }
    }
  }
  bool is_whole(ValueId value, std::int32_t group) const {
    const Dim elements = program_.type(value).shape.elements();
    return elements == Dim(groups_[at(group)].space.elements) && !(elements == Dim(1));
  }

  // Whether the members of `reader` may read those of `source` within one loop.
  bool fit_together(std::int32_t reader, std::optional<Extent> reader_as, std::int32_t source,
                    std::optional<Extent> source_as, const Space& space) const {
    for (GroupMember member : groups_[at(reader)].members) {
      if (reader_as && member.from == Extent::full) member.from = *reader_as;
      if (!fits(result_.edges_of[at(member.node)], member, source, space, source_as)) return false;
    }
    return true;
  }

  // Whether `index` waits for the group `target`, other than as a part of the group `through`;
  // also true where the search is given up. Does not follow what comes before all of `target`,
  // though that may read from a group which waits for it with a later member.
  bool reaches(std::int64_t index, std::int32_t target, std::int32_t through) {
    ++search_;
    visited_.resize(std::max(visited_.size(), groups_.size()));
    stack_.assign(1, index);
    int visits = 0;
    const std::int64_t first = groups_[at(target)].first;
    while (!stack_.empty()) {
      const std::int64_t next = stack_.back();
      stack_.pop_back();
      const std::int32_t group = group_of(ValueId::node(next));
      if (group == target) return true;
      if (group >= 0 && group == through) continue;
      if (++visits > kMaxVisits) return true;
      if (group < 0) {
        if (next <= first) continue;
        for (const Operand& operand : node(next).operands) {
          if (!operand.is_literal() && operand.value().is_node()) {
            stack_.push_back(operand.value().index());
          }
        }
        continue;
      }
      if (groups_[at(group)].last <= first || visited_[at(group)] == search_) continue;
      visited_[at(group)] = search_;
      const auto& reads = groups_[at(group)].reads;
      stack_.insert(stack_.end(), reads.begin(), reads.end());
    }
    return false;
  }

  Grouping finish() {
    std::vector<std::int32_t> places(groups_.size(), -1);
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].merged_into >= 0) continue;
      places[i] = static_cast<std::int32_t>(result_.groups.size());
      result_.groups.push_back({groups_[i].space, std::move(groups_[i].members)});
    }
    for (std::int32_t& group : result_.group_of) {
      if (group >= 0) group = places[at(find(group))];
    }
    return std::move(result_);
  }

  const Program& program_;
  const std::vector<NodeRole>& roles_;
  Grouping result_;
  std::vector<Building> groups_;
  std::vector<std::int64_t> stack_;
  std::vector<std::int64_t> visited_;  // per group, the last search that saw it
  std::int64_t search_ = 0;
};

}  // namespace

std::optional<EdgeKind> repetition(const Shape& from, const BroadcastInDim* broadcast,
                                   const Shape& to, Space& space) {
  if (broadcast == nullptr && from == to) return EdgeKind::same;
  Axes dims(at(from.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  if (broadcast != nullptr) dims = broadcast->dims;
  if (from.elements() == to.elements()) {
    if (!std::ranges::is_sorted(dims)) return std::nullopt;
    return EdgeKind::same;
  }
  std::vector<bool> kept(at(to.rank()));
  std::int64_t last = -1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (from[static_cast<std::int64_t>(i)] == Dim(1)) continue;
    if (dims[i] < last) return std::nullopt;
    last = dims[i];
    kept[at(dims[i])] = true;
  }
  if (last < 0) return EdgeKind::scalar;
  // Of the axes of the result that are longer than 1, the value has the first ones or the last.
  std::int64_t count = 1;
  bool kept_first = true;
  bool kept_last = true;
  bool seen_kept = false;
  bool seen_repeated = false;
  for (std::int64_t i = 0; i < to.rank(); ++i) {
    if (to[i] == Dim(1)) continue;
    if (kept[at(i)]) {
      count *= to[i].size();
      kept_first = kept_first && !seen_repeated;
      seen_kept = true;
    } else {
      kept_last = kept_last && !seen_kept;
      seen_repeated = true;
    }
  }
  if (kept_first && restrict_columns(space, space.elements / count)) return EdgeKind::column;
  if (kept_last && restrict_columns(space, count)) return EdgeKind::row;
  return std::nullopt;
}

ValueId behind_reshapes(const Program& program, ValueId value) {
  while (value.is_node()) {
    const Node& node = program.node(value);
    if (!std::holds_alternative<Reshape>(node.op)) break;
    value = node.operands[0].value();
  }
  return value;
}

Extent required_extent(const GroupMember& member, EdgeKind kind) {
  switch (kind) {
    case EdgeKind::row:
      return Extent::row;
    case EdgeKind::column:
      return Extent::column;
    case EdgeKind::scalar:
      return Extent::scalar;
    case EdgeKind::same:
    case EdgeKind::literal:
      break;
  }
  return member.from;
}

Grouping group_nodes(const Program& program, const std::vector<NodeRole>& roles) {
  return Grouper(program, roles).run();
}

}  // namespace mulgrad::cpu
