// Unlocks behind every 0 0 7, deterministic (paper 4.1.2).
in long Key case {Key == 0 ? K0 : Key == 7 ? K7 : Other}
out {} Unlock

(K7() | Other() | K0() (K7() | Other() | K0()+ (Other() | K7() { !> Unlock(); })))*
