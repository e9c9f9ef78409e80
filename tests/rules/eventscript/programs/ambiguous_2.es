// Two paths let go on by one event, without an action in either (paper 4.1).
in {} A, {} B, {} C

(A() B())* A() C()
