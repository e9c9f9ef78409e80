// Five minutes after an event (paper 2.1).
in {} A
out time Z

A() elapse[5 minutes](t) { !> Z(t); }
