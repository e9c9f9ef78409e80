// Tells when a refrigerator becomes cold, below 35.0, and warm, from 45.0 on (paper 2.2).
in double Temperature case {Temperature < 35.0 ? Low : Temperature >= 45.0 ? High}
out {} warm, {} cold

({ !> warm(); } High()* Low() { !> cold(); } Low()* High())*
