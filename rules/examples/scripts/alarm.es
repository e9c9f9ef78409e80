// Every third abnormal hour in a row, without two paths at once (paper, section 3.2).
in {} normal, {} abnormal
out {} alarmed

(normal() | abnormal() (normal() | abnormal() (normal() | abnormal() { !> alarmed(); })))*
