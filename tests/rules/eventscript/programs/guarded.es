// The same with each block behind its event (paper 4.2).
in {} A, {} B, {} C
out {} Y, {} Z

A() (B() { !> Y(); })* C() { !> Z(); }
