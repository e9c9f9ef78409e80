// Two uses without an inspection between them, as first tried (paper 3.1).
in {} Use, {} Insp
out {} V

(Use() Use() { !> V(); })*
