// Calls told apart by `case` and counted by caller with `group` (paper 4.3).
type Call = {string caller; long seconds;}
in Call CallIn case {CallIn.seconds > 60 ? Long : Short} group(CallIn.caller)
out {string caller; long calls;} Talkative

(Short() | Long(c) { n = n + 1; !> Talkative({caller: c.caller, calls: n}); })*
