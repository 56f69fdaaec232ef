#include "controller/apiserver/object.h"

namespace tahoma::controller {

std::shared_ptr<const std::string> Event::Line(std::string_view form,
                                               const std::function<std::string()>& make) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, line] : lines_) {
    if (name == form) return line;
  }
  lines_.emplace_back(form, std::make_shared<const std::string>(make()));
  return lines_.back().second;
}

}  // namespace tahoma::controller
