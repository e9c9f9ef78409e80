// The average of the last values of three sensors (paper 1). A value starts at 0.0.
in double S1, double S2, double S3
out double Average

((S1(s1) | S2(s2) | S3(s3)) { !> Average((s1 + s2 + s3) / 3.0); })*
