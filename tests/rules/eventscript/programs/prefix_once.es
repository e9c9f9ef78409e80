// A block before a choice (paper 4.1.1).
in {} A, {} B, {} C
out {} Z

A() { !> Z(); } (B() | C())
