// The calendar of Capacity Blocks as a picture.
//
//   const std::string svg = DrawCalendarSvg(calendar);
//
// One file without scripts or references: days in UTC across, a row for each block, host or cell, a
// line at the present, states by colour with a legend, details of each bar as its title. Names are
// escaped.
//
// Thread safety: a pure function.

#pragma once

#include <string>

#include "controller/ctl/calendar.h"

namespace tahoma::controller {

std::string DrawCalendarSvg(const Calendar& calendar);

}  // namespace tahoma::controller
