// Blocks before the event that would tell which of them is meant (paper 4.2).
in {} A, {} B, {} C
out {} Y, {} Z

A() ({ !> Y(); } B())* { !> Z(); } C()
