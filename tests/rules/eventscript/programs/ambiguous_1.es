// Both paths count the same event, and the block behind them runs once (paper 4.1).
in {} A
out long B

(A() { x = x + 1; } | A() { x = x + 1; }) { !> B(x); }
