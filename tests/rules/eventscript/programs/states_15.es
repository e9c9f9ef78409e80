// 2^15 path sets (paper 7).
in {} A, {} B

.* A() .{15}
