// Refused: the block leads to itself (paper 4.2).
in {} A
out {} Z

(A()* { !> Z(); })*
