// Unlocks behind every 0 0 7, as any text that ends so (paper 4.1.2).
in long Key case {Key == 0 ? K0 : Key == 7 ? K7 : Other}
out {} Unlock

(.* K0() K0() K7() { !> Unlock(); })* | .*
