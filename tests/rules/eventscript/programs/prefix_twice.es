// The same text with the block in both branches: two places (paper 4.1.1).
in {} A, {} B, {} C
out {} Z

(A() { !> Z(); } B() | A() { !> Z(); } C())
