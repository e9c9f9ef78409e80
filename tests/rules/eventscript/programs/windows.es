// Each hour one event: abnormal at the first abnormal reading, else normal at its end (paper 3.2).
in {} n, {} a
out {} N, {} A

(n()* (arrive[.:00]() { !> N(); } | a() { !> A(); } .* arrive[.:00]()))*
