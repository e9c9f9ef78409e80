// Becomes cold below 35.0 degrees, and warm from 45.0 on (paper, section 2.2).
in {string room; double celsius;} temperature
   case {temperature.celsius < 35.0 ? Low : temperature.celsius >= 45.0 ? High}
   group(temperature.room)
out {} warm, {double celsius;} cold

({ !> warm(); } High()* Low(t) { !> cold({celsius: t.celsius}); } Low()* High())*
