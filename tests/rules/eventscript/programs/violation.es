// Two uses without an inspection between them, corrected (paper 3.1).
in {} Use, {} Insp
out {} V

(Insp() | Use() (Use() { !> V(); })* Insp())*
