// Every form of declaration (paper 2), and an array that a loop fills (paper 4.4).
type Point = {double x; double y;}
type Path = Point[]
in Point Position, long Size, {string caller; long[] digits;} CallIn
out Point Last, long Sum, string Caller

(Position(p) { path = new Point[1]; path[0] = p; !> Last(path[0]); }
| Size(n) {
    a = new long[n];
    for (i: 0, n - 1) a[i] = 0;
    for (i: 0, n - 1) a[i] = a[i] + i;
    sum = 0;
    for (x: a) sum = sum + x;
    !> Sum(sum);
  }
| CallIn(call) { !> Caller(call.caller); }
)*
