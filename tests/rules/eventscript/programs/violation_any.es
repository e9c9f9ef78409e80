// Two uses without an inspection between them, as any text that ends so (paper 4.1.2).
in {} Use, {} Insp
out {} V

(.* Use() Use() { !> V(); })* | .*
