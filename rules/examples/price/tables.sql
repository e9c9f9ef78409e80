CREATE TABLE delta.`./lake/prices` (symbol STRING, price DOUBLE)
USING delta TBLPROPERTIES (delta.enableInCommitTimestamps = true);
CREATE TABLE delta.`./lake/candles`
(day DATE, ticks BIGINT, first DOUBLE, low DOUBLE, high DOUBLE, last DOUBLE) USING delta;
INSERT INTO delta.`./lake/prices` VALUES ('ACME', 100.0), ('INIT', 50.0);
