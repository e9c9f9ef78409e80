// An instant past 32 bits of seconds (paper 2.1).
in {} A
out time Z

A()* arrive[2038-01-19 03:14:08](t) { !> Z(t); }
