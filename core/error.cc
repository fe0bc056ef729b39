#include "core/error.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace mulgrad {
namespace {

std::string compose(Category category, const std::string& message, const std::string& node,
                    const std::string& location) {
  std::string text;
  if (!location.empty()) text += location + ": ";
  text += to_string(category);
  text += ": ";
  if (!node.empty()) text += node + ": ";
  return text + message;
}

}  // namespace

std::string_view to_string(Category category) {
  switch (category) {
#define X(name)        \
  case Category::name: \
    return #name;
    MULGRAD_CATEGORIES(X)
#undef X
  }
  INTERNAL_CHECK(false);
  return {};
}

Error::Error(Category category, std::string message, std::string node, std::string location)
    : std::runtime_error(compose(category, message, node, location)),
      category_(category),
      message_(std::move(message)),
      node_(std::move(node)),
      location_(std::move(location)) {}

Error Error::at_node(std::string node) const {
  return node_.empty() ? Error(category_, message_, std::move(node), location_) : *this;
}

Error Error::at_location(std::string location) const {
  return location_.empty() ? Error(category_, message_, node_, std::move(location)) : *this;
}

void internal_check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace mulgrad
