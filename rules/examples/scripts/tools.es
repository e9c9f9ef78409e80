// Two uses without an inspection between them; counts them per tool (paper, section 3.1).
in {long tool;} used group(used.tool), {long tool;} inspected group(inspected.tool)
out {long times;} violation

({ times = 0; }
 (inspected() | used() (used() { times = times + 1; !> violation({times: times}); })* inspected())*)
