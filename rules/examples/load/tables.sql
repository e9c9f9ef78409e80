CREATE TABLE delta.`./lake/readings` (sensor STRING, value DOUBLE)
USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableInCommitTimestamps = true);
CREATE TABLE delta.`./lake/quarantine` (at TIMESTAMP, rows BIGINT, bad BIGINT)
USING delta;
