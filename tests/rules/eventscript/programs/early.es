// A block that runs although its branch is given up later (paper 4.2).
in {} A, {} B, {} C
out {} Z

(A() B() | A() { !> Z(); } C())
