// An alarm at every third abnormal event in a row (paper 3.2).
in {} N, {} A
out {} Alarm

(N() | A() N() | A() A() N() | A() A() A() { !> Alarm(); })*
