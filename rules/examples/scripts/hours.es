// Each hour one event (paper, section 3.2). A value is abnormal from 100 on.
in double measured case {measured >= 100.0 ? high : low}
out {} normal, {} abnormal

(low()* (arrive[.:00]() { !> normal(); }
        | high() { !> abnormal(); } .* arrive[.:00]()))*
