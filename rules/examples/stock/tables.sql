CREATE TABLE delta.`./lake/prices` (symbol STRING, price DOUBLE)
USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableInCommitTimestamps = true);
CREATE TABLE delta.`./lake/moves` (symbol STRING, before DOUBLE, after DOUBLE, at TIMESTAMP)
USING delta;
CREATE TABLE delta.`./lake/watchlist` (symbol STRING, rebounds BIGINT)
USING delta;
INSERT INTO delta.`./lake/prices` VALUES ('ACME', 100.0), ('INIT', 50.0);
