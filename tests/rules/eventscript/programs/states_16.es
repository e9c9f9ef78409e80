// 2^16 path sets: more than `script_states_max` (paper 7).
in {} A, {} B

.* A() .{16}
