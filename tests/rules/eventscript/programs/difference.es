// Succeeds at each B behind an A until two Cs in a row (paper 4.1.1).
in {} A, {} B, {} C
out {} Succeed, {} Fail

(A() .* B() - .* C() C() { !> Fail(); } .*) { !> Succeed(); }
