// Every minute the zone in which each tag was read most often (paper 2.3).
type Reading = {string tag; double x; double y;}
in Reading Position group(Position.tag)
out {string tag; long zone;} Zone

({ count = new long[2]; }
 Position(p) { zone = p.x < 50.0 ? 0 : 1; count[zone] = count[zone] + 1; }
 (Position(p) { zone = p.x < 50.0 ? 0 : 1; count[zone] = count[zone] + 1; })*
 arrive[.::00]()
 { !> Zone({tag: p.tag, zone: count[0] >= count[1] ? 0 : 1}); })*
